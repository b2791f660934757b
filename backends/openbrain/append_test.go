package openbrain_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

func noRetries(c *openbrain.Config) { c.MaxRetries = 0 }

func TestAppendIsIdempotent(t *testing.T) {
	srv := openbraintest.New(t)
	s, other := open(t, srv), open(t, srv)
	first := run("main", "s", 0, 3)
	mustAppend(t, s, first...)
	mustAppend(t, other, run("main", "other", 0, 1)...) // has an index of its own now

	more := run("main", "s", 1, 5)
	for i := range more {
		more[i].ID += "-again"
	}
	twice := slices.Concat(more, more[3:])
	res := mustAppend(t, other, twice...)
	want := core.AppendResult{
		IDs:        []string{first[1].ID, first[2].ID, more[2].ID, more[3].ID, more[3].ID},
		Duplicates: 3,
	}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("Append (-want +got):\n%s", diff)
	}
	if res := mustAppend(t, s, twice...); res.Duplicates != 5 {
		t.Errorf("Append through the first store: %d duplicates, want 5", res.Duplicates)
	}
	if n := len(srv.Thoughts()); n != 6 {
		t.Errorf("server has %d thoughts, want 6", n)
	}
}

func TestAppendConflict(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	mustAppend(t, s, run("main", "s", 0, 1)...)
	e := entry("main", "s", 0, "x")
	e.Key = "another"
	foreign := entry("agent2", "s", 0, "x")
	foreign.ID = e.ID
	a, b := entry("main", "s", 8, "x"), entry("main", "s", 9, "x")
	b.ID = a.ID
	for name, entries := range map[string][]core.Entry{"stored": {e}, "of another agent": {foreign}, "in one call": {a, b}} {
		if _, err := s.Append(t.Context(), entries); !errors.Is(err, core.ErrConflict) {
			t.Errorf("%s: Append = %v, want ErrConflict", name, err)
		}
	}
	holds(t, srv, "main", run("main", "s", 0, 1))
}

func TestAppendShowsNothingOfAHalfSentBatch(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv, noRetries)
	before := run("main", "s", 0, 1)
	mustAppend(t, s, before...)
	batch := run("main", "s", 1, 6)
	srv.Inject(openbraintest.Fault{Method: "POST", Path: "=/v1/thoughts", Skip: 3, Times: -1, Do: openbraintest.Status(503, "text/plain", "down")})
	if _, err := s.Append(t.Context(), batch); !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("Append = %v, want ErrUnavailable", err)
	}
	holds(t, srv, "main", before)
	hits, err := open(t, srv).Search(t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: "shared", Limit: 10})
	if err != nil || len(hits) != 1 {
		t.Errorf("Search = %d hits, %v; want the one entry from before", len(hits), err)
	}
	if _, err := open(t, srv).Get(t.Context(), agentScope("main"), ids(batch[:1])); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Get of a hidden entry = %v, want ErrNotFound", err)
	}
	srv.Heal()

	t.Run("repeating it sends what is missing", func(t *testing.T) {
		srv.Forget()
		res := mustAppend(t, open(t, srv), batch...)
		if res.Duplicates != 0 {
			t.Errorf("%d duplicates, want 0: nothing was visible", res.Duplicates)
		}
		posts := 0
		for _, r := range srv.Requests() {
			if r.Method == "POST" {
				posts++
			}
		}
		if posts != 2 {
			t.Errorf("%d entries sent, want the 2 that were missing", posts)
		}
		holds(t, srv, "main", append(before, batch...))
	})
}

func TestAppendOfAnotherBatchTakesOver(t *testing.T) {
	for name, pick := range map[string]func([]core.Entry) []core.Entry{
		"one of them":    func(b []core.Entry) []core.Entry { return b[:1] },
		"more":           func(b []core.Entry) []core.Entry { return append(b, entry("main", "s", 9, "more")) },
		"other sequence": func(b []core.Entry) []core.Entry { b[0].Seq = 77; return b[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			srv := openbraintest.New(t)
			s := open(t, srv, noRetries)
			srv.Inject(openbraintest.Fault{Method: "POST", Path: "=/v1/thoughts", Skip: 2, Do: openbraintest.Reset})
			if _, err := s.Append(t.Context(), run("main", "s", 0, 3)); err == nil {
				t.Fatal("Append succeeded through a fault")
			}
			want := pick(run("main", "s", 0, 3))
			mustAppend(t, s, want...)
			holds(t, srv, "main", want)
		})
	}
}

// TestAnotherWritersBatchIsLeftAlone: entries of another process, which has other ids for the same keys, may still be completed by it. What it left for longer than
// that is taken over.
func TestAnotherWritersBatchIsLeftAlone(t *testing.T) {
	srv := openbraintest.New(t)
	first, late := open(t, srv, noRetries), time.Now()
	cfg := openbrain.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = srv.URL(), srv.Key()
	other, err := openbrain.Open(t.Context(), cfg, openbrain.WithClock(func() time.Time { return late }))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	srv.Inject(openbraintest.Fault{Method: "POST", Path: "=/v1/thoughts", Skip: 2, Do: openbraintest.Reset})
	begun := run("main", "s", 0, 3)
	if _, err := first.Append(t.Context(), begun); err == nil {
		t.Fatal("Append succeeded through a fault")
	}
	again := run("main", "s", 0, 3)
	for i := range again {
		again[i].ID += "x"
	}
	if _, err := other.Append(t.Context(), again); !errors.Is(err, core.ErrConflict) {
		t.Fatalf("Append of what another process is storing = %v, want ErrConflict", err)
	}
	if n := len(srv.Thoughts()); n != 2 {
		t.Fatalf("server has %d thoughts, want the 2 that were sent", n)
	}
	late = late.Add(2 * time.Minute)
	mustAppend(t, other, again...)
	holds(t, srv, "main", again)
	if res := mustAppend(t, first, begun...); res.Duplicates != 3 {
		t.Errorf("the first writer comes back: %d duplicates, want 3", res.Duplicates)
	}
	holds(t, srv, "main", again)
}

func TestRefusedBatchLeavesNothingBehind(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	srv.Inject(openbraintest.Fault{Method: "POST", Path: "=/v1/thoughts", Skip: 2, Do: openbraintest.Status(413, "text/plain", "too large")})
	if _, err := s.Append(t.Context(), run("main", "s", 0, 3)); !errors.Is(err, core.ErrInvalid) {
		t.Fatalf("Append = %v, want ErrInvalid", err)
	}
	if n := len(srv.Thoughts()); n != 0 {
		t.Errorf("server has %d thoughts, want 0", n)
	}
}

func TestCopiesCountOnce(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	want := run("main", "s", 0, 2)
	mustAppend(t, s, want[0])
	mustAppend(t, s, want[1])
	for _, th := range srv.Thoughts() { // the second delivery of each
		srv.Insert(th.Content, th.Source, th.Metadata)
	}
	holds(t, srv, "main", want)
	hits, err := open(t, srv).Search(t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: "shared", Limit: 10})
	if err != nil || len(hits) != 2 {
		t.Errorf("Search = %d hits, %v; want 2", len(hits), err)
	}
	n, err := s.Delete(t.Context(), agentScope("main"), ids(want[:1]))
	if n != 1 || err != nil {
		t.Errorf("Delete = %d, %v; want 1", n, err)
	}
	if n := len(srv.Thoughts()); n != 2 {
		t.Errorf("server has %d thoughts, want the other entry's 2: an erased entry has no copies", n)
	}
	holds(t, srv, "main", want[1:])
}

func TestServerThatMergesContents(t *testing.T) {
	for name, set := range shapes() {
		srv := openbraintest.New(t, set, func(b *openbraintest.Behavior) { b.Merge = openbraintest.MergeSame })
		s := open(t, srv)
		srv.Insert("ok", "notes", map[string]any{"id": "x"})
		mustAppend(t, s, entry("main", "s", 0, "ok"))
		mustAppend(t, s, entry("main", "s", 1, "ok"), entry("main", "s", 2, "ok"), entry("main", "s", 3, "ok"))
		other := entry("other", "s", 0, "ok")
		mustAppend(t, s, other)
		holds(t, srv, "main", []core.Entry{entry("main", "s", 0, "ok"), entry("main", "s", 1, "ok"), entry("main", "s", 2, "ok"), entry("main", "s", 3, "ok")})
		holds(t, srv, "other", []core.Entry{other})
		if t.Failed() {
			t.Fatalf("server that answers with %s", name)
		}
	}
}

// A server that takes whatever is alike for the same, or writes over it, is named, and the batch is none.
func TestServerThatMergesAlike(t *testing.T) {
	for name, set := range shapes() {
		for _, how := range []openbraintest.Merge{openbraintest.MergeAlike, openbraintest.MergeOver} {
			srv := openbraintest.New(t, set, func(b *openbraintest.Behavior) { b.Merge = how })
			s := open(t, srv)
			mustAppend(t, s, entry("main", "s", 0, "we met at the old bridge on friday"))
			for try := range 2 {
				_, err := s.Append(t.Context(), []core.Entry{entry("main", "s", 1, "zebra"), entry("main", "s", 2, "at the old bridge we met on friday")})
				if how == openbraintest.MergeOver && try > 0 {
					break // the first entry is gone, and that was said
				}
				if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, core.ErrUnavailable) {
					t.Errorf("%s, %v: Append = %v, want ErrUnsupported: an entry would be lost", name, how, err)
				}
				if how == openbraintest.MergeAlike {
					holds(t, srv, "main", []core.Entry{entry("main", "s", 0, "we met at the old bridge on friday")})
				}
			}
		}
	}
}

func TestAppendSeesErasuresOfOthers(t *testing.T) {
	srv := openbraintest.New(t)
	s, other := open(t, srv), open(t, srv)
	want := run("main", "s", 0, 2)
	mustAppend(t, s, want...)
	if _, err := other.Delete(t.Context(), agentScope("main"), ids(want)); err != nil {
		t.Fatal(err)
	}
	if res := mustAppend(t, s, want...); res.Duplicates != 0 {
		t.Errorf("%d duplicates, want 0: they were erased", res.Duplicates)
	}
	holds(t, srv, "main", want)
}

func TestAppendToSeveralAgents(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	a, b := run("a", "s", 0, 3), run("b", "s", 0, 2)
	mustAppend(t, s, a[0], b[0], a[1], b[1], a[2])
	holds(t, srv, "a", a)
	holds(t, srv, "b", b)
}

func TestConcurrentAppends(t *testing.T) {
	srv := openbraintest.New(t)
	stores := []*openbrain.Store{open(t, srv), open(t, srv)}
	want := run("main", "s", 0, 12)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() { // every entry by two goroutines, of one store or of two
			k := i / 2 * 4
			if _, err := stores[i%2].Append(t.Context(), want[k:k+4]); err != nil {
				t.Errorf("Append: %v", err)
			}
		})
		wg.Go(func() {
			if _, err := stores[i%2].Scan(t.Context(), core.ScanQuery{Scope: agentScope("main"), Limit: 2}); err != nil {
				t.Errorf("Scan: %v", err)
			}
		})
	}
	wg.Wait()
	holds(t, srv, "main", want)
}
