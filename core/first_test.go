package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
)

// emptyPages is a store whose scans begin with a page that holds nothing.
type emptyPages struct{ *memory.Store }

func (s emptyPages) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if q.Cursor == "" {
		return core.Page{Next: "on"}, ctx.Err()
	}
	if q.Cursor == "on" {
		q.Cursor = ""
	}
	return s.Store.Scan(ctx, q)
}

// TestFirstBehindPagesThatHoldNothing: it is the entry that a whole scan would begin with, and none is said only at the end.
func TestFirstBehindPagesThatHoldNothing(t *testing.T) {
	inner := memory.New()
	for _, s := range []core.Store{inner, emptyPages{inner}} {
		scope := core.Scope{Agent: "a", Session: "s"}
		if _, err := core.First(t.Context(), s, core.ScanQuery{Scope: core.Scope{Agent: "nobody"}}); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("First of nothing: error %v, want ErrNotFound", err)
		}
		if _, err := core.AppendMoved(t.Context(), s, []core.Entry{copied("1", 5), copied("2", 6)}); err != nil {
			t.Fatal(err)
		}
		for q, want := range map[core.ScanQuery]string{
			{Scope: scope}: "1", {Scope: scope, Reverse: true}: "2", {Scope: scope, FromSeq: 6}: "2", {Scope: scope, Reverse: true, ToSeq: 6}: "1",
		} {
			if entry, err := core.First(t.Context(), s, q); err != nil || entry.ID != want {
				t.Errorf("First of %+v: %q, error %v, want %q", q, entry.ID, err, want)
			}
		}
		// A copy that has to move asks for the newest entry.
		if res, err := core.AppendMoved(t.Context(), s, []core.Entry{copied("3", 5)}); err != nil || len(res.IDs) != 1 {
			t.Errorf("AppendMoved to a place that is taken: %+v, error %v", res, err)
		}
		if n, err := s.Delete(t.Context(), scope, []string{"1", "2", "3"}); err != nil || n != 3 {
			t.Fatalf("Delete: %d, error %v", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := core.First(ctx, s, core.ScanQuery{Scope: scope}); !errors.Is(err, context.Canceled) {
			t.Errorf("First with a context that has ended: error %v", err)
		}
	}
}
