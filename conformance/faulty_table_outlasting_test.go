package conformance_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// tableOutlasting are engines in which something lasts longer than it should, or less long.
func tableOutlasting() []broken {
	return []broken{
		caughtBy("contract.erased", "the last window is kept when another session, or an agent, is erased", recalling(nil), keepsWindow),
		caughtBy("contract.subagent", "times of grants in minutes", recalling(nil), func(w *wrongEngine) {
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.SpawnRequest); ok {
					r.TTL = r.TTL.Truncate(time.Minute)
				}
			}
		}),
		caughtBy("contract.cancel", "a search whose deadline has passed finds nothing", recalling(nil), func(w *wrongEngine) {
			w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
				res, err := w.Engine.Search(ctx, req)
				if errors.Is(err, context.DeadlineExceeded) {
					err = nil
				}
				return res, err
			}
		}),
		caughtBy("contract.maintain", "no time left is nothing to do", recalling(nil), func(w *wrongEngine) {
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				err := call(ctx)
				if method == "Maintain" && errors.Is(err, context.DeadlineExceeded) {
					err = nil
				}
				return err
			}
		}),
		caughtBy("contract.dispose", "disposes for 50 ms", recalling(nil), func(w *wrongEngine) {
			w.dispose = func(ctx context.Context) error {
				own, end := context.WithTimeout(ctx, 50*time.Millisecond)
				defer end()
				if err := w.Engine.Dispose(own); err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
					return nil
				}
				return ctx.Err()
			}
		}),
		caughtBy("contract.reach", "grants without a beginning", recalling(nil), func(w *wrongEngine) {
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				err := call(ctx)
				if req, ok := ctx.Value(requested{}).(*core.SpawnRequest); ok && err == nil {
					err = openEnded(ctx, w.Engine, req.Child)
				}
				return err
			}
		}),
		caughtBy("contract.forgotten", "the engine's own records may be named", recalling(nil), func(w *wrongEngine) {
			w.forget = func(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
				rec, err := w.Engine.Forget(ctx, req)
				if len(req.Entries) > 0 && !req.Purge && errors.Is(err, core.ErrInvalid) {
					return engine.Receipt{}, nil
				}
				return rec, err
			}
		}),
		caughtBy("contract.given", "fillers are taken out of the list that was given", recalling(nil), func(w *wrongEngine) {
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.AssembleRequest); ok && r.Transcript != nil {
					t := *r.Transcript
					t.Messages = slices.DeleteFunc(t.Messages, func(m message.Message) bool { return m.Type == message.Filler })
					r.Transcript = &t
				}
			}
		}),
	}
}

// keepsWindow answers the same question as before, as long as nothing but erasures of other scopes happened.
func keepsWindow(w *wrongEngine) {
	var mu sync.Mutex
	var asked core.AssembleRequest
	var last core.AssembleResult
	kept, same := false, false
	w.before = func(_ string, req any) {
		mu.Lock()
		defer mu.Unlock()
		switch r := req.(type) {
		case *core.AssembleRequest:
			same = kept && r.Transcript == nil && r.Session == asked.Session && r.Budget == asked.Budget && r.Prompt == asked.Prompt
			asked = *r
		case *engine.ForgetRequest:
			kept = kept && core.Scope(asked.Session) != r.Scope
		default:
			kept = false
		}
	}
	w.after = func(_ string, res any) {
		mu.Lock()
		defer mu.Unlock()
		if r, ok := res.(*core.AssembleResult); ok {
			if same {
				*r = last
			}
			last, kept = *r, true
		}
	}
}

// openEnded takes from the grants of a session from where on they do not hold.
func openEnded(ctx context.Context, e *engine.Engine, id core.SessionID) error {
	views, ok := core.As[core.ViewStore](e.Store())
	if !ok {
		return nil
	}
	v, err := views.LoadView(ctx, id)
	if err != nil {
		return err
	}
	v.Grants = slices.Clone(v.Grants)
	for i := range v.Grants {
		v.Grants[i].Before = 0
	}
	v.Version++
	if err := views.SwapView(ctx, v); err != nil {
		return err
	}
	return e.Refresh(ctx)
}
