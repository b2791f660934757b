package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// tableContract are engines that break one sentence of the contract, found by somebody who read nothing else.
func tableContract() []broken {
	return slices.Concat(tableReached(), tableEnded(), tableKept(), tableSaid(), tableWayBack(), tableForgotten(), tableLoud(), tableAtOnce(), tableFurther(), tableSame(), tableErasures(), tableFailing(), tableSeveral(), tableReach(), tableCourses(), tableTurns(), tableCompacted(), tableSentences(), tableUpkeep(), tableOutlasting())
}

// tableReached are engines whose way back shows too much, or the wrong thing first.
func tableReached() []broken {
	var out []broken
	for _, id := range []string{"contract.back", "isolation.back"} {
		out = append(out, caughtBy(id, "ids of the agent's other sessions are expanded", recalling(nil), func(w *wrongEngine) {
			w.expand = func(ctx context.Context, req engine.ExpandRequest) (engine.ExpandResult, error) {
				res, err := w.Engine.Expand(ctx, req)
				if errors.Is(err, core.ErrNotFound) {
					if got, err := w.Store().Get(ctx, core.Scope{Agent: req.Session.Agent}, []string{strings.TrimPrefix(req.ID, "#")}); err == nil {
						req.Session = got[0].SessionID()
						return w.Engine.Expand(ctx, req)
					}
				}
				return res, err
			}
		}))
	}
	search := func(name string, f func(*engine.SearchResult)) {
		out = append(out, caughtBy("contract.back", name, recalling(nil), func(w *wrongEngine) {
			w.after = func(_ string, res any) {
				if r, ok := res.(*engine.SearchResult); ok {
					f(r)
				}
			}
		}))
	}
	search("the best of a page comes last", func(r *engine.SearchResult) { slices.Reverse(r.Found) })
	search("excerpts are called whole", func(r *engine.SearchResult) {
		for i := range r.Found {
			r.Found[i].Whole = true
		}
	})
	return out
}

// tableEnded are engines that end subagents wrongly.
func tableEnded() []broken {
	var out []broken
	// f is given how many subagents have ended and how often this one was ended before; it may change the request, and says whether it goes on.
	ended := func(name string, f func(r *core.SubagentEnded, ended, before int) bool) {
		out = append(out, caughtBy("contract.subagent", name, recalling(nil), func(w *wrongEngine) {
			var mu sync.Mutex
			times := map[core.SessionID]int{}
			w.ended = func(ctx context.Context, req core.SubagentEnded) error {
				mu.Lock()
				before := times[req.Child]
				times[req.Child]++
				goes := f(&req, len(times), before)
				mu.Unlock()
				if !goes {
					return ctx.Err()
				}
				return w.Engine.OnSubagentEnded(ctx, req)
			}
		}))
	}
	ended("nothing ends that failed", func(r *core.SubagentEnded, _, _ int) bool { return r.Reason == "completed" })
	ended("what failed and said nothing goes on", func(r *core.SubagentEnded, _, _ int) bool { return r.Reason == "completed" || r.Result != "" })
	ended("told once more it stores once more", func(r *core.SubagentEnded, _, before int) bool {
		if before > 0 && r.Result != "" {
			r.Result += fmt.Sprintf(" (%d)", before)
		}
		return true
	})
	ended("results grow from the second on", func(r *core.SubagentEnded, ended, _ int) bool {
		if ended > 1 && r.Result != "" {
			r.Result += "\n" + strings.Repeat(".", ended)
		}
		return true
	})
	return out
}

// tableKept are engines that store, or keep, something else than they should.
func tableKept() []broken {
	var out []broken
	before := func(id, name string, f func(req any)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) { w.before = func(_ string, req any) { f(req) } }))
	}
	// said takes the mark of a filler away from copies of messages.
	said := func(list []message.Message) []message.Message {
		list = slices.Clone(list)
		for i := range list {
			list[i].Type = ""
		}
		return list
	}
	before("contract.commit", "fillers of turns are stored", func(req any) {
		if r, ok := req.(*core.CommitTurnRequest); ok {
			r.Messages = said(r.Messages)
		}
	})
	before("contract.after-turn", "fillers of turns are stored", func(req any) {
		if r, ok := req.(*core.AfterTurnRequest); ok {
			r.Messages = said(r.Messages)
		}
	})
	before("contract.given", "the first message of a transcript loses its bytes", func(req any) {
		if r, ok := req.(*core.AssembleRequest); ok && r.Transcript != nil && len(r.Transcript.Messages) > 0 {
			r.Transcript.Messages[0].Raw = nil
		}
	})
	before("contract.budget", "a host's roles cost what the user's costs", func(req any) {
		if r, ok := req.(*core.IngestRequest); ok && r.Message.Type != message.Filler {
			r.Message.Type = ""
		}
	})
	for _, id := range []string{"contract.ingest", "ids.form"} {
		s := recalling(nil)
		s.ids = func(next func() string) func() string { return func() string { return "id:" + next() } }
		out = append(out, caughtBy(id, "ids with a colon", s, func(*wrongEngine) {}))
	}
	receipts := func(name string, f func([]engine.Receipt) []engine.Receipt) {
		out = append(out, caughtBy("contract.forget", name, recalling(nil), func(w *wrongEngine) {
			w.receipts = func(ctx context.Context, agent string) ([]engine.Receipt, error) {
				got, err := w.Engine.Receipts(ctx, agent)
				return f(got), err
			}
		}))
	}
	receipts("no receipts", func([]engine.Receipt) []engine.Receipt { return nil })
	receipts("the newest receipt first", func(r []engine.Receipt) []engine.Receipt { slices.Reverse(r); return r })
	out = append(out, caughtBy("contract.score", "outcomes are lost", recalling(nil), func(w *wrongEngine) {
		w.score = func(ctx context.Context, _ engine.Outcome) error { return ctx.Err() }
	}), caughtBy("contract.score", "the first outcome stays", recalling(nil), func(w *wrongEngine) {
		w.score = func(ctx context.Context, o engine.Outcome) error {
			got, err := w.Outcomes(ctx, o.Session.Agent)
			if err == nil && slices.ContainsFunc(got, func(g engine.Outcome) bool { return g.Session == o.Session && g.Turn == o.Turn && g.Name == o.Name }) {
				return nil
			}
			return w.Engine.Score(ctx, o)
		}
	}), caughtBy("contract.arm", "arms are not recorded", recalling(nil), func(w *wrongEngine) {
		w.arm = func(ctx context.Context, _ core.SessionID, choose func(string) string) (string, error) {
			return choose(""), ctx.Err()
		}
	}), caughtBy("contract.arm", "arms end with the process", recalling(nil), func(w *wrongEngine) {
		arms := map[core.SessionID]string{}
		w.arm = func(ctx context.Context, id core.SessionID, choose func(string) string) (string, error) {
			arms[id] = choose(arms[id])
			return arms[id], ctx.Err()
		}
		w.after = func(_ string, res any) {
			if d, ok := res.(*engine.DescribeResult); ok {
				d.Arm = arms[d.Session]
			}
		}
	}))
	return out
}

// tableSaid are engines that say something wrong, or hear nothing.
func tableSaid() []broken {
	var out []broken
	choice := func(name string, f func(*window.Choice)) {
		out = append(out, caughtBy("contract.choices", name, recalling(nil), func(w *wrongEngine) {
			w.after = func(_ string, res any) {
				if a, ok := res.(*core.AssembleResult); ok {
					for i := range a.Choices {
						f(&a.Choices[i])
					}
				}
			}
		}))
	}
	for name, to := range map[string]bool{"a compaction is never due": false, "a compaction is due as long as something is out": true} {
		out = append(out, caughtBy("contract.due", name, recalling(nil), func(w *wrongEngine) {
			w.after = func(_ string, res any) {
				if a, ok := res.(*core.AssembleResult); ok {
					a.CompactionDue = to && slices.ContainsFunc(a.Choices, func(c window.Choice) bool { return c.Message < 0 })
				}
			}
		}))
	}
	choice("what is pinned is recent", func(c *window.Choice) {
		if c.Reason == window.ReasonPinned {
			c.Reason = window.ReasonTail
		}
	})
	choice("what is out costs nothing", func(c *window.Choice) {
		if c.Message < 0 {
			c.Tokens = 0
		}
	})
	out = append(out, caughtBy("contract.steered", "the host's prompt is not looked at", recalling(nil), func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok {
				r.Prompt = ""
			}
		}
	}))
	first := func(list []message.Message) string {
		if len(list) == 0 {
			return ""
		}
		return list[0].Text()
	}
	// What a call was about, by the method: each error that holds it is seen by another check.
	for id, of := range map[string]string{"contract.invalid": "Ingest", "contract.tiny": "Assemble", "contract.cancel": "CommitTurn", "contract.faults": "Ingest"} {
		out = append(out, caughtBy(id, "errors of "+of+" quote the message", recalling(nil), func(w *wrongEngine) {
			text := ""
			w.before = func(_ string, req any) {
				switch r := req.(type) {
				case *core.IngestRequest:
					text = r.Message.Text()
				case *core.CommitTurnRequest:
					text = first(r.Messages)
				case *core.AssembleRequest:
					if text = ""; r.Transcript != nil {
						text = first(r.Transcript.Messages)
					}
				}
			}
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				err := call(ctx)
				if err != nil && method == of {
					return fmt.Errorf("broken: %q: %w", text, err)
				}
				return err
			}
		}))
	}
	out = append(out, caughtBy("contract.concurrent", "one lock for all sessions", recalling(nil), func(w *wrongEngine) {
		var one sync.Mutex
		w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
			if slices.Contains([]string{"Ingest", "Assemble", "Compact"}, method) {
				one.Lock()
				defer one.Unlock()
			}
			return call(ctx)
		}
	}), caughtBy("contract.concurrent", "one lock for all compactions", recalling(nil), func(w *wrongEngine) {
		var one sync.Mutex
		w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
			if method == "Compact" {
				one.Lock()
				defer one.Unlock()
			}
			return call(ctx)
		}
	}))
	return out
}
