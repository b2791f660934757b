package lexical_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// listStore is a store that keeps entries in a list, in the order of appends.
type listStore struct {
	mu      sync.Mutex
	entries []core.Entry
	// onScan is called before each page is read, without the lock.
	onScan func(page int) error
	scans  int
}

func (s *listStore) Append(_ context.Context, entries []core.Entry) (core.AppendResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, entries...)
	return core.AppendResult{}, nil
}

func (s *listStore) Get(_ context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.Entry
	for _, id := range ids {
		i := slices.IndexFunc(s.entries, func(e core.Entry) bool { return e.ID == id && scope.Contains(e.SessionID()) })
		if i < 0 {
			return nil, fmt.Errorf("list: get %q: %w", id, core.ErrNotFound)
		}
		out = append(out, s.entries[i])
	}
	return out, nil
}

// Scan pages through a snapshot in the order of Seq. The cursor is a position, so nothing may be deleted in front of it during a
// scan; tests that need that delete behind it.
func (s *listStore) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	s.mu.Lock()
	s.scans++
	hook := s.onScan
	n := s.scans
	s.mu.Unlock()
	if hook != nil {
		if err := hook(n); err != nil {
			return core.Page{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return core.Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []core.Entry
	for _, e := range s.entries {
		if q.Scope.Contains(e.SessionID()) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b core.Entry) int { return int(a.Seq - b.Seq) })
	from, _ := strconv.Atoi(string(q.Cursor))
	from = min(from, len(all))
	end := min(from+q.Limit, len(all))
	page := core.Page{Entries: all[from:end]}
	if end < len(all) {
		page.Next = core.Cursor(strconv.Itoa(end))
	}
	return page, nil
}

func (s *listStore) Update(_ context.Context, scope core.Scope, id string, c core.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.entries {
		if e := &s.entries[i]; e.ID == id && scope.Contains(e.SessionID()) {
			if c.Message != nil {
				e.Message = *c.Message
			}
			if c.Type != "" {
				e.Type = c.Type
			}
			return nil
		}
	}
	return core.ErrNotFound
}

func (s *listStore) Delete(_ context.Context, scope core.Scope, ids []string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.entries)
	s.entries = slices.DeleteFunc(s.entries, func(e core.Entry) bool {
		return scope.Contains(e.SessionID()) && slices.Contains(ids, e.ID)
	})
	return before - len(s.entries), nil
}

func (s *listStore) Close() error { return nil }

func newIndex(tb testing.TB, store core.Store) *lexical.Index {
	tb.Helper()
	x, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	if err := x.Attach(store); err != nil {
		tb.Fatal(err)
	}
	return x
}

// mapStore answers Get quickly, for tests over many entries. It is read-only after fill.
type mapStore struct {
	listStore
	byID map[string]core.Entry
}

func newMapStore(entries []core.Entry) *mapStore {
	s := &mapStore{byID: map[string]core.Entry{}}
	s.entries = entries
	for _, e := range entries {
		s.byID[e.ID] = e
	}
	return s
}

func (s *mapStore) Get(_ context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	out := make([]core.Entry, 0, len(ids))
	for _, id := range ids {
		e, ok := s.byID[id]
		if !ok || !scope.Contains(e.SessionID()) {
			return nil, fmt.Errorf("map: get %q: %w", id, core.ErrNotFound)
		}
		out = append(out, e)
	}
	return out, nil
}

func (s *mapStore) Scan(_ context.Context, q core.ScanQuery) (core.Page, error) {
	from, _ := strconv.Atoi(string(q.Cursor))
	end := min(from+q.Limit, len(s.entries))
	page := core.Page{Entries: s.entries[from:end]}
	if end < len(s.entries) {
		page.Next = core.Cursor(strconv.Itoa(end))
	}
	return page, nil
}
