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
)

// tableContract are engines that break one sentence of the contract, found by somebody who read nothing else.
func tableContract() []broken {
	return slices.Concat(tableReached(), tableEnded())
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
