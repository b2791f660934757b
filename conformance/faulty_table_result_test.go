package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/internal/needs"
)

// recalling is an engine that recalls in every turn, and compacts with a model.
func recalling(change func(*engine.Config)) setup {
	return setup{compactor: "summary", retriever: words, scored: true, change: func(c *engine.Config) {
		if c.Recall.Gate = false; change != nil {
			change(c)
		}
	}}
}

// caughtBy is a broken engine that the named check alone must catch.
func caughtBy(id, name string, s setup, change func(*wrongEngine)) broken {
	return brokenEngineOf(id, name, s, change, conformance.WithExactly(40, 20260301), conformance.WithClaims(id))
}

// tableResults are engines that are wrong about themselves, or the second time, or beside others: each is caught by the check that names the rule.
func tableResults() []broken {
	var out []broken
	res := func(id, name string, f func(*core.AssembleResult)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) {
			w.after = func(_ string, res any) {
				if a, ok := res.(*core.AssembleResult); ok {
					f(a)
				}
			}
		}))
	}
	choice := func(id, name string, f func(a *core.AssembleResult, c *window.Choice)) {
		res(id, name, func(a *core.AssembleResult) {
			for i := range a.Choices {
				f(a, &a.Choices[i])
			}
		})
	}
	without := func(id, name string, drop func(window.Choice) bool) {
		res(id, name, func(a *core.AssembleResult) { a.Choices = slices.DeleteFunc(a.Choices, drop) })
	}
	tools := func(a *core.AssembleResult, c *window.Choice) bool {
		return c.Message >= 0 && a.Messages[c.Message].HasResults()
	}
	choice("choices.form", "a reason of its own for tools", func(a *core.AssembleResult, c *window.Choice) {
		if tools(a, c) {
			c.Reason = "because"
		}
	})
	choice("choices.form", "counts of two", func(a *core.AssembleResult, c *window.Choice) {
		if tools(a, c) {
			c.Count = 2
		}
	})
	choice("choices.form", "negative costs of what is out", func(_ *core.AssembleResult, c *window.Choice) {
		if c.Message < 0 {
			c.Tokens = -c.Tokens
		}
	})
	choice("choices.form", "a stub of no kind", func(_ *core.AssembleResult, c *window.Choice) {
		if c.Stub != "" {
			c.Stub = "short"
		}
	})
	choice("choices.form", "no source", func(_ *core.AssembleResult, c *window.Choice) { c.Source = "" })
	choice("choices.entries", "the entry of the message before", func(a *core.AssembleResult, c *window.Choice) {
		if c.Message > 3 && c.Reason == window.ReasonTail && a.Messages[c.Message-1].Entry != "" {
			c.Entry = a.Messages[c.Message-1].Entry
		}
	})
	choice("choices.entries", "stubs where nothing is shortened", func(a *core.AssembleResult, c *window.Choice) {
		if c.Reason == window.ReasonTail && len(a.Messages) > 8 {
			c.Stub = window.Clipped
		}
	})
	choice("choices.entries", "stubs lost", func(_ *core.AssembleResult, c *window.Choice) { c.Stub = "" })
	masked := setup{compactor: "mask", retriever: words, change: recalling(nil).change}
	kinds := func(name string, f func(window.StubKind) window.StubKind) {
		out = append(out, caughtBy("choices.entries", name, masked, func(w *wrongEngine) {
			w.after = func(_ string, res any) {
				if a, ok := res.(*core.AssembleResult); ok {
					for i := range a.Choices {
						a.Choices[i].Stub = f(a.Choices[i].Stub)
					}
				}
			}
		}))
	}
	one := func(of, as window.StubKind) func(window.StubKind) window.StubKind {
		return func(kind window.StubKind) window.StubKind {
			if kind == of {
				return as
			}
			return kind
		}
	}
	kinds("what is masked told as clipped", one(window.Masked, window.Clipped))
	kinds("what is clipped told as masked", one(window.Clipped, window.Masked))
	without("contract.recalled", "what had no room not listed", func(c window.Choice) bool { return c.Reason == window.OutAllowance })
	out = append(out, caughtBy("contract.recalled", "pages of twenty", recalling(nil), func(w *wrongEngine) {
		w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
			if req.Limit <= engine.MaxFound {
				req.Limit = min(req.Limit, 20)
			}
			return w.Engine.Search(ctx, req)
		}
	}))
	choice("contract.recalled", "no scores", func(_ *core.AssembleResult, c *window.Choice) { c.Score = 0 })
	choice("contract.recalled", "no scores of what had no room", func(_ *core.AssembleResult, c *window.Choice) {
		if c.Message < 0 {
			c.Score = 0
		}
	})
	choice("choices.entries", "what was recalled is nobody's", func(_ *core.AssembleResult, c *window.Choice) {
		if c.Reason == window.ReasonRecalled {
			c.Entry = "nobody"
		}
	})
	choice("choices.entries", "system messages in front called recent", func(_ *core.AssembleResult, c *window.Choice) {
		if c.Reason == window.ReasonSystem {
			c.Reason = window.ReasonTail
		}
	})
	choice("choices.entries", "what a rule left out called shown", func(a *core.AssembleResult, c *window.Choice) {
		if c.Reason == window.OutRule && c.Entry != "" && len(a.Messages) > 0 && !a.Messages[0].HasResults() {
			c.Message, c.Reason = 0, window.ReasonTail
		}
	})
	without("choices.out", "heartbeats not listed", func(c window.Choice) bool { return c.Reason == window.OutHeartbeat })
	without("choices.out", "what was erased not listed", func(c window.Choice) bool { return c.Reason == window.OutErased })
	choice("choices.out", "heartbeats for a rule", func(_ *core.AssembleResult, c *window.Choice) {
		if c.Reason == window.OutHeartbeat {
			c.Reason = window.OutRule
		}
	})
	choice("choices.out", "as if summaries stood for all", func(_ *core.AssembleResult, c *window.Choice) {
		if c.Reason == window.OutBudget {
			c.Reason = window.OutCompacted
		}
	})
	choice("choices.tokens", "no cost of tools", func(a *core.AssembleResult, c *window.Choice) {
		if tools(a, c) {
			c.Tokens = 0
		}
	})
	res("budget.reckoned", "twice as much with tools", func(a *core.AssembleResult) {
		if slices.ContainsFunc(a.Messages, message.Message.HasResults) {
			a.EstimatedTokens *= 2
		}
	})
	res("budget.authority", "the host's where the window moved", func(a *core.AssembleResult) {
		if a.Stepped {
			a.PromptAuthority = core.AuthorityHost
		}
	})
	res("cache.epoch", "the window always moves", func(a *core.AssembleResult) { a.Stepped = a.Stepped || len(a.Messages) > 8 })
	res("cache.epoch", "the window never moves", func(a *core.AssembleResult) { a.Stepped = false })
	out = append(out, caughtBy("cache.epoch", "another epoch with every call", recalling(nil), func(w *wrongEngine) {
		var n atomic.Uint64
		w.after = func(_ string, res any) {
			if a, ok := res.(*core.AssembleResult); ok && len(a.Messages) > 6 {
				a.Epoch += n.Add(1)
			}
		}
	}))
	res("failure.named", "warnings without a part", func(a *core.AssembleResult) {
		if len(a.Messages) > 12 {
			a.Warnings = append(a.Warnings, "all well")
		}
	})
	out = append(out, caughtBy("failure.named", "problems without a part", recalling(nil), func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if i, ok := res.(*core.Info); ok {
				i.Health = slices.Clone(i.Health)
				for n := range i.Health {
					i.Health[n].Part = ""
				}
			}
		}
	}))
	return slices.Concat(out, tableModes(), tableAgain())
}

// tableModes are engines that take a request for another one.
func tableModes() []broken {
	var out []broken
	mode := func(name string, s setup, f func(*core.AssembleRequest)) {
		out = append(out, caughtBy("contract.recall", name, s, func(w *wrongEngine) {
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.AssembleRequest); ok {
					f(r)
				}
			}
		}))
	}
	is := func(from, to core.PromptMode) func(*core.AssembleRequest) {
		return func(r *core.AssembleRequest) {
			if r.PromptMode == from {
				r.PromptMode = to
			}
		}
	}
	across := recalling(func(c *engine.Config) { c.Recall.AcrossSessions = true })
	mode("minimal is full", recalling(nil), is(core.PromptMinimal, core.PromptFull))
	mode("minimal is full, across sessions", across, is(core.PromptMinimal, core.PromptFull))
	mode("minimal is none", recalling(nil), is(core.PromptMinimal, core.PromptNone))
	mode("none is minimal", recalling(nil), is(core.PromptNone, core.PromptMinimal))
	mode("no mode is minimal", across, is("", core.PromptMinimal))
	out = append(out, caughtBy("contract.warnings", "a retriever that fails, and no word of it", recalling(nil), func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if a, ok := res.(*core.AssembleResult); ok {
				a.Warnings = nil
			}
		}
	}))
	out = append(out, caughtBy("contract.warnings", "a retriever that fails again, and no word of it", recalling(nil), func(w *wrongEngine) {
		var mu sync.Mutex
		said := map[string]bool{}
		w.after = func(_ string, res any) {
			a, ok := res.(*core.AssembleResult)
			mu.Lock()
			defer mu.Unlock()
			if ok && len(a.Warnings) > 0 {
				if word := fmt.Sprint(a.Warnings); said[word] {
					a.Warnings = nil
				} else {
					said[word] = true
				}
			}
		}
	}))
	out = append(out, caughtBy("contract.warnings", "no word of it inside a turn", recalling(nil), func(w *wrongEngine) {
		var mu sync.Mutex
		call := core.CallPrompt
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok {
				mu.Lock()
				call = r.Call
				mu.Unlock()
			}
		}
		w.after = func(_ string, res any) {
			mu.Lock()
			defer mu.Unlock()
			if a, ok := res.(*core.AssembleResult); ok && call == core.CallLoop {
				a.Warnings = nil
			}
		}
	}))
	for name, f := range map[string]func([]string) []string{
		"the first alone": func(s []string) []string { return s[:min(1, len(s))] },
		"backwards":       func(s []string) []string { s = slices.Clone(s); slices.Reverse(s); return s },
	} {
		out = append(out, caughtBy("contract.sections", name, recalling(nil), func(w *wrongEngine) {
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.AssembleRequest); ok {
					r.Memory.Sections = f(r.Memory.Sections)
				}
			}
		}))
	}
	out = append(out, caughtBy("contract.sections", "in front of what the engine has to say", recalling(nil), func(w *wrongEngine) {
		var mu sync.Mutex
		var sections []string
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok {
				mu.Lock()
				defer mu.Unlock()
				sections = r.Memory.Sections
			}
		}
		w.after = func(_ string, res any) {
			mu.Lock()
			defer mu.Unlock()
			a, ok := res.(*core.AssembleResult)
			if !ok || len(sections) == 0 {
				return
			}
			if at := strings.Index(a.SystemPromptAddition, sections[0]); at > 0 {
				a.SystemPromptAddition = a.SystemPromptAddition[at:] + "\n\n" + strings.TrimSpace(a.SystemPromptAddition[:at])
			}
		}
	}))
	out = append(out, caughtBy("contract.covers", "what a summary stands for called left", recalling(nil), func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if a, ok := res.(*core.AssembleResult); ok {
				for i := range a.Choices {
					if a.Choices[i].Reason == window.OutCompacted {
						a.Choices[i].Reason = window.OutBudget
					}
				}
			}
		}
	}))
	for name, f := range map[string]func(req any){
		"without a mode a fork": func(req any) {
			if r, ok := req.(*core.SpawnRequest); ok && r.Mode == "" {
				r.Mode = core.SpawnFork
			}
		},
		"without a time no grant": func(req any) {
			if r, ok := req.(*core.SpawnRequest); ok && r.TTL == 0 {
				r.TTL = time.Nanosecond
			}
		},
		"the first line of a result": func(req any) {
			if r, ok := req.(*core.SubagentEnded); ok {
				r.Result, _, _ = strings.Cut(r.Result, "\n")
			}
		},
	} {
		out = append(out, caughtBy("contract.reach", name, recalling(nil), func(w *wrongEngine) { w.before = func(_ string, req any) { f(req) } }))
	}
	out = append(out, caughtBy("contract.nested", "a fork of a fork begins with nothing", recalling(nil), func(w *wrongEngine) {
		var forks sync.Map
		w.before = func(_ string, req any) {
			r, ok := req.(*core.SpawnRequest)
			if !ok {
				return
			}
			forks.Store(r.Child, true)
			if _, forked := forks.Load(r.Parent); forked {
				r.Mode = core.SpawnIsolated
			}
		}
	}))
	out = append(out, caughtBy("contract.pages", "half a character at the end of a page", recalling(nil), func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if r, ok := res.(*engine.ExpandResult); ok && r.Next > 0 && len(r.Found) > 0 {
				r.Found[0].Excerpt = strings.ToValidUTF8(r.Found[0].Excerpt[:len(r.Found[0].Excerpt)-1], "")
			}
		}
	}))
	return out
}

// tableAgain are engines that are wrong the second time, after a restart, or beside others.
func tableAgain() []broken {
	var out []broken
	second := func(name string, f func(r *core.CompactResult, old core.CompactResult)) {
		out = append(out, caughtBy("contract.again", name, recalling(nil), func(w *wrongEngine) {
			var mu sync.Mutex
			var old core.CompactResult
			w.after = func(_ string, res any) {
				mu.Lock()
				defer mu.Unlock()
				if r, ok := res.(*core.CompactResult); ok && r.Compacted {
					now := *r
					if old.Compacted {
						f(r, old)
					}
					old = now
				}
			}
		}))
	}
	second("fewer tokens than there are", func(r *core.CompactResult, _ core.CompactResult) { r.TokensAfter /= 2 })
	second("the entry that was kept before", func(r *core.CompactResult, old core.CompactResult) { r.FirstKept = old.FirstKept })
	second("the summary of before", func(r *core.CompactResult, old core.CompactResult) { r.Summary = old.Summary })
	second("no summary", func(r *core.CompactResult, _ core.CompactResult) { r.Summary = "" })
	second("a successor", func(r *core.CompactResult, _ core.CompactResult) {
		r.Successor = core.SessionID{Agent: "agent-a", Session: "next"}
	})
	before := func(id, name string, f func(req any)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) { w.before = func(_ string, req any) { f(req) } }))
	}
	var asked atomic.Int64
	before("contract.again", "wishes once", func(req any) {
		if r, ok := req.(*core.CompactRequest); ok && asked.Add(1) > 1 {
			r.Instructions = ""
		}
	})
	before("contract.again", "any budget where none is named", func(req any) {
		if r, ok := req.(*core.CompactRequest); ok && r.Budget == 0 {
			r.Budget = 1 << 20
		}
	})
	before("contract.keys", "keys cut off", func(req any) {
		switch r := req.(type) {
		case *core.IngestRequest:
			r.IdempotencyKey = r.IdempotencyKey[:min(len(r.IdempotencyKey), 64)]
		case *core.IngestBatchRequest:
			r.IdempotencyKey = r.IdempotencyKey[:min(len(r.IdempotencyKey), 64)]
		}
	})
	before("contract.keys", "no key for a batch of one", func(req any) {
		if r, ok := req.(*core.IngestBatchRequest); ok && len(r.Messages) == 1 {
			r.IdempotencyKey = ""
		}
	})
	before("contract.digest", "a digest that does not match is taken", func(req any) {
		if r, ok := req.(*core.AssembleRequest); ok && r.Transcript != nil {
			t := *r.Transcript
			t.Skipped, t.Digest = 0, ""
			r.Transcript = &t
		}
	})
	before("contract.known", "failures of tools as successes", func(req any) {
		if r, ok := req.(*core.IngestBatchRequest); ok {
			r.Messages = slices.Clone(r.Messages)
			for i := range r.Messages {
				r.Messages[i].Parts = slices.Clone(r.Messages[i].Parts)
				for j := range r.Messages[i].Parts {
					r.Messages[i].Parts[j].IsError = false
				}
			}
		}
	})
	before("contract.known", "an agent's scope is one session's", func(req any) {
		if r, ok := req.(*engine.ForgetRequest); ok && r.Scope.Session == "" && r.Scope.Agent != "" {
			r.Scope.Session = "main"
		}
	})
	out = append(out, caughtBy("contract.keys", "new messages beside known ones are known", recalling(nil), func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if r, ok := res.(*core.IngestResult); ok && r.Duplicates > 0 {
				r.Duplicates, r.Ingested = r.Duplicates+r.Ingested, 0
			}
		}
	}), caughtBy("contract.concurrent", "busy", recalling(nil), func(w *wrongEngine) {
		var in sync.Mutex
		w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
			if !in.TryLock() {
				return errors.New("broken: busy")
			}
			defer in.Unlock()
			time.Sleep(time.Millisecond)
			return call(ctx)
		}
	}), caughtBy("contract.concurrent", "one list for all results", recalling(nil), func(w *wrongEngine) {
		var mu sync.Mutex
		var last []message.Message
		w.after = func(_ string, res any) {
			if a, ok := res.(*core.AssembleResult); ok {
				mu.Lock()
				defer mu.Unlock()
				for i := range last {
					last[i].Entry = "gone"
				}
				last = a.Messages
			}
		}
	}))
	return out
}

// TestFaultyResults: what the engines of this file do wrong is nothing that the sound one does.
func TestFaultyResults(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	unscored := recalling(nil)
	unscored.retriever, unscored.scored = func() core.Retriever { return &listener{} }, false
	for _, s := range []setup{recalling(nil), recalling(func(c *engine.Config) { c.Recall.AcrossSessions = true }), unscored} {
		for _, f := range conformance.ExamineEngine(t, conformance.Combination{Name: "sound", Open: s.open, AcrossSessions: true, Scored: s.scored}, cheap, few(20)...) {
			t.Errorf("the sound engine: %s", f)
		}
	}
}
