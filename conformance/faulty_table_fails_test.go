package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// tableFailing are engines that are wrong when something fails.
func tableFailing() []broken {
	var out []broken
	add := func(id, name string, change func(w *wrongEngine)) {
		out = append(out, caughtBy(id, name, recalling(nil), change))
	}
	after := func(name string, f func(a *core.AssembleResult)) {
		add("contract.degraded", name, func(w *wrongEngine) {
			w.after = func(_ string, res any) {
				switch r := res.(type) {
				case *core.AssembleResult:
					f(r)
				case *core.Info:
					r.Health = nil
				}
			}
		})
	}
	after("what failed is in the result where legacy answered, and nowhere else", func(a *core.AssembleResult) { a.Warnings = nil })
	after("what failed is nowhere", func(a *core.AssembleResult) { a.Warnings, a.Degraded = nil, "" })
	add("contract.degraded", "what legacy answers fits", func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if r, ok := res.(*core.AssembleResult); ok && r.Degraded != "" {
				r.PromptAuthority = core.AuthorityAssembled
			}
		}
	})
	add("contract.dispose", "the end waits for all calls", func(w *wrongEngine) {
		w.dispose = func(ctx context.Context) error { return w.Engine.Dispose(context.WithoutCancel(ctx)) }
	})
	add("contract.dispose", "the end waits for calls, and says then that it did not", func(w *wrongEngine) {
		w.dispose = func(ctx context.Context) error {
			return errors.Join(w.Engine.Dispose(context.WithoutCancel(ctx)), ctx.Err())
		}
	})
	for _, waits := range []string{"Assemble", "Compact", "CommitTurn"} {
		add("contract.dispose", "the end waits for what is under way in "+waits, func(w *wrongEngine) {
			var under sync.RWMutex
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				if method == waits {
					under.RLock()
					defer under.RUnlock()
				}
				return call(ctx)
			}
			w.dispose = func(ctx context.Context) error {
				under.Lock()
				defer under.Unlock()
				return w.Engine.Dispose(ctx)
			}
		})
	}
	// aside sets sessions aside once the sound engine did; is says which then are, of so many that were.
	aside := func(name string, is func(was map[core.SessionID]bool, id core.SessionID) bool, retry func(w *wrongEngine, was map[core.SessionID]bool)) {
		add("contract.aside", name, func(w *wrongEngine) {
			var mu sync.Mutex
			was := map[core.SessionID]bool{}
			w.around = func(ctx context.Context, _ string, call func(context.Context) error) error {
				id := sessionIn(ctx.Value(requested{}))
				mu.Lock()
				kept := is(was, id)
				mu.Unlock()
				if kept {
					return fmt.Errorf("broken: %w", core.ErrQuarantined)
				}
				err := call(ctx)
				if errors.Is(err, core.ErrQuarantined) {
					mu.Lock()
					was[id] = true
					mu.Unlock()
				}
				return err
			}
			w.retry = func() {
				mu.Lock()
				defer mu.Unlock()
				retry(w, was)
			}
		})
	}
	itself := func(was map[core.SessionID]bool, id core.SessionID) bool { return was[id] }
	all := func(w *wrongEngine, was map[core.SessionID]bool) { w.Engine.Retry(); clear(was) }
	aside("nothing is tried again", itself, func(*wrongEngine, map[core.SessionID]bool) {})
	aside("one session is tried again", itself, func(w *wrongEngine, was map[core.SessionID]bool) {
		w.Engine.Retry()
		for id := range was {
			delete(was, id)
			break
		}
	})
	aside("one session aside is all aside", func(was map[core.SessionID]bool, _ core.SessionID) bool { return len(was) > 0 }, all)
	aside("one session aside is its agent aside", func(was map[core.SessionID]bool, id core.SessionID) bool {
		for other := range was {
			if other.Agent == id.Agent {
				return true
			}
		}
		return false
	}, all)
	aside("one session aside is all of its name aside", func(was map[core.SessionID]bool, id core.SessionID) bool {
		for other := range was {
			if other.Session == id.Session {
				return true
			}
		}
		return false
	}, all)
	add("contract.aside", "problems outlive another try", func(w *wrongEngine) {
		ever := false
		w.around = func(ctx context.Context, _ string, call func(context.Context) error) error {
			err := call(ctx)
			ever = ever || errors.Is(err, core.ErrQuarantined)
			return err
		}
		w.after = func(_ string, res any) {
			if r, ok := res.(*core.Info); ok && len(r.Health) > 0 {
				r.Health[0].Quarantined = r.Health[0].Quarantined || ever
			}
		}
	})
	return out
}

// tableSeveral are engines that do not look at what other engines do to their sessions.
func tableSeveral() []broken {
	var out []broken
	// remembered windows are shown again where same says so of what the store held then and holds now.
	remembered := func(name string, same func(was, now []core.Entry) bool) {
		out = append(out, caughtBy("contract.several", name, recalling(nil), func(w *wrongEngine) {
			type window struct {
				res  core.AssembleResult
				held []core.Entry
			}
			known := map[core.SessionID]window{}
			var of core.SessionID
			w.before = func(_ string, req any) {
				switch r := req.(type) {
				case *core.AssembleRequest:
					of = r.Session
				case *engine.ForgetRequest:
					clear(known)
				default:
					delete(known, sessionIn(req))
				}
			}
			w.after = func(_ string, res any) {
				a, ok := res.(*core.AssembleResult)
				if !ok {
					return
				}
				var now []core.Entry
				for e, err := range core.All(context.Background(), w.Store(), of.Scope(), false) {
					if err == nil {
						now = append(now, e)
					}
				}
				if was, ok := known[of]; ok && same(was.held, now) {
					*a = was.res
					return
				}
				known[of] = window{*a, now}
			}
		}))
	}
	remembered("windows are made once", func(_, _ []core.Entry) bool { return true })
	remembered("what another one erased stays", func(was, now []core.Entry) bool { return len(was) == len(now) })
	remembered("what another one purged stays", func(was, now []core.Entry) bool { return len(was) > len(now) })
	remembered("what another one compacted stays", func(was, now []core.Entry) bool {
		said := func(list []core.Entry) (n int) {
			for _, e := range list {
				if e.Type == core.TypeMessage {
					n++
				}
			}
			return n
		}
		return said(was) == said(now)
	})
	out = append(out, caughtOver("contract.several", "summaries count erasures that their makers did not know of", recalling(nil), func(s *brokenStore) {
		s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
			for i := range entries {
				if v, err := s.LoadView(ctx, entries[i].SessionID()); err == nil && entries[i].Type == core.TypeSummary {
					entries[i] = entries[i].Clone()
					entries[i].Meta["erasures"] = strconv.FormatUint(v.Erased, 10)
				}
			}
			return s.Store.Append(ctx, entries)
		}
	}))
	out = append(out, caughtOver("contract.several", "summaries are never emptied", recalling(nil), func(s *brokenStore) {
		s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
			if got, err := s.Store.Get(ctx, scope, []string{id}); err == nil && got[0].Type == core.TypeSummary {
				return nil
			}
			return s.Store.Update(ctx, scope, id, c)
		}
	}))
	out = append(out, caughtBy("contract.several", "where something was erased all summaries are emptied", recalling(nil), func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			r, ok := req.(*core.AssembleRequest)
			if !ok {
				return
			}
			ctx, scope, erased := context.Background(), r.Session.Scope(), false
			for e, err := range core.All(ctx, w.Store(), scope, false) {
				switch {
				case err != nil:
				case e.Type == core.TypeErased:
					erased = true
				case e.Type == core.TypeSummary && erased:
					empty := message.New(e.Role, "")
					_ = w.Store().Update(ctx, scope, e.ID, core.Change{Message: &empty, Type: core.TypeErased, Fingerprint: "erased"})
				}
			}
		}
	}))
	out = append(out, caughtOver("contract.several", "who comes second is refused", recalling(nil), func(s *brokenStore) {
		s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, entries)
			if errors.Is(err, core.ErrConflict) {
				return res, fmt.Errorf("broken: taken: %w", core.ErrUnavailable)
			}
			return res, err
		}
	}))
	return out
}
