package memory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
)

// calls are all that a store can be asked, about a session.
func calls(s *memory.Store, id core.SessionID) map[string]func(ctx context.Context) error {
	scope := core.Scope(id)
	return map[string]func(ctx context.Context) error{
		"append": func(ctx context.Context) error {
			_, err := s.Append(ctx, []core.Entry{{ID: "new", Key: "new", Agent: id.Agent, Session: id.Session, Seq: 9}})
			return err
		},
		"get": func(ctx context.Context) error { _, err := s.Get(ctx, scope, nil); return err },
		"scan": func(ctx context.Context) error {
			_, err := s.Scan(ctx, core.ScanQuery{Scope: scope, Limit: 1})
			return err
		},
		"update": func(ctx context.Context) error { return s.Update(ctx, scope, "ann-one-0", core.Change{Key: "other"}) },
		"delete": func(ctx context.Context) error { _, err := s.Delete(ctx, scope, []string{"ann-one-0"}); return err },
		"load view": func(ctx context.Context) error {
			if _, err := s.LoadView(ctx, id); !errors.Is(err, core.ErrNotFound) {
				return err
			}
			return nil
		},
		"swap view":   func(ctx context.Context) error { return s.SwapView(ctx, core.View{Session: id, Version: 1}) },
		"delete view": func(ctx context.Context) error { return s.DeleteView(ctx, id) },
	}
}

// TestRefused: every call says so when the store is closed, when ctx has ended, and when it names no agent, and changes nothing then.
func TestRefused(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		id     core.SessionID
		closed bool
		want   error
	}{
		"closed":    {t.Context(), ann, true, core.ErrClosed},
		"ctx ended": {ended, ann, false, context.Canceled},
		"no agent":  {t.Context(), core.SessionID{Session: "one"}, false, core.ErrInvalid},
		"well":      {t.Context(), ann, false, nil},
	} {
		for op := range calls(nil, ann) {
			s := memory.New()
			mustAppend(t, s, entry(ann, 0))
			if c.closed {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := calls(s, c.id)[op](c.ctx); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: error %v, want %v", name, op, err, c.want)
			}
			if c.want == nil || c.closed {
				continue
			}
			if page, err := s.Scan(t.Context(), core.ScanQuery{Scope: core.Scope(ann), Limit: 9}); err != nil || len(page.Entries) != 1 || page.Entries[0].Key != "kann-one-0" {
				t.Errorf("%s, %s: it holds %+v, error %v", name, op, page.Entries, err)
			}
			if views, err := s.ListViews(t.Context(), core.ViewQuery{Limit: 9}); err != nil || len(views) > 0 {
				t.Errorf("%s, %s: it has views of %v, error %v", name, op, views, err)
			}
		}
	}
}

// TestConfigured: a store that is opened is empty and can be used; none is where ctx has ended.
func TestConfigured(t *testing.T) {
	if err := memory.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	s, err := memory.Open(t.Context(), memory.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, entry(ann, 0))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := memory.Open(ended, memory.DefaultConfig()); s != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, error %v, want that of ctx", s, err)
	}
}
