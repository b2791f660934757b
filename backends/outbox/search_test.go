package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/files"
)

// finder is a store that finds all entries with a word, the newest first.
type finder struct {
	core.Store
	mu   sync.Mutex
	fail error
}

func (f *finder) Close() error { return nil }

func (f *finder) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// broken returns how the finder fails. It fails as a whole, as a server that is down.
func (f *finder) broken() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fail
}

func (f *finder) Append(ctx context.Context, es []core.Entry) (core.AppendResult, error) {
	if err := f.broken(); err != nil {
		return core.AppendResult{}, err
	}
	return f.Store.Append(ctx, es)
}

func (f *finder) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	if err := f.broken(); err != nil {
		return err
	}
	return f.Store.Update(ctx, scope, id, c)
}

func (f *finder) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if err := f.broken(); err != nil {
		return 0, err
	}
	return f.Store.Delete(ctx, scope, ids)
}

func (f *finder) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if err := f.broken(); err != nil {
		return nil, err
	}
	var out []core.Hit
	for e, err := range core.All(ctx, f.Store, q.Scope, true) {
		if err != nil {
			return nil, err
		}
		if strings.Contains(e.Text(), q.Text) && (q.Exclude == nil || !q.Exclude(e.ID)) && len(out) < q.Limit {
			out = append(out, core.Hit{Entry: e, Score: float64(e.Seq)})
		}
	}
	return out, nil
}

func newFinder() *finder { return &finder{Store: memory.New()} }

func said(n int, text string) core.Entry {
	e := entry(ann, n)
	e.Message = message.New(message.User, text)
	e.Fingerprint = message.Fingerprint(e.Message)
	return e
}

func search(t *testing.T, s core.Store, q core.SearchQuery) []string {
	t.Helper()
	searcher, ok := core.As[core.Searcher](s)
	if !ok {
		t.Fatal("the outbox cannot search")
	}
	hits, err := searcher.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("Search: %v", err)
	}
	out := []string{}
	for _, h := range hits {
		out = append(out, h.Entry.ID)
	}
	return out
}

// TestSearch: what the remote finds is what is known here, and what waits is found too.
func TestSearch(t *testing.T) {
	t.Parallel()
	far := newFinder()
	cfg := volatile(func(c *outbox.Config) { c.CloseTimeout = time.Millisecond })
	s := open(t, cfg, memory.New(), far)
	elsewhere := said(1, "kestrel two")
	elsewhere.ID = "elsewhere"
	mustAppend(t, far.Store, elsewhere, said(90, "kestrel of another machine"))
	mustAppend(t, s, said(0, "kestrel one"), said(1, "kestrel two"), said(2, "kestrel three"), said(3, "kestrel four"), said(4, "heron"))
	mustDrain(t, s)
	id := func(n int) string { return entry(ann, n).ID }
	q := core.SearchQuery{Scope: ann.Scope(), Text: "kestrel", Limit: 10}
	// Under the names they have here; what is not here is not found.
	if diff := cmp.Diff([]string{id(3), id(2), id(1), id(0)}, search(t, s, q)); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	far.set(nil)
	q.Exclude = func(x string) bool { return x == id(1) || x == id(3) }
	if diff := cmp.Diff([]string{id(2), id(0)}, search(t, s, q)); diff != "" {
		t.Errorf("hits without those excluded (-want +got):\n%s", diff)
	}
	q.Exclude = nil

	// The remote can search, and not be written to: it lags behind.
	lag := &lagging{finder: far}
	s2 := open(t, cfg, memory.New(), lag)
	mustAppend(t, s2, said(0, "kestrel one"), said(2, "kestrel three"), said(3, "kestrel four"))
	mustDrain(t, s2)
	lag.set(true)
	mustAppend(t, s2, said(5, "a kestrel again"), said(6, "nothing of the kind"))
	if _, err := s2.Delete(t.Context(), ann.Scope(), []string{id(2)}); err != nil {
		t.Fatal(err)
	}
	changed := said(3, "now of gulls")
	if err := s2.Update(t.Context(), ann.Scope(), id(3), core.Change{Message: &changed.Message, Fingerprint: changed.Fingerprint}); err != nil {
		t.Fatal(err)
	}
	got := search(t, s2, q)
	slices.Sort(got)
	if diff := cmp.Diff([]string{id(0), id(5)}, got); diff != "" {
		t.Errorf("hits while changes wait (-want +got):\n%s", diff)
	}
	q.Text = "gulls"
	if diff := cmp.Diff([]string{id(3)}, search(t, s2, q)); diff != "" {
		t.Errorf("hits of a change that waits (-want +got):\n%s", diff)
	}
}

// lagging can be made to refuse changes alone.
type lagging struct {
	*finder
	mu   sync.Mutex
	lags bool
}

func (l *lagging) set(lags bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lags = lags
}

func (l *lagging) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lags {
		return errDown
	}
	return nil
}

func (l *lagging) Append(ctx context.Context, es []core.Entry) (core.AppendResult, error) {
	if err := l.err(); err != nil {
		return core.AppendResult{}, err
	}
	return l.finder.Append(ctx, es)
}

func (l *lagging) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	if err := l.err(); err != nil {
		return err
	}
	return l.finder.Update(ctx, scope, id, c)
}

func (l *lagging) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if err := l.err(); err != nil {
		return 0, err
	}
	return l.finder.Delete(ctx, scope, ids)
}

// TestSearchOffline: the local store's search answers alone; without one the error is the remote's.
func TestSearchOffline(t *testing.T) {
	t.Parallel()
	cfg := volatile(func(c *outbox.Config) { c.CloseTimeout = time.Millisecond })
	q := core.SearchQuery{Scope: ann.Scope(), Text: "kestrel", Limit: 10}
	far := newFinder()
	far.set(fmt.Errorf("finder: %w", core.ErrUnavailable))
	s := open(t, cfg, newFinder(), far)
	mustAppend(t, s, said(0, "kestrel one"), said(1, "kestrel two"))
	if diff := cmp.Diff([]string{entry(ann, 1).ID, entry(ann, 0).ID}, search(t, s, q)); diff != "" {
		t.Errorf("hits of the local search (-want +got):\n%s", diff)
	}
	far.set(nil)
	mustDrain(t, s)
	// Both find both: each is there once.
	if diff := cmp.Diff([]string{entry(ann, 1).ID, entry(ann, 0).ID}, search(t, s, q)); diff != "" {
		t.Errorf("hits of both (-want +got):\n%s", diff)
	}
	far.set(fmt.Errorf("finder: %w", core.ErrUnavailable))
	s = open(t, cfg, memory.New(), far)
	searcher, _ := core.As[core.Searcher](s)
	if _, err := searcher.Search(t.Context(), q); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Search without anybody who can: error %v, want ErrUnavailable", err)
	}
}

// TestSearchBesideAnother: of two processes one delivers. A search of either waits for what both appended, and no longer than that takes.
func TestSearchBesideAnother(t *testing.T) {
	t.Parallel()
	cfg := durable(t, func(c *outbox.Config) { c.SearchWait = time.Minute })
	local, far := kept{memory.New()}, newFinder()
	both := []*outbox.Store{open(t, cfg, local, far), open(t, cfg, local, far)}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // less than a search may wait
	defer cancel()
	for n := range 12 {
		word := fmt.Sprintf("kestrel%d", n)
		mustAppend(t, both[n%2], said(n, word))
		searcher, _ := core.As[core.Searcher](both[n/2%2])
		hits, err := searcher.Search(ctx, core.SearchQuery{Scope: ann.Scope(), Text: word, Limit: 3})
		if err != nil || len(hits) != 1 || hits[0].Entry.ID != entry(ann, n).ID {
			t.Fatalf("Search by process %d for what process %d had appended: %d hits, error %v, want that entry", n/2%2, n%2, len(hits), err)
		}
	}
}

// TestSearchBesideAStoppedProcess: another process that was stopped while it held the journal's lock keeps no search waiting.
func TestSearchBesideAStoppedProcess(t *testing.T) {
	t.Parallel()
	cfg := durable(t, func(c *outbox.Config) { c.CloseTimeout = time.Millisecond })
	s := open(t, cfg, newFinder(), newFinder())
	mustAppend(t, s, said(0, "kestrel"))
	mustDrain(t, s)
	f, err := os.OpenFile(cfg.Path+".lock", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	eventually(t, "the lock is free", func() bool { return files.TryLock(f) == nil })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	searcher, _ := core.As[core.Searcher](s)
	hits, err := searcher.Search(ctx, core.SearchQuery{Scope: ann.Scope(), Text: "kestrel", Limit: 3})
	if err != nil || len(hits) != 1 {
		t.Errorf("Search while the journal is locked: %d hits, error %v, want the entry", len(hits), err)
	}
	if err := files.Unlock(f); err != nil {
		t.Error(err)
	}
}
