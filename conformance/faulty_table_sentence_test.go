package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// tableSentences are engines that break one sentence of the contract where it is seldom read: long after, after a reset, in what is unknown to them.
func tableSentences() []broken {
	return slices.Concat(
		tableAged(),
		tableKnown(),
		tableUnknown(),
		tableEpochs(),
		tableOneID(),
		tableForks(),
		tableBlamed(),
		tableTimers(),
		tableOldSummaries(),
		tableWords(),
		tableArms(),
		tableNothingNew(),
	)
}

// storedOf are a session's entries, read past the engine.
func storedOf(w *wrongEngine, id core.SessionID) []core.Entry {
	var out []core.Entry
	for e, err := range core.All(context.Background(), w.Store(), id.Scope(), false) {
		if err == nil {
			out = append(out, e)
		}
	}
	return out
}

// tableAged are engines that forget turns.
func tableAged() []broken {
	var out []broken
	aged := func(name string, is func(m message.Message) bool) {
		out = append(out, caughtBy("contract.keys", name, recalling(nil), func(w *wrongEngine) {
			keys := map[core.SessionID][]string{}
			w.commit = func(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
				res, err := w.Engine.CommitTurn(ctx, req)
				known := keys[req.Session]
				if err == nil && res.Status == core.Duplicate && !slices.Contains(known[max(len(known)-64, 0):], req.AdvancementKey) && is(req.Messages[0]) {
					res.Status = core.Committed
				}
				if err == nil && !slices.Contains(known, req.AdvancementKey) {
					keys[req.Session] = append(known, req.AdvancementKey)
				}
				return res, err
			}
		}))
	}
	aged("a turn that was committed long ago is new", func(message.Message) bool { return true })
	aged("a turn whose messages have ids, committed long ago, is new", func(m message.Message) bool { return m.ID != "" })
	aged("a turn whose messages have times, committed long ago, is new", func(m message.Message) bool { return !m.Time.IsZero() })
	return out
}

// tableKnown are engines that count other entries than those in force.
func tableKnown() []broken {
	var out []broken
	known := func(name string, count func(w *wrongEngine, id core.SessionID, known int) int) {
		out = append(out, caughtBy("contract.bootstrap", name, recalling(nil), func(w *wrongEngine) {
			var id core.SessionID
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.BootstrapRequest); ok {
					id = r.Session
				}
			}
			w.after = func(_ string, res any) {
				if r, ok := res.(*core.BootstrapResult); ok {
					r.Known = count(w, id, r.Known)
				}
			}
		}))
	}
	known("all that is stored is known", func(w *wrongEngine, id core.SessionID, _ int) int { return len(storedOf(w, id)) })
	known("all that was said is known", func(w *wrongEngine, id core.SessionID, _ int) int {
		return len(slices.DeleteFunc(storedOf(w, id), func(e core.Entry) bool { return e.Type == core.TypeSummary }))
	})
	known("what a summary stands for is not known", func(w *wrongEngine, id core.SessionID, known int) int {
		d, err := w.Engine.Describe(context.Background(), engine.DescribeRequest{Session: id})
		for _, sum := range d.Summaries {
			known -= sum.Covers
		}
		return map[bool]int{true: known}[err == nil]
	})
	return out
}

// tableUnknown are engines that say in an error what a message of an unknown role says, or take it for one of another role.
func tableUnknown() []broken {
	var out []broken
	// given are the messages of a request.
	given := func(req any) []message.Message {
		switch r := req.(type) {
		case *core.IngestRequest:
			return []message.Message{r.Message}
		case *core.IngestBatchRequest:
			return r.Messages
		case *core.CommitTurnRequest:
			return r.Messages
		case *core.AfterTurnRequest:
			return r.Messages
		case *core.AssembleRequest:
			if r.Transcript != nil {
				return r.Transcript.Messages
			}
		case *core.BootstrapRequest:
			if r.Transcript != nil {
				return r.Transcript.Messages
			}
		}
		return nil
	}
	odd := func(m message.Message) bool { return !m.Role.Valid() }
	for _, of := range []string{"Ingest", "IngestBatch", "CommitTurn", "AfterTurn", "Assemble", "Bootstrap"} {
		out = append(out, caughtBy("contract.invalid", "the error of "+of+" says what a message of an unknown role says", recalling(nil), func(w *wrongEngine) {
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				err := call(ctx)
				if list := given(ctx.Value(requested{})); err != nil && method == of && slices.ContainsFunc(list, odd) {
					return fmt.Errorf("broken: %q: %w", list[len(list)-1].Text(), err)
				}
				return err
			}
		}), caughtBy("contract.invalid", of+" passes over messages of unknown roles", recalling(nil), func(w *wrongEngine) {
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				if method == of && slices.ContainsFunc(given(ctx.Value(requested{})), odd) {
					return ctx.Err()
				}
				return call(ctx)
			}
		}))
	}
	return out
}

// tableEpochs are engines whose epoch begins anew with the session: by the one that purges, or by the other one.
func tableEpochs() []broken {
	var out []broken
	for id, name := range map[string]string{
		"contract.forget": "after a purge the epoch begins anew", "contract.several": "after a purge by another engine the epoch begins anew",
	} {
		purged := map[core.SessionID]bool{}
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) {
			here := id == "contract.forget"
			did := map[core.SessionID]bool{}
			first := map[core.SessionID]uint64{}
			var asked core.SessionID
			w.before = func(_ string, req any) {
				switch r := req.(type) {
				case *core.AssembleRequest:
					asked = r.Session
				case *engine.ForgetRequest:
					if s := (core.SessionID{Agent: r.Scope.Agent, Session: r.Scope.Session}); r.Purge {
						purged[s], did[s] = true, true
					}
				}
			}
			w.after = func(_ string, res any) {
				a, ok := res.(*core.AssembleResult)
				if !ok {
					return
				}
				if _, seen := first[asked]; !seen {
					first[asked] = a.Epoch
				}
				if purged[asked] && did[asked] == here {
					a.Epoch = first[asked]
				}
			}
		}))
	}
	return out
}

// tableOneID are engines to which one id, or one key, is one message of a transcript.
func tableOneID() []broken {
	var out []broken
	for by, name := range map[string]func(m message.Message) string{
		"id": func(m message.Message) string { return m.ID }, "key": func(m message.Message) string { return m.Key },
	} {
		once := func(t *core.Transcript) *core.Transcript {
			if t == nil {
				return nil
			}
			c := *t
			c.Messages = nil
			seen := map[string]bool{"": false}
			for _, m := range t.Messages {
				if n := name(m); !seen[n] {
					c.Messages, seen[n] = append(c.Messages, m), n != ""
				}
			}
			return &c
		}
		what := "messages of a transcript with one " + by + " are one, by "
		out = append(out, on("contract.same", what+"Assemble", recalling(nil), func(r *core.AssembleRequest) { r.Transcript = once(r.Transcript) }),
			on("contract.same", what+"Compact", recalling(nil), func(r *core.CompactRequest) { r.Transcript = once(r.Transcript) }),
			on("contract.same", what+"Bootstrap", recalling(nil), func(r *core.BootstrapRequest) { r.Transcript = once(r.Transcript) }))
	}
	return out
}

// tableForks are engines whose forks begin with something else than the parent shows.
func tableForks() []broken {
	var out []broken
	forked := func(name string, change func(w *wrongEngine, a *core.AssembleResult)) {
		out = append(out, caughtBy("contract.subagent", name, recalling(nil), func(w *wrongEngine) {
			forks := map[core.SessionID]bool{}
			var asked core.SessionID
			w.before = func(_ string, req any) {
				switch r := req.(type) {
				case *core.SpawnRequest:
					forks[r.Child] = r.Mode == core.SpawnFork
				case *core.AssembleRequest:
					asked = r.Session
				}
			}
			w.after = func(_ string, res any) {
				if a, ok := res.(*core.AssembleResult); ok && forks[asked] {
					change(w, a)
				}
			}
		}))
	}
	without := func(reason window.Reason) func(*wrongEngine, *core.AssembleResult) {
		return func(_ *wrongEngine, a *core.AssembleResult) {
			for _, c := range slices.Backward(a.Choices) {
				if c.Reason == reason && c.Message >= 0 {
					remove(a, c.Message)
				}
			}
		}
	}
	forked("a fork begins without the summaries", without(window.ReasonSummary))
	forked("a fork begins without the system messages", without(window.ReasonSystem))
	forked("a fork shows whole what its parent shows in part", func(w *wrongEngine, a *core.AssembleResult) {
		for _, c := range a.Choices {
			if c.Message < 0 || c.Stub == "" {
				continue
			}
			if got, err := w.Store().Get(context.Background(), core.Scope{Agent: "agent-a"}, []string{c.Entry}); err == nil {
				a.Messages[c.Message] = got[0].Message
			}
		}
	})
	return out
}

// tableBlamed are engines whose refusals name another entry than the largest.
func tableBlamed() []broken {
	var out []broken
	for name, which := range map[string]func(n int) int{
		"the first entry is to blame": func(int) int { return 0 }, "the newest entry is to blame": func(n int) int { return n - 1 },
		"the question is to blame": func(n int) int { return min(3, n-1) }, "the entry before the newest is to blame": func(n int) int { return max(n-2, 0) },
	} {
		out = append(out, caughtBy("contract.tiny", name, recalling(nil), func(w *wrongEngine) {
			w.around = func(ctx context.Context, _ string, call func(context.Context) error) error {
				err := call(ctx)
				var b *core.BudgetError
				if r, ok := ctx.Value(requested{}).(*core.AssembleRequest); ok && errors.As(err, &b) && b.Entry != "" {
					if held := storedOf(w, r.Session); len(held) > 0 {
						other := *b
						other.Entry = held[which(len(held))].ID
						return &other
					}
				}
				return err
			}
		}))
	}
	return out
}

// tableTimers are engines to which what a timer caused is an answer.
func tableTimers() []broken {
	return []broken{caughtBy("contract.ended", "a timer's answer is the last one", recalling(nil), func(w *wrongEngine) {
		w.ended = func(ctx context.Context, req core.SubagentEnded) error {
			for _, e := range storedOf(w, req.Child) {
				if e.Type == core.TypeHeartbeat && e.Role == message.Assistant && window.Blank(req.Result) {
					req.Result = e.Text()
				}
			}
			return w.Engine.OnSubagentEnded(ctx, req)
		}
	})}
}

// tableOldSummaries are engines that still have summaries of what was reset.
func tableOldSummaries() []broken {
	return []broken{caughtBy("contract.hidden", "summaries of what was reset are found", recalling(nil), func(w *wrongEngine) {
		w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
			res, err := w.Engine.Search(ctx, req)
			for _, e := range storedOf(w, req.Session) {
				if err == nil && e.Type == core.TypeSummary && strings.Contains(strings.Join(strings.Fields(e.Text()), " "), req.Query) {
					res.Found = append(res.Found, engine.Found{ID: e.ID, Session: e.Session, Seq: e.Seq, Type: e.Type, Excerpt: e.Text()})
				}
			}
			return res, err
		}
	}), caughtBy("contract.hidden", "summaries of what was reset are expanded", recalling(nil), func(w *wrongEngine) {
		w.expand = func(ctx context.Context, req engine.ExpandRequest) (engine.ExpandResult, error) {
			for _, e := range storedOf(w, req.Session) {
				if e.Type == core.TypeSummary && e.ID == strings.TrimPrefix(req.ID, "#") {
					return engine.ExpandResult{}, nil
				}
			}
			return w.Engine.Expand(ctx, req)
		}
	})}
}

// tableWords are engines that refuse words of settings which they do not know.
func tableWords() []broken {
	modes := []string{"", "normal", "fallback", "degraded"}
	reasons := []string{"", "provider_timeout", "provider_unavailable", "rate_limited", "context_overflow", "runtime_unavailable", "unknown"}
	words := map[string]func(s core.RuntimeSettings) bool{
		"modes": func(s core.RuntimeSettings) bool { return slices.Contains(modes, s.Mode) },
		"reasons": func(s core.RuntimeSettings) bool {
			return slices.Contains(reasons, s.FallbackReason) && slices.Contains(reasons, s.DegradedReason)
		},
		"sources": func(s core.RuntimeSettings) bool {
			return slices.Contains([]string{"", "configured", "default", "unknown"}, s.EngineSelection.Source)
		},
		"runtimes": func(s core.RuntimeSettings) bool { return s.Host == "" || s.Host == "openclaw" },
	}
	settings := map[string]func(req any) core.RuntimeSettings{
		"Assemble":   func(req any) core.RuntimeSettings { return req.(*core.AssembleRequest).Settings },   //nolint:forcetypeassert // by the method
		"Compact":    func(req any) core.RuntimeSettings { return req.(*core.CompactRequest).Settings },    //nolint:forcetypeassert // by the method
		"Bootstrap":  func(req any) core.RuntimeSettings { return req.(*core.BootstrapRequest).Settings },  //nolint:forcetypeassert // by the method
		"CommitTurn": func(req any) core.RuntimeSettings { return req.(*core.CommitTurnRequest).Settings }, //nolint:forcetypeassert // by the method
		"AfterTurn":  func(req any) core.RuntimeSettings { return req.(*core.AfterTurnRequest).Settings },  //nolint:forcetypeassert // by the method
		"Maintain":   func(req any) core.RuntimeSettings { return req.(*core.MaintainRequest).Settings },   //nolint:forcetypeassert // by the method
	}
	var out []broken
	refuses := func(method, what string) {
		out = append(out, caughtBy("contract.budget", method+" refuses unknown "+what, recalling(nil), func(w *wrongEngine) {
			w.around = func(ctx context.Context, name string, call func(context.Context) error) error {
				if name == method && !words[what](settings[method](ctx.Value(requested{}))) {
					return core.ErrInvalid
				}
				return call(ctx)
			}
		}))
	}
	for _, method := range slices.Sorted(maps.Keys(settings)) {
		refuses(method, "modes")
	}
	for _, what := range slices.Sorted(maps.Keys(words)) {
		if what != "modes" {
			refuses("Assemble", what)
		}
	}
	return out
}

// tableArms are engines whose turns name no arm.
func tableArms() []broken {
	var out []broken
	arms := func(name string, unnamed func(e *core.Entry, at int) bool) {
		out = append(out, caughtOver("contract.arm", name, recalling(nil), func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				at := -1
				return s.Store.Append(ctx, entriesOf(entries, func(e *core.Entry) {
					if at++; unnamed(e, at) {
						maps.DeleteFunc(e.Meta, func(_, value string) bool {
							return strings.HasPrefix(value, "arm of ") || slices.Contains([]string{"Arm A", "b/Ö.2", "c"}, value)
						})
					}
				}))
			}
		}))
	}
	arms("turns name no arm", func(*core.Entry, int) bool { return true })
	arms("the first turn alone names the arm", func(e *core.Entry, _ int) bool { return e.Turn > 1 })
	arms("of the turns of a call the first names the arm", func(_ *core.Entry, at int) bool { return at > 0 })
	return out
}

// tableNothingNew are engines that refuse a turn that brings nothing.
func tableNothingNew() []broken {
	var out []broken
	empty := func(name string, refused func(before int) bool) {
		out = append(out, caughtBy("contract.after-turn", name, recalling(nil), func(w *wrongEngine) {
			w.turn = func(ctx context.Context, req core.AfterTurnRequest) error {
				if n := req.PrePrompt; n == len(req.Messages) && refused(n) {
					return core.ErrInvalid
				}
				return w.Engine.AfterTurn(ctx, req)
			}
		}))
	}
	empty("a turn that brings nothing is refused", func(before int) bool { return before > 0 })
	empty("a turn of nothing at all is refused", func(before int) bool { return before == 0 })
	return out
}
