package openbrain_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

func TestScanOrderAndRange(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	a, b := run("main", "a", 0, 7), run("main", "b", 0, 4)
	late := entry("main", "b", 9, "same place, later")
	late.Seq = 2
	// Two that do not look at what others write put entries at one position, which the server lets them: the first comes first.
	blind := open(t, srv, func(c *openbrain.Config) { c.Exclusive = true })
	mustAppend(t, blind, run("other", "a", 0, 3)...)
	mustAppend(t, blind, a[0])
	mustAppend(t, s, b...)
	mustAppend(t, s, a[4:]...) // not in order
	mustAppend(t, s, a[1:4]...)
	if _, err := s.Append(t.Context(), []core.Entry{late}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("Append at a position that is taken = %v, want ErrConflict", err)
	}
	mustAppend(t, blind, late)
	b = slices.Insert(b, 3, late)

	for _, limit := range []int{1, 3, 1000} {
		want := append(slices.Clone(a), b...)
		if diff := cmp.Diff(want, all(t, s, agentScope("main"), false, limit)); diff != "" {
			t.Errorf("forward, limit %d (-want +got):\n%s", limit, diff)
		}
		slices.Reverse(want)
		if diff := cmp.Diff(want, all(t, s, agentScope("main"), true, limit)); diff != "" {
			t.Errorf("reverse, limit %d (-want +got):\n%s", limit, diff)
		}
	}
	page, err := s.Scan(t.Context(), core.ScanQuery{Scope: core.Scope{Agent: "main", Session: "a"}, Limit: 10, FromSeq: 2, ToSeq: 5, Reverse: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{a[4].ID, a[3].ID, a[2].ID}, ids(page.Entries)); diff != "" || page.Next != "" {
		t.Errorf("range (-want +got):\n%s next %q", diff, page.Next)
	}
}

func TestScanListsOnce(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	mustAppend(t, s, run("main", "a", 0, 9)...)
	srv.Forget()
	all(t, s, agentScope("main"), false, 2)
	if n := len(srv.Requests()); n != 1 {
		t.Errorf("%d requests for one scan, want 1", n)
	}
}

// A scan that lost its snapshot, or goes on in another process, continues where it was.
func TestScanGoesOn(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		srv := openbraintest.New(t)
		s := open(t, srv)
		want := run("main", "a", 0, 6)
		mustAppend(t, s, want...)
		if reverse {
			slices.Reverse(want)
		}
		q := core.ScanQuery{Scope: agentScope("main"), Limit: 2, Reverse: reverse}
		page, err := s.Scan(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got := page.Entries
		for range 20 { // push the snapshot out
			if _, err := s.Scan(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		q.Cursor = page.Next
		for _, store := range []*openbrain.Store{s, open(t, srv)} {
			if page, err = store.Scan(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			got, q.Cursor = append(got, page.Entries...), page.Next
		}
		if diff := cmp.Diff(ids(want), ids(got)); diff != "" || q.Cursor != "" {
			t.Errorf("reverse %t (-want +got):\n%s next %q", reverse, diff, q.Cursor)
		}
	}
}

// Two stores may give the same name to snapshots of different scans.
func TestScanMixesNoSnapshots(t *testing.T) {
	srv := openbraintest.New(t)
	s, other := open(t, srv), open(t, srv)
	a, b := run("main", "a", 0, 4), run("main", "b", 0, 4)
	mustAppend(t, s, a...)
	mustAppend(t, s, b...)
	qa := core.ScanQuery{Scope: core.Scope{Agent: "main", Session: "a"}, Limit: 2}
	qb := core.ScanQuery{Scope: core.Scope{Agent: "main", Session: "b"}, Limit: 2}
	page, err := s.Scan(t.Context(), qa)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Scan(t.Context(), qb); err != nil {
		t.Fatal(err)
	}
	qa.Cursor = page.Next
	if page, err = other.Scan(t.Context(), qa); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ids(a[2:]), ids(page.Entries)); diff != "" {
		t.Errorf("second page (-want +got):\n%s", diff)
	}
}

func TestScanShowsNothingErased(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	want := run("main", "a", 0, 4)
	mustAppend(t, s, want...)
	q := core.ScanQuery{Scope: agentScope("main"), Limit: 2}
	page, err := s.Scan(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), agentScope("main"), ids(want[1:3])); err != nil {
		t.Fatal(err)
	}
	q.Cursor = page.Next
	if page, err = s.Scan(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ids(want[3:]), ids(page.Entries)); diff != "" {
		t.Errorf("after the erasure (-want +got):\n%s", diff)
	}
}

func TestScanRefusesForeignCursors(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	mustAppend(t, s, run("main", "a", 0, 4)...)
	page, err := s.Scan(t.Context(), core.ScanQuery{Scope: agentScope("main"), Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]core.ScanQuery{
		"direction": {Scope: agentScope("main"), Limit: 2, Reverse: true, Cursor: page.Next},
		"scope":     {Scope: agentScope("other"), Limit: 2, Cursor: page.Next},
		"garbage":   {Scope: agentScope("main"), Limit: 2, Cursor: "%%"},
		"limit":     {Scope: agentScope("main"), Limit: 0},
		"agent":     {Limit: 2},
	} {
		if _, err := s.Scan(t.Context(), q); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: Scan = %v, want ErrInvalid", name, err)
		}
	}
}

// servers are the ways lists can be paged, cut and refused, and whether everything can be seen nevertheless.
func servers() map[string]struct {
	set   func(*openbraintest.Behavior)
	whole bool
} {
	type b = openbraintest.Behavior
	type row = struct {
		set   func(*b)
		whole bool
	}
	return map[string]row{
		"offsets":                     {func(*b) {}, true},
		"offsets, cut":                {func(x *b) { x.MaxLimit = 12 }, true},
		"offsets, refused":            {func(x *b) { x.MaxLimit, x.RefuseLimit = 7, true }, true},
		"offsets, total":              {func(x *b) { x.MaxLimit, x.Total = 12, true }, true},
		"no offsets":                  {func(x *b) { x.NoOffset = true }, true},
		"no offsets, refused later":   {func(x *b) { x.NoOffset, x.MaxLimit, x.RefuseLimit = true, 150, true }, true},
		"no offsets, cut":             {func(x *b) { x.NoOffset, x.MaxLimit = true, 12 }, false},
		"no offsets, cut, total":      {func(x *b) { x.NoOffset, x.MaxLimit, x.NoStats, x.Total = true, 12, true, true }, false},
		"no offsets, refused":         {func(x *b) { x.NoOffset, x.MaxLimit, x.RefuseLimit = true, 20, true }, false},
		"recent only":                 {func(x *b) { x.NoList, x.NoOffset = true, true }, true},
		"recent only, of all sources": {func(x *b) { x.NoList, x.NoOffset, x.RecentIgnoresSource, x.NoStats = true, true, true, true }, true},
		"recent only, cut":            {func(x *b) { x.NoList, x.NoOffset, x.NoGet, x.MaxLimit = true, true, true, 12 }, false},
		"no recent":                   {func(x *b) { x.NoRecent = true }, true},
	}
}

func TestListing(t *testing.T) {
	needs.NoRace(t)
	for name, server := range servers() {
		for _, n := range []int{0, 1, 2, 9, 12, 100, 101, 130} {
			srv := openbraintest.New(t, server.set)
			writer := open(t, srv, func(c *openbrain.Config) { c.Exclusive = true })
			want := run("main", "s", 0, n)
			for i := range want { // one by one: most entries come so
				mustAppend(t, writer, want[i])
			}
			mustAppend(t, writer, run("other", "s", 0, 2)...)
			got, err := open(t, srv).Scan(t.Context(), core.ScanQuery{Scope: agentScope("main"), Limit: core.MaxPage})
			switch {
			case err == nil && !server.whole && n > 12:
				if shown := len(got.Entries); shown < 10 || !cmp.Equal(ids(want[n-shown:]), ids(got.Entries)) {
					t.Errorf("%s, %d entries: %d shown, and not the newest: %v", name, n, shown, ids(got.Entries))
				}
			case err != nil:
				t.Errorf("%s, %d entries: Scan: %v", name, n, err)
			default:
				if diff := cmp.Diff(ids(want), ids(got.Entries)); diff != "" {
					t.Errorf("%s, %d entries (-want +got):\n%s", name, n, diff)
				}
			}
		}
	}
}

// On a server that shows its newest thoughts only, a store knows what it wrote itself, another one the newest; search finds the rest.
func TestPartialServer(t *testing.T) {
	for name, set := range map[string]func(*openbraintest.Behavior){
		"recent only, cut": servers()["recent only, cut"].set, "strict, refuses": openbraintest.Strict(20, false), "strict, cuts": openbraintest.Strict(20, true),
	} {
		srv := openbraintest.New(t, set)
		s := open(t, srv)
		want := run("main", "s", 0, 30)
		for _, e := range want {
			mustAppend(t, s, e)
		}
		if diff := cmp.Diff(want, all(t, s, agentScope("main"), false, 7)); diff != "" {
			t.Errorf("%s: what the store wrote itself (-want +got):\n%s", name, diff)
		}
		got, err := s.Get(t.Context(), agentScope("main"), ids(want[:1]))
		if err != nil || !cmp.Equal(want[:1], got) {
			t.Errorf("%s: Get = %v, %v", name, got, err)
		}
		want[0].Meta = map[string]string{"a": "b"}
		if err := s.Update(t.Context(), agentScope("main"), want[0].ID, core.Change{Meta: want[0].Meta}); err != nil {
			t.Errorf("%s: Update: %v", name, err)
		}
		other := open(t, srv)
		shown := all(t, other, agentScope("main"), false, 7)
		if n := len(shown); n < 12 || n > 20 || !cmp.Equal(shown, want[30-n:]) {
			t.Errorf("%s: another store sees %v, want the newest", name, ids(shown))
		}
		if _, err := other.Get(t.Context(), agentScope("main"), ids(want[:1])); !errors.Is(err, core.ErrNotFound) || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: Get of an entry out of sight = %v, want ErrNotFound, and why it may be there", name, err)
		}
		hits, err := other.Search(t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: "word0", Limit: 1})
		if err != nil || len(hits) != 1 || !cmp.Equal(hits[0].Entry, want[0]) {
			t.Errorf("%s: Search = %v, %v; want the entry", name, hits, err)
		}
		if got, err := other.Get(t.Context(), agentScope("main"), ids(want[:1])); err != nil || !cmp.Equal(want[:1], got) {
			t.Errorf("%s: Get of what was found = %v, %v", name, got, err)
		}
		if n, err := s.Delete(t.Context(), agentScope("main"), []string{want[0].ID, want[29].ID}); n != 2 || err != nil {
			t.Errorf("%s: Delete = %d, %v; want 2", name, n, err)
		}
		if n := len(srv.Thoughts()); n != 28 {
			t.Errorf("%s: server has %d thoughts, want 28", name, n)
		}
		if diff := cmp.Diff(ids(want[1:29]), ids(all(t, s, agentScope("main"), false, 100))); diff != "" {
			t.Errorf("%s: after the delete (-want +got):\n%s", name, diff)
		}
	}
}

// TestTailOfTheDocument: a server with the documented calls alone is asked once whether it counts changes.
func TestTailOfTheDocument(t *testing.T) {
	srv := openbraintest.New(t, openbraintest.Strict(20, true))
	s := open(t, srv)
	for range 3 {
		if _, err := s.Tail(t.Context(), core.SessionID{Agent: "main", Session: "s"}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Tail = %v, want ErrUnsupported", err)
		}
	}
	if n := len(srv.Requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}
