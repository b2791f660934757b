package conformance_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// tableErasures are engines whose erasures leave something, or take too much.
func tableErasures() []broken {
	return slices.Concat(tableErasedPart(), tableErasedKeys(), tableErasedViews(), tableComeAgain())
}

// tableErasedPart are engines that erase a part of what was asked for.
func tableErasedPart() []broken {
	var out []broken
	// f is given what a scope and times ask for, and returns what is erased of it.
	part := func(id, name string, f func(req engine.ForgetRequest, there []core.Entry) []core.Entry) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) {
			w.forget = func(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
				if req.Purge {
					return w.Engine.Forget(ctx, req)
				}
				var there, asked []core.Entry
				var err error
				if len(req.Entries) > 0 {
					if there, err = w.Store().Get(ctx, req.Scope, req.Entries); err != nil {
						return w.Engine.Forget(ctx, req)
					}
				} else {
					for e, err := range core.All(ctx, w.Store(), req.Scope, false) {
						if err == nil && !core.Reserved(e.Session) {
							there = append(there, e)
						}
					}
				}
				for _, e := range f(req, there) {
					if (req.From.IsZero() || !e.Time.Before(req.From)) && (req.To.IsZero() || e.Time.Before(req.To)) {
						asked = append(asked, e)
					}
				}
				if len(asked) == 0 {
					return engine.Receipt{Request: req}, ctx.Err()
				}
				req.Entries = nil
				for _, e := range asked {
					req.Entries = append(req.Entries, e.ID)
				}
				return w.Engine.Forget(ctx, req)
			}
		}))
	}
	without := func(name string, is func(e core.Entry) bool) {
		part("contract.erased", name, func(req engine.ForgetRequest, there []core.Entry) []core.Entry {
			if len(req.Entries) > 0 {
				return there
			}
			return slices.DeleteFunc(there, is)
		})
	}
	without("heartbeats stay", func(e core.Entry) bool { return e.Type == core.TypeHeartbeat })
	without("results of subagents stay", func(e core.Entry) bool { return e.Type == core.TypeSubagent })
	without("system messages stay", func(e core.Entry) bool { return e.Role == message.System })
	without("results of tools stay", func(e core.Entry) bool { return e.Role == message.Tool })
	for name, n := range map[string]int{"the first twenty": 20, "the first hundred": 100, "those of the first page": core.MaxPage} {
		part("contract.erased", name, func(_ engine.ForgetRequest, there []core.Entry) []core.Entry { return there[:min(len(there), n)] })
	}
	part("contract.traces", "made again it looks at what is not empty yet", func(_ engine.ForgetRequest, there []core.Entry) []core.Entry {
		return slices.DeleteFunc(there, func(e core.Entry) bool { return e.Type == core.TypeErased })
	})
	return out
}

// tableErasedKeys are engines whose empty places tell what was said.
func tableErasedKeys() []broken {
	var out []broken
	update := func(name string, f func(old core.Entry, c *core.Change)) {
		out = append(out, caughtOver("contract.erased", name, recalling(nil), onUpdate(func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c *core.Change) error {
			if c.Type == core.TypeErased {
				f(older(ctx, s, scope, id), c)
			}
			return nil
		})))
	}
	update("keys stay", func(_ core.Entry, c *core.Change) { c.Key = "" })
	update("fingerprints stay", func(old core.Entry, c *core.Change) { c.Fingerprint = old.Fingerprint })
	update("fingerprints are kept beside", func(old core.Entry, c *core.Change) { c.Meta["was"] = old.Fingerprint })
	return out
}

// tableErasedViews are engines that erase what is stored, and leave it in views and summaries.
func tableErasedViews() []broken {
	var out []broken
	// f changes the view that an erasure stores; old is the one before it.
	view := func(name string, across bool, f func(old core.View, v *core.View)) {
		s := recalling(func(c *engine.Config) { c.Recall.AcrossSessions = across })
		out = append(out, caughtOver("contract.traces", name, s, func(s *brokenStore) {
			s.swap = func(ctx context.Context, v core.View) error {
				old, err := s.LoadView(context.WithoutCancel(ctx), v.Session)
				if err == nil && v.Erased > old.Erased {
					v = v.Clone()
					f(old, &v)
				}
				return s.Store.SwapView(ctx, v)
			}
		}))
	}
	all := func(old core.View, v *core.View) {
		version := v.Version
		*v = old.Clone()
		v.Version = version
	}
	adopts := func(v core.View, of func(core.SessionID) bool) bool {
		return slices.ContainsFunc(v.Path, func(sp core.Span) bool { return sp.Session != nil && *sp.Session != v.Session && of(*sp.Session) })
	}
	view("shortened messages stay", false, func(old core.View, v *core.View) { v.Stubs = old.Stubs })
	view("recall blocks stay", false, func(old core.View, v *core.View) { v.Recall, v.Kept = old.Recall, old.Kept })
	view("recall blocks of other sessions stay", true, func(old core.View, v *core.View) {
		if len(v.Inherited) == 0 && strings.HasPrefix(v.Session.Session, "other") {
			v.Recall, v.Kept = old.Recall, old.Kept
		}
	})
	view("forks of the agent stay as they are", false, func(old core.View, v *core.View) {
		if adopts(old, func(id core.SessionID) bool { return id.Agent == v.Session.Agent }) {
			all(old, v)
		}
	})
	view("forks of other agents stay as they are", false, func(old core.View, v *core.View) {
		if adopts(old, func(id core.SessionID) bool { return id.Agent != v.Session.Agent }) {
			all(old, v)
		}
	})
	view("summaries stay in views", false, func(old core.View, v *core.View) { v.Summaries, v.Shown = old.Summaries, old.Shown })
	for name, n := range map[string]int64{"summaries stay": 0, "one summary is erased": 1} {
		out = append(out, caughtOver("contract.traces", name, recalling(nil), func(s *brokenStore) {
			var asked atomic.Int64
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				if c.Type == core.TypeErased && older(ctx, s, scope, id).Type == core.TypeSummary && asked.Add(1) > n {
					return nil
				}
				return s.Store.Update(ctx, scope, id, c)
			}
		}))
	}
	out = append(out, caughtBy("contract.traces", "a purge drops the views of the agent", recalling(nil), func(w *wrongEngine) {
		w.forget = func(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
			rec, err := w.Engine.Forget(ctx, req)
			if views, ok := core.As[core.ViewStore](w.Store()); ok && err == nil && req.Purge {
				ids, err := views.ListViews(ctx, core.ViewQuery{Agent: req.Scope.Agent, Limit: core.MaxPage})
				for _, id := range ids {
					if err == nil {
						err = views.DeleteView(ctx, id)
					}
				}
				return rec, err
			}
			return rec, err
		}
	}))
	return out
}

// tableComeAgain are engines that take a message for a new one, in one of the calls, which was erased.
func tableComeAgain() []broken {
	var out []broken
	for _, of := range []string{"Ingest", "IngestBatch", "CommitTurn", "AfterTurn"} {
		out = append(out, caughtBy("contract.forgotten", of+" brings back what was erased", recalling(nil), func(w *wrongEngine) {
			gone := map[string]bool{}
			w.forget = func(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
				if there, err := w.Store().Get(ctx, req.Scope, req.Entries); err == nil {
					for _, e := range there {
						gone[e.Message.ID], gone[e.Message.Key] = true, true
					}
				}
				return w.Engine.Forget(ctx, req)
			}
			again := func(list []message.Message) []message.Message {
				list = slices.Clone(list)
				for i := range list {
					if m := &list[i]; m.ID != "" && gone[m.ID] || m.Key != "" && gone[m.Key] {
						m.ID, m.Key = "again-"+m.ID, "again-"+m.Key
					}
				}
				return list
			}
			w.before = func(method string, req any) {
				if method != of {
					return
				}
				switch r := req.(type) {
				case *core.IngestRequest:
					r.Message = again([]message.Message{r.Message})[0]
				case *core.IngestBatchRequest:
					r.Messages = again(r.Messages)
				case *core.CommitTurnRequest:
					r.Messages = again(r.Messages)
				case *core.AfterTurnRequest:
					r.Messages = again(r.Messages)
				}
			}
		}))
	}
	return out
}
