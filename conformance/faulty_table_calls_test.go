package conformance_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// tableCalls are engines that take something of a call for something else, found by somebody who read the contract alone.
func tableCalls() []broken {
	return slices.Concat(tableAsked(), tableKeys(), tableTogether(), tableTranscripts(), tableOdd(), tableFigures())
}

// on is an engine that changes requests of one kind.
func on[Req any](id, name string, s setup, f func(r *Req)) broken {
	return caughtBy(id, name, s, func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			if r, ok := req.(*Req); ok {
				f(r)
			}
		}
	})
}

// then is an engine that changes results of one kind.
func then[Res any](id, name string, s setup, f func(r *Res)) broken {
	return caughtBy(id, name, s, func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if r, ok := res.(*Res); ok {
				f(r)
			}
		}
	})
}

// tableAsked are engines that show something else than was asked for.
func tableAsked() []broken {
	assemble := func(id, name string, f func(r *core.AssembleRequest)) broken { return on(id, name, recalling(nil), f) }
	out := []broken{
		assemble("contract.budget", "the budget is the model's window", func(r *core.AssembleRequest) {
			if r.Settings.ContextWindow > 0 {
				r.Budget = r.Settings.ContextWindow
			}
		}),
		assemble("contract.budget", "the budget is the largest that is named", func(r *core.AssembleRequest) { r.Budget = max(r.Budget, r.Settings.PromptTokenBudget) }),
		assemble("contract.budget", "the answer is taken off the budget", func(r *core.AssembleRequest) { r.Budget -= r.Settings.MaxOutputTokens / 2 }),
		caughtBy("contract.budget", "a budget that falls a little is the last one", recalling(nil), func(w *wrongEngine) {
			var mu sync.Mutex
			last := map[core.SessionID]int{}
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.AssembleRequest); ok {
					mu.Lock()
					defer mu.Unlock()
					if n := last[r.Session]; n > r.Budget && n < r.Budget*11/10 {
						r.Budget = n
					}
					last[r.Session] = r.Budget
				}
			}
		}),
		on("contract.invalid", "reserved sessions have other names", recalling(nil), func(r *core.IngestRequest) {
			if core.Reserved(r.Session.Session) {
				r.Session.Session += "-"
			}
		}),
		on("contract.invalid", "a subagent's parent may be a reserved session", recalling(nil), func(r *core.SubagentEnded) {
			if core.Reserved(r.Parent.Session) {
				r.Parent.Session = "another"
			}
		}),
		on("contract.invalid", "a subagent's session may be a reserved one", recalling(nil), func(r *core.SubagentEnded) {
			if core.Reserved(r.Child.Session) {
				r.Child.Session += "-"
			}
		}),
	}
	for _, id := range []string{"contract.modes", "contract.recall"} {
		out = append(out, assemble(id, "mode none is full inside a turn", func(r *core.AssembleRequest) {
			if r.PromptMode == core.PromptNone && r.Call == core.CallLoop {
				r.PromptMode = core.PromptFull
			}
		}))
	}
	return append(out, assemble("contract.recall", "mode minimal is full inside a turn", func(r *core.AssembleRequest) {
		if r.PromptMode == core.PromptMinimal && r.Call == core.CallLoop {
			r.PromptMode = core.PromptFull
		}
	}))
}

// tableKeys are engines to which keys that differ are the same.
func tableKeys() []broken {
	var out []broken
	for name, f := range map[string]func(string) string{
		"cut to 32 bytes": func(key string) string { return key[:min(len(key), 32)] },
		"cut to 64 bytes": func(key string) string { return key[:min(len(key), 64)] },
		"cut in front":    func(key string) string { return key[max(len(key)-64, 0):] },
		"in lower case":   strings.ToLower,
		"trimmed":         strings.TrimSpace,
	} {
		out = append(out, on("contract.keys", "keys of messages are "+name, recalling(nil), func(r *core.IngestRequest) { r.IdempotencyKey = shorter(r.IdempotencyKey, f) }),
			on("contract.keys", "keys of batches are "+name, recalling(nil), func(r *core.IngestBatchRequest) { r.IdempotencyKey = shorter(r.IdempotencyKey, f) }),
			on("contract.keys", "keys of turns are "+name, recalling(nil), func(r *core.CommitTurnRequest) { r.AdvancementKey = f(r.AdvancementKey) }))
	}
	return out
}

// shorter changes a key that is not too long.
func shorter(key string, f func(string) string) string {
	if len(key) > 256 {
		return key
	}
	return f(key)
}

// tableTogether are engines that store part of a call, or take what failed for done.
func tableTogether() []broken {
	var out []broken
	paged := func(page int, looks bool) func(w *wrongEngine) {
		return func(w *wrongEngine) {
			w.batch = func(ctx context.Context, req core.IngestBatchRequest) (all core.IngestResult, _ error) {
				if looks && slices.ContainsFunc(req.Messages, func(m message.Message) bool { return !m.Role.Valid() }) {
					return w.Engine.IngestBatch(ctx, req) // which refuses it
				}
				for list := range slices.Chunk(req.Messages, page) {
					one := req
					if one.Messages = list; req.IdempotencyKey != "" {
						one.IdempotencyKey = req.IdempotencyKey[:min(len(req.IdempotencyKey), 200)] + list[0].Text()[:min(len(list[0].Text()), 50)]
					}
					res, err := w.Engine.IngestBatch(ctx, one)
					if err != nil {
						return core.IngestResult{}, err
					}
					all.Ingested, all.Duplicates, all.IDs = all.Ingested+res.Ingested, all.Duplicates+res.Duplicates, append(all.IDs, res.IDs...)
				}
				return all, nil
			}
		}
	}
	out = append(out, caughtBy("contract.atomic", "batches in pages of 3", recalling(nil), paged(3, false)), caughtBy("contract.atomic", "batches in pages of 100", recalling(nil), paged(100, false)),
		caughtBy("contract.atomic", "batches in pages of 100 that were looked at", recalling(nil), paged(100, true)),
		caughtBy("contract.atomic", "turns in halves", recalling(nil), func(w *wrongEngine) {
			w.commit = func(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
				first, second := req, req
				half := len(req.Messages) / 2
				first.Messages, second.Messages = req.Messages[:half], req.Messages[half:]
				second.AdvancementKey += "+"
				one, err := w.Engine.CommitTurn(ctx, first)
				if err != nil {
					return one, err
				}
				two, err := w.Engine.CommitTurn(ctx, second)
				two.IDs = append(one.IDs, two.IDs...)
				return two, err
			}
		}))
	// known notes the key of each call before it is made, and is asked what a call with a known one comes to.
	known := func(name string, f func(w *wrongEngine, ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error)) {
		out = append(out, caughtBy("contract.atomic", name, recalling(nil), func(w *wrongEngine) {
			var keys sync.Map
			w.commit = func(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
				if _, was := keys.LoadOrStore([3]string{req.Session.Agent, req.Session.Session, req.AdvancementKey}, true); was {
					return f(w, ctx, req)
				}
				return w.Engine.CommitTurn(ctx, req)
			}
		}))
	}
	known("a turn that was not stored is a duplicate", func(w *wrongEngine, ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
		res, err := w.Engine.CommitTurn(ctx, req)
		res.Status = core.Duplicate
		return res, err
	})
	known("a turn that was not stored never is", func(_ *wrongEngine, ctx context.Context, _ core.CommitTurnRequest) (core.CommitTurnResult, error) {
		return core.CommitTurnResult{Status: core.Duplicate}, ctx.Err()
	})
	return append(out, caughtBy("contract.atomic", "a batch that was not stored never is", recalling(nil), func(w *wrongEngine) {
		var keys sync.Map
		w.batch = func(ctx context.Context, req core.IngestBatchRequest) (core.IngestResult, error) {
			if req.IdempotencyKey != "" {
				if _, was := keys.LoadOrStore([3]string{req.Session.Agent, req.Session.Session, req.IdempotencyKey}, true); was {
					return core.IngestResult{Duplicates: len(req.Messages), IDs: make([]string, len(req.Messages))}, ctx.Err()
				}
			}
			return w.Engine.IngestBatch(ctx, req)
		}
	}), caughtBy("contract.after-turn", "after a turn its messages are ingested", recalling(nil), func(w *wrongEngine) {
		w.turn = func(ctx context.Context, req core.AfterTurnRequest) error {
			_, err := w.Engine.IngestBatch(ctx, core.IngestBatchRequest{Session: req.Session, Messages: req.Messages[min(req.PrePrompt, len(req.Messages)):], Heartbeat: req.Heartbeat})
			return err
		}
	}))
}

// tableTranscripts are engines that lose something of a transcript in one of the calls that take one.
func tableTranscripts() []broken {
	checks := map[string]string{"what is skipped is not missed": "contract.digest", "no transcript is whole": "contract.whole", "every transcript is whole": "contract.whole"}
	out := []broken{caughtBy("contract.whole", "a list that was seen is not looked at again", recalling(nil), func(w *wrongEngine) {
		var seen sync.Map
		w.before = func(_ string, req any) {
			r, ok := req.(*core.AssembleRequest)
			if !ok || r.Transcript == nil {
				return
			}
			t := *r.Transcript
			if _, was := seen.Swap(fmt.Sprint(r.Session, message.DigestOf(t.Messages)), true); was {
				t.Whole, r.Transcript = false, &t
			}
		}
	}), caughtBy("contract.subagent", "a subagent is prepared once", recalling(nil), func(w *wrongEngine) {
		var seen sync.Map
		w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
			if req, ok := ctx.Value(requested{}).(*core.SpawnRequest); ok {
				if _, was := seen.Swap(req.Child, true); was {
					return fmt.Errorf("broken: %q was prepared: %w", req.Child, core.ErrConflict)
				}
			}
			return call(ctx)
		}
	})}
	for name, f := range map[string]func(t *core.Transcript){
		"what is skipped is not missed": func(t *core.Transcript) { t.Skipped, t.Digest = 0, "" },
		"no transcript is whole":        func(t *core.Transcript) { t.Whole = false },
		"every transcript is whole":     func(t *core.Transcript) { t.Whole = true },
		"the newest 40 of a transcript": func(t *core.Transcript) {
			if t.Skipped == 0 {
				t.Messages = t.Messages[max(len(t.Messages)-40, 0):]
			}
		},
		"fillers of transcripts are said": func(t *core.Transcript) {
			for i := range t.Messages {
				t.Messages[i].Type = ""
			}
		},
		"names in transcripts are not looked at": func(t *core.Transcript) {
			for i := range t.Messages {
				t.Messages[i].Key, t.Messages[i].ID, t.Messages[i].Time = "", "", time.Time{}
			}
		},
		"names of what is said three times are not looked at": func(t *core.Transcript) {
			said := map[string]int{}
			for i := range t.Messages {
				said[t.Messages[i].Text()]++
			}
			for i := range t.Messages {
				if m := &t.Messages[i]; said[m.Text()] > 2 {
					m.Key, m.ID, m.Time = "", "", time.Time{}
				}
			}
		},
		"the times of what is said again are not looked at": func(t *core.Transcript) {
			said := map[string]int{}
			for i := range t.Messages {
				said[t.Messages[i].Text()]++
			}
			for i := range t.Messages {
				if m := &t.Messages[i]; said[m.Text()] > 1 {
					m.Time = time.Time{}
				}
			}
		},
		"of a transcript of one message the name is not looked at": func(t *core.Transcript) {
			if len(t.Messages) == 1 {
				t.Messages[0].Key, t.Messages[0].ID, t.Messages[0].Time = "", "", time.Time{}
			}
		},
		"the newest result is taken for an earlier one that says the same": func(t *core.Transcript) {
			last := len(t.Messages) - 1
			if last > 0 && t.Messages[last].Role == message.Tool && slices.ContainsFunc(t.Messages[:last], func(m message.Message) bool {
				return message.Fingerprint(m) == message.Fingerprint(t.Messages[last])
			}) {
				t.Messages = t.Messages[:last]
			}
		},
		"ids of calls in transcripts are not looked at": func(t *core.Transcript) {
			for i := range t.Messages {
				t.Messages[i].Parts = slices.Clone(t.Messages[i].Parts)
				for n := range t.Messages[i].Parts {
					t.Messages[i].Parts[n].CallID = ""
				}
			}
		},
		"what leads a transcript is not looked at": func(t *core.Transcript) {
			for len(t.Messages) > 1 && t.Messages[0].Role == message.System {
				t.Messages = t.Messages[1:]
			}
		},
	} {
		change := func(t *core.Transcript) *core.Transcript {
			if t == nil {
				return nil
			}
			c := *t
			c.Messages = slices.Clone(t.Messages)
			f(&c)
			return &c
		}
		id := cmp.Or(checks[name], "contract.transcript")
		out = append(out, on(id, name+", by Assemble", recalling(nil), func(r *core.AssembleRequest) { r.Transcript = change(r.Transcript) }),
			on(id, name+", by Compact", recalling(nil), func(r *core.CompactRequest) { r.Transcript = change(r.Transcript) }),
			on(id, name+", by Bootstrap", recalling(nil), func(r *core.BootstrapRequest) { r.Transcript = change(r.Transcript) }))
	}
	return out
}

// tableOdd are engines that are at a loss with what is seldom.
func tableOdd() []broken {
	same := func(a, b message.Message) bool { return message.Fingerprint(a) == message.Fingerprint(b) }
	sorted := func(list []message.Message) []message.Message {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b message.Message) int {
			if a.Time.IsZero() || b.Time.IsZero() {
				return 0
			}
			return a.Time.Compare(b.Time)
		})
		return list
	}
	shown := func(name string, f func(a *core.AssembleResult)) broken {
		return then("contract.odd", name, recalling(nil), f)
	}
	return []broken{
		on("contract.odd", "of a batch what is the same comes once", recalling(nil), func(r *core.IngestBatchRequest) { r.Messages = slices.CompactFunc(slices.Clone(r.Messages), same) }),
		on("contract.odd", "of a turn what is the same comes once", recalling(nil), func(r *core.CommitTurnRequest) { r.Messages = slices.CompactFunc(slices.Clone(r.Messages), same) }),
		on("contract.odd", "of a transcript what is the same comes once", recalling(nil), func(r *core.AssembleRequest) {
			if r.Transcript != nil {
				t := *r.Transcript
				t.Messages = slices.CompactFunc(slices.Clone(t.Messages), func(a, b message.Message) bool { return a.Role == message.User && same(a, b) })
				r.Transcript = &t
			}
		}),
		on("contract.odd", "a transcript is put in the order of its times", recalling(nil), func(r *core.AssembleRequest) {
			if r.Transcript != nil {
				t := *r.Transcript
				t.Messages = sorted(t.Messages)
				r.Transcript = &t
			}
		}),
		on("contract.odd", "a turn is put in the order of its times", recalling(nil), func(r *core.CommitTurnRequest) { r.Messages = sorted(r.Messages) }),
		on("contract.odd", "a batch is put in the order of its times", recalling(nil), func(r *core.IngestBatchRequest) { r.Messages = sorted(r.Messages) }),
		shown("an id of a call has one result", func(a *core.AssembleResult) {
			seen := map[string]bool{}
			for i := 0; i < len(a.Messages); i++ {
				for _, r := range a.Messages[i].Results() {
					if seen[r.CallID] {
						remove(a, i)
						i--
						break
					}
					seen[r.CallID] = true
				}
			}
		}),
		shown("system messages go to the front", func(a *core.AssembleResult) {
			lead := 0
			for i, m := range slices.Clone(a.Messages) {
				if m.Role == message.System {
					if i > lead {
						remove(a, i)
						insert(a, lead, m)
						a.Choices = append(a.Choices, window.Choice{Message: lead, Entry: m.Entry, Count: 1, Reason: window.ReasonTail})
					}
					lead++
				}
			}
		}),
		shown("the end is never a system message", func(a *core.AssembleResult) {
			if n := len(a.Messages); n > 1 && a.Messages[n-1].Role == message.System {
				remove(a, n-1)
			}
		}),
	}
}

// tableFigures are engines that compact to another measure, or name one.
func tableFigures() []broken {
	delegating := setup{compactor: "delegate"}
	return []broken{
		caughtBy("contract.compact", "what the host believes is what it was", recalling(nil), func(w *wrongEngine) {
			current := 0
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.CompactRequest); ok {
					current = r.CurrentTokens
				}
			}
			w.after = func(_ string, res any) {
				if r, ok := res.(*core.CompactResult); ok && current > 0 {
					r.TokensBefore = current
				}
			}
		}),
		caughtBy("contract.compact", "a session is compacted once by force", recalling(nil), func(w *wrongEngine) {
			forced := map[core.SessionID]bool{}
			w.compact = func(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
				if req.Force && forced[req.Session] {
					req.Force, req.Budget = false, 1<<30 // it looks only
				}
				forced[req.Session] = forced[req.Session] || req.Force
				return w.Engine.Compact(ctx, req)
			}
		}),
		caughtBy("contract.forgotten", "answers of before an erasure", recalling(nil), func(w *wrongEngine) {
			known := map[engine.SearchRequest]engine.SearchResult{}
			w.before = func(method string, _ any) {
				if method != "Search" && method != "Expand" && method != "Forget" {
					clear(known)
				}
			}
			w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
				if res, ok := known[req]; ok {
					return res, nil
				}
				res, err := w.Engine.Search(ctx, req)
				if err == nil {
					known[req] = res
				}
				return res, err
			}
		}),
		then("contract.compact", "no first entry where nothing was compacted", recalling(nil), func(r *core.CompactResult) {
			if !r.Compacted {
				r.FirstKept = ""
			}
		}),
		then("contract.compact", "no figures where nothing was compacted", recalling(nil), func(r *core.CompactResult) {
			if !r.Compacted {
				r.TokensBefore, r.TokensAfter = 0, 0
			}
		}),
		then("contract.compact", "nothing is left where nothing was compacted", recalling(nil), func(r *core.CompactResult) {
			if !r.Compacted {
				r.TokensAfter = 0
			}
		}),
		caughtBy("contract.compact", "the last budget of any session", recalling(nil), budgetBy(func(core.SessionID) string { return "" })),
		caughtBy("contract.compact", "the last budget of any session of the name", recalling(nil), budgetBy(func(id core.SessionID) string { return id.Session })),
		on("contract.compact", "a delegate takes the transcript for itself", delegating, func(r *core.CompactRequest) { r.Transcript = nil }),
		on("contract.compact", "a delegate adds a budget", delegating, func(r *core.CompactRequest) { r.Budget = cmp.Or(r.Budget, 900) }),
		then("contract.compact", "a delegate is always well", delegating, func(r *core.CompactResult) { r.OK = true }),
		caughtBy("contract.compact", "a delegate is not asked where little is there", delegating, func(w *wrongEngine) {
			w.compact = func(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
				if !req.Force && req.CurrentTokens > 0 && req.CurrentTokens < req.Budget/2 {
					return core.CompactResult{OK: true, Reason: core.ReasonBelowThreshold, Delegated: true}, ctx.Err()
				}
				return w.Engine.Compact(ctx, req)
			}
		}),
		caughtBy("contract.compact", "a delegate is asked again where it compacted nothing", setup{compacts: func(env conformance.Env) (core.Compactor, error) {
			c, err := compactors["delegate"](env)
			return &compacts{Compactor: c, f: func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
				p, err := s(ctx, c)
				if err == nil && p.Delegated != nil && !p.Delegated.Compacted {
					return s(ctx, c)
				}
				return p, err
			}}, err
		}}, func(*wrongEngine) {}),
	}
}

// budgetBy gives a compaction without a budget that of the last prompt, as far as its key tells sessions apart.
func budgetBy(key func(core.SessionID) string) func(w *wrongEngine) {
	return func(w *wrongEngine) {
		last := map[string]int{}
		w.before = func(_ string, req any) {
			switch r := req.(type) {
			case *core.AssembleRequest:
				last[key(r.Session)] = r.Budget
			case *core.CompactRequest:
				if r.Budget == 0 {
					r.Budget = last[key(r.Session)]
				}
			}
		}
	}
}
