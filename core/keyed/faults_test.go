package keyed_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/keyed"
	"github.com/contextengine/contextengine/core/message"
)

var errMedium = errors.New("the medium has failed")

// failing is a medium whose reader fails at one of its calls, and whose Close does.
type failing struct {
	keyed.Memory
	at, calls int
}

type failingReader struct {
	keyed.Reader
	*failing
}

func (f *failing) fails() bool {
	f.calls++
	return f.calls == f.at
}

func (f *failing) Do(ctx context.Context, do func(keyed.Reader) ([]keyed.Change, error)) error {
	return f.Memory.Do(ctx, func(r keyed.Reader) ([]keyed.Change, error) { return do(failingReader{r, f}) })
}

func (f *failing) Close() error { return errMedium }

func (r failingReader) Get(key string) ([]byte, bool, error) {
	if r.fails() {
		return nil, false, errMedium
	}
	return r.Reader.Get(key)
}

func (r failingReader) Range(from, to string, reverse bool) iter.Seq2[keyed.Pair, error] {
	return func(yield func(keyed.Pair, error) bool) {
		for pair, err := range r.Reader.Range(from, to, reverse) {
			if r.fails() {
				yield(keyed.Pair{}, errMedium)
				return
			}
			if !yield(pair, err) {
				return
			}
		}
	}
}

// TestMediumThatFails: whichever look at the medium fails, the call says so, and nothing has changed.
func TestMediumThatFails(t *testing.T) {
	id := core.SessionID{Agent: "ann", Session: "one"}
	scope := core.Scope(id)
	entry := func(id, key string, seq int64) core.Entry {
		m := message.New(message.User, id)
		return core.Entry{ID: id, Key: key, Agent: "ann", Session: "one", Seq: seq, Role: m.Role, Type: core.TypeMessage, Message: m}
	}
	for name, call := range map[string]func(context.Context, *keyed.Store) error{
		"append": func(ctx context.Context, s *keyed.Store) error {
			_, err := s.Append(ctx, []core.Entry{entry("a", "ka", 0), entry("c", "kc", 2)})
			return err
		},
		"get": func(ctx context.Context, s *keyed.Store) error {
			_, err := s.Get(ctx, scope, []string{"a", "b"})
			return err
		},
		"scan": func(ctx context.Context, s *keyed.Store) error {
			page, err := s.Scan(ctx, core.ScanQuery{Scope: scope, Limit: 5})
			if err != nil && (page.Entries != nil || page.Next != "") {
				return errors.New("a scan that failed has entries")
			}
			return err
		},
		"update": func(ctx context.Context, s *keyed.Store) error {
			return s.Update(ctx, scope, "a", core.Change{Key: "other", Meta: map[string]string{"m": "1"}})
		},
		"delete": func(ctx context.Context, s *keyed.Store) error {
			_, err := s.Delete(ctx, scope, []string{"nobody's", "a", "b"})
			return err
		},
		"load view": func(ctx context.Context, s *keyed.Store) error {
			_, err := s.LoadView(ctx, id)
			return err
		},
		"swap view": func(ctx context.Context, s *keyed.Store) error {
			return s.SwapView(ctx, core.View{Session: id, Version: 2})
		},
		"delete view": func(ctx context.Context, s *keyed.Store) error { return s.DeleteView(ctx, id) },
		"list views": func(ctx context.Context, s *keyed.Store) error {
			_, err := s.ListViews(ctx, core.ViewQuery{Agent: "ann", Limit: 5})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				f := new(failing)
				s := keyed.New(f)
				if _, err := s.Append(t.Context(), []core.Entry{entry("a", "ka", 0), entry("b", "kb", 1)}); err != nil {
					t.Fatal(err)
				}
				if err := s.SwapView(t.Context(), core.View{Session: id, Version: 1}); err != nil {
					t.Fatal(err)
				}
				before := kept(t, s, id)
				f.at, f.calls = at, 0
				err := call(t.Context(), s)
				if f.at = 0; f.calls < at {
					if err != nil {
						t.Errorf("nothing failed: %v", err)
					}
					if at == 1 {
						t.Error("the medium was not asked")
					}
					return
				}
				if !errors.Is(err, errMedium) {
					t.Errorf("look %d failed: %v", at, err)
				}
				if diff := cmp.Diff(before, kept(t, s, id)); diff != "" {
					t.Errorf("look %d failed, and this changed (-before +after):\n%s", at, diff)
				}
			}
		})
	}
}

// kept is all that a store holds of a session.
func kept(t *testing.T, s *keyed.Store, id core.SessionID) []any {
	t.Helper()
	page, err := s.Scan(t.Context(), core.ScanQuery{Scope: core.Scope(id), Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	view, err := s.LoadView(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return []any{page, view}
}

func TestMediumThatCannotBeClosed(t *testing.T) {
	s := keyed.New(new(failing))
	if err := s.Close(); !errors.Is(err, errMedium) {
		t.Errorf("Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close once more: %v", err)
	}
	if _, err := s.LoadView(t.Context(), core.SessionID{Agent: "ann", Session: "one"}); !errors.Is(err, core.ErrClosed) {
		t.Errorf("LoadView of a closed store: %v", err)
	}
}

// TestCursorOfAnotherQuery: a cursor that the query cannot have given is refused.
func TestCursorOfAnotherQuery(t *testing.T) {
	s := keyed.New(new(keyed.Memory))
	for _, cursor := range []core.Cursor{"entry/ann/one", "entry/ann/two/0000000000000000001", "entry/ann/one0"} {
		_, err := s.Scan(t.Context(), core.ScanQuery{Scope: core.Scope{Agent: "ann", Session: "one"}, Limit: 5, Cursor: cursor})
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}
