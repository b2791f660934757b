package lexical_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// feedStore is a listStore that tells its changes and has a folder beside it.
type feedStore struct {
	listStore
	dir string

	log     sync.Mutex
	changed map[string]int // by id: the number of its last change
	last    int
	epoch   string // of marks
	asked   int
	read    int
	onFeed  func()
}

func newFeedStore(tb testing.TB) *feedStore {
	tb.Helper()
	return &feedStore{dir: tb.TempDir(), changed: map[string]int{}, epoch: "a"}
}

func (s *feedStore) note(ids ...string) {
	s.log.Lock()
	defer s.log.Unlock()
	for _, id := range ids {
		s.last++
		s.changed[id] = s.last
	}
}

func (s *feedStore) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	r, err := s.listStore.Append(ctx, entries)
	for _, e := range entries {
		s.note(e.ID)
	}
	return r, err
}

func (s *feedStore) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	err := s.listStore.Update(ctx, scope, id, c)
	s.note(id)
	return err
}

func (s *feedStore) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	n, err := s.listStore.Delete(ctx, scope, ids)
	s.note(ids...)
	return n, err
}

func (s *feedStore) Beside(use string) (string, error) {
	dir := filepath.Join(s.dir, use)
	return dir, os.MkdirAll(dir, 0o700)
}

func (s *feedStore) Changes(ctx context.Context, q core.ChangeQuery) (core.ChangePage, error) {
	if err := ctx.Err(); err != nil {
		return core.ChangePage{}, err
	}
	after := 0
	if q.After != "" {
		epoch, n, _ := strings.Cut(string(q.After), ":")
		if epoch != s.epoch {
			return core.ChangePage{}, fmt.Errorf("feed: changes after %q: %w", q.After, core.ErrNotFound)
		}
		after, _ = strconv.Atoi(n)
	}
	s.log.Lock()
	type change struct {
		id string
		at int
	}
	var all []change
	for id, at := range s.changed {
		if at > after {
			all = append(all, change{id, at})
		}
	}
	s.asked++
	s.log.Unlock()
	slices.SortFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	page := core.ChangePage{Mark: q.After, More: len(all) > q.Limit}
	s.mu.Lock()
	at := map[string]int{}
	for i := range s.entries {
		if len(all) > 0 {
			at[s.entries[i].ID] = i
		}
	}
	for _, c := range all[:min(len(all), q.Limit)] {
		page.Mark = core.Mark(fmt.Sprintf("%s:%d", s.epoch, c.at))
		i, ok := at[c.id]
		switch {
		case !ok:
			page.Changes = append(page.Changes, core.EntryChange{ID: c.id})
		case s.entries[i].Agent == q.Agent:
			e := s.entries[i]
			page.Changes = append(page.Changes, core.EntryChange{ID: c.id, Entry: &e})
			s.read++
		}
	}
	s.mu.Unlock()
	if s.onFeed != nil {
		s.onFeed()
	}
	return page, nil
}

// files returns the names of what lies beside the store.
func (s *feedStore) files(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "lexical", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// holds reports whether a word is in a file beside the store.
func (s *feedStore) holds(t *testing.T, word string) bool {
	t.Helper()
	for _, f := range s.files(t) {
		b, err := os.ReadFile(f)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if strings.Contains(string(b), word) {
			return true
		}
	}
	return false
}

func closeIndex(t *testing.T, x *lexical.Index) {
	t.Helper()
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// deafStore is a decorator that promises more than what it decorates can do.
type deafStore struct{ core.Store }

func (s deafStore) Unwrap() core.Store { return s.Store }
func (s deafStore) Changes(context.Context, core.ChangeQuery) (core.ChangePage, error) {
	return core.ChangePage{}, errors.ErrUnsupported
}
func (s deafStore) Beside(string) (string, error) { return "", errors.ErrUnsupported }
