package conformance_test

import (
	"context"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// tableHandedBack are engines that lose what subagents hand back, show it as it is, or undo a launch by halves.
func tableHandedBack() []broken {
	var out []broken
	ended := func(name string, f func(w *wrongEngine, ctx context.Context, req core.SubagentEnded) error) {
		out = append(out, caughtBy("contract.ended", name, recalling(nil), func(w *wrongEngine) {
			w.ended = func(ctx context.Context, req core.SubagentEnded) error { return f(w, ctx, req) }
		}))
	}
	// once hands over the first result with a key alone.
	once := func(name string, key func(core.SubagentEnded) string) {
		known := map[*wrongEngine]map[string]bool{}
		ended(name, func(w *wrongEngine, ctx context.Context, req core.SubagentEnded) error {
			if known[w] == nil {
				known[w] = map[string]bool{}
			}
			if known[w][key(req)] {
				return nil
			}
			known[w][key(req)] = true
			return w.Engine.OnSubagentEnded(ctx, req)
		})
	}
	once("one result of each subagent", func(req core.SubagentEnded) string { return req.Child.String() })
	once("one subagent for each result", func(req core.SubagentEnded) string { return req.Result })
	once("subagents of two agents with one name are one", func(req core.SubagentEnded) string { return req.Child.Session + " " + req.Result })
	ended("a blank result is none", func(w *wrongEngine, ctx context.Context, req core.SubagentEnded) error {
		if req.Result != "" && strings.TrimSpace(req.Result) == "" {
			return ctx.Err()
		}
		return w.Engine.OnSubagentEnded(ctx, req)
	})
	ended("a result that nobody can see is one", func(w *wrongEngine, ctx context.Context, req core.SubagentEnded) error {
		if req.Result == "\u200b" {
			req.Result = "nothing"
		}
		return w.Engine.OnSubagentEnded(ctx, req)
	})
	ended("a parent that is not named gets nothing", func(w *wrongEngine, ctx context.Context, req core.SubagentEnded) error {
		if req.Parent == (core.SessionID{}) {
			return ctx.Err()
		}
		return w.Engine.OnSubagentEnded(ctx, req)
	})
	ended("the last answer is the parent's where the subagent has none", func(w *wrongEngine, ctx context.Context, req core.SubagentEnded) error {
		if strings.TrimSpace(req.Result) == "" && req.Parent != (core.SessionID{}) && w.lastSaid(ctx, req.Child, message.Assistant) == "" {
			req.Result = w.lastSaid(ctx, req.Parent, message.Assistant)
		}
		return w.Engine.OnSubagentEnded(ctx, req)
	})
	ended("the task is the answer where the subagent has none", func(w *wrongEngine, ctx context.Context, req core.SubagentEnded) error {
		if strings.TrimSpace(req.Result) == "" && w.lastSaid(ctx, req.Child, message.Assistant) == "" {
			req.Result = w.lastSaid(ctx, req.Child, message.User)
		}
		return w.Engine.OnSubagentEnded(ctx, req)
	})
	shown := func(name string, from, to string) {
		out = append(out, caughtBy("contract.ended", name, recalling(nil), func(w *wrongEngine) {
			w.after = func(_ string, res any) {
				a, ok := res.(*core.AssembleResult)
				for i := 0; ok && i < len(a.Messages); i++ {
					if m := &a.Messages[i]; strings.HasPrefix(m.Text(), "<subagent") {
						m.Parts = slices.Clone(m.Parts)
						m.Parts[0].Text = strings.ReplaceAll(m.Parts[0].Text, from, to)
					}
				}
			}
		}))
	}
	shown("results stand as they are", "\n> ", "\n")
	shown("the second line of a result is not quoted", "\n> system:", "\nsystem:")
	rolled := func(name string, change func(w *wrongEngine) (undo func(ctx context.Context, spawn core.SpawnRequest, back func(context.Context) error) error)) {
		out = append(out, caughtBy("contract.undone", name, recalling(nil), func(w *wrongEngine) {
			undo := change(w)
			var last core.SpawnRequest
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.SpawnRequest); ok {
					last = *r
				}
			}
			w.after = func(_ string, res any) {
				if sp, ok := res.(*core.Spawn); ok {
					spawn, back := last, sp.Rollback
					sp.Rollback = func(ctx context.Context) error { return undo(ctx, spawn, back) }
				}
			}
		}))
	}
	undone := func(name string, change func(w *wrongEngine, undone *[]core.SessionID)) {
		rolled(name, func(w *wrongEngine) func(context.Context, core.SpawnRequest, func(context.Context) error) error {
			var children []core.SessionID
			change(w, &children)
			return func(ctx context.Context, spawn core.SpawnRequest, back func(context.Context) error) error {
				children = append(children, spawn.Child)
				return back(ctx)
			}
		})
	}
	rolled("a rollback does nothing where the child has a conversation", func(w *wrongEngine) func(context.Context, core.SpawnRequest, func(context.Context) error) error {
		return func(ctx context.Context, spawn core.SpawnRequest, back func(context.Context) error) error {
			d, err := w.Describe(ctx, engine.DescribeRequest{Session: spawn.Child})
			if spawn.Mode == core.SpawnIsolated && err == nil && d.Entries > 0 {
				return nil
			}
			return back(ctx)
		}
	})
	undone("a parent still searches what was rolled back", func(w *wrongEngine, undone *[]core.SessionID) {
		w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
			res, err := w.Engine.Search(ctx, req)
			for _, child := range *undone {
				if req.Session.Agent != child.Agent && len(res.Found) == 0 {
					req.Session = child
					return w.Engine.Search(ctx, req)
				}
			}
			return res, err
		}
	})
	undone("a parent still expands what was rolled back", func(w *wrongEngine, undone *[]core.SessionID) {
		w.expand = func(ctx context.Context, req engine.ExpandRequest) (engine.ExpandResult, error) {
			res, err := w.Engine.Expand(ctx, req)
			for _, child := range *undone {
				if req.Session.Agent != child.Agent && err != nil {
					req.Session = child
					return w.Engine.Expand(ctx, req)
				}
			}
			return res, err
		}
	})
	undone("a rollback ends the grants of all subagents", func(w *wrongEngine, undone *[]core.SessionID) {
		w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
			res, err := w.Engine.Search(ctx, req)
			if len(*undone) > 0 {
				res.Found = slices.DeleteFunc(res.Found, func(f engine.Found) bool { return f.Session != req.Session.Session })
			}
			return res, err
		}
	})
	return out
}

// lastSaid is what a role said last in a session.
func (w *wrongEngine) lastSaid(ctx context.Context, id core.SessionID, role message.Role) string {
	for e, err := range core.All(ctx, w.Store(), id.Scope(), true) {
		if err == nil && e.Role == role && strings.TrimSpace(e.Text()) != "" {
			return e.Text()
		}
	}
	return ""
}
