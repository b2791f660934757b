package memory_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/drawn"
)

// walk follows a scan to its end and returns the ids.
func walk(t *testing.T, s *memory.Store, q core.ScanQuery, between func()) []string {
	t.Helper()
	out := []string{}
	for {
		page, err := s.Scan(t.Context(), q)
		if err != nil {
			t.Fatalf("Scan(%+v): %v", q, err)
		}
		if len(page.Entries) > q.Limit {
			t.Fatalf("Scan returned %d entries, limit %d", len(page.Entries), q.Limit)
		}
		out = append(out, ids(page.Entries)...)
		if page.Next == "" {
			return out
		}
		q.Cursor = page.Next
		if between != nil {
			between()
		}
	}
}

func TestScanOrdersBySeq(t *testing.T) {
	s := memory.New()
	rnd := drawn.Rand(t)
	type placed struct {
		id  string
		seq int64
	}
	var all []placed
	for n, at := range rnd.Perm(3000) {
		e := entry(ann, n)
		e.Seq = int64(at)
		mustAppend(t, s, e)
		all = append(all, placed{e.ID, e.Seq})
	}
	slices.SortFunc(all, func(a, b placed) int { return int(a.seq - b.seq) })
	var want []string
	for _, p := range all {
		want = append(want, p.id)
	}
	for _, limit := range []int{1, 7, 512, 1000} {
		q := core.ScanQuery{Scope: ann.Scope(), Limit: limit}
		if diff := cmp.Diff(want, walk(t, s, q, nil)); diff != "" {
			t.Fatalf("limit %d (-want +got):\n%s", limit, diff)
		}
		q.Reverse = true
		back := walk(t, s, q, nil)
		slices.Reverse(back)
		if diff := cmp.Diff(want, back); diff != "" {
			t.Fatalf("limit %d reversed (-want +got):\n%s", limit, diff)
		}
	}
	var inside []string
	for _, p := range all {
		if p.seq >= 100 && p.seq < 300 {
			inside = append(inside, p.id)
		}
	}
	for _, reverse := range []bool{false, true} {
		got := walk(t, s, core.ScanQuery{Scope: ann.Scope(), Limit: 33, FromSeq: 100, ToSeq: 300, Reverse: reverse}, nil)
		if reverse {
			slices.Reverse(got)
		}
		if diff := cmp.Diff(inside, got); diff != "" {
			t.Fatalf("range, reverse %v (-want +got):\n%s", reverse, diff)
		}
	}
	// The same after removing nine of ten in random order.
	for i, n := range rnd.Perm(len(all)) {
		if i%10 != 0 {
			if k, err := s.Delete(t.Context(), ann.Scope(), []string{all[n].id}); k != 1 || err != nil {
				t.Fatalf("Delete = %d, %v", k, err)
			}
			want[n] = ""
		}
	}
	want = slices.DeleteFunc(want, func(id string) bool { return id == "" })
	if diff := cmp.Diff(want, walk(t, s, core.ScanQuery{Scope: ann.Scope(), Limit: 10}, nil)); diff != "" {
		t.Fatalf("after deletes (-want +got):\n%s", diff)
	}
}

func TestScanOfAnAgentWhileItChanges(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		t.Run(fmt.Sprint("reverse=", reverse), func(t *testing.T) {
			s := memory.New()
			keep := map[string]bool{}
			var sessions []core.SessionID
			for n := range 6 {
				id := core.SessionID{Agent: "ann", Session: fmt.Sprint("s", n)}
				sessions = append(sessions, id)
				mustAppend(t, s, entries(id, 0, 5)...)
				for _, e := range entries(id, 0, 5) {
					keep[e.ID] = n%2 == 0
				}
			}
			mustAppend(t, s, entries(core.SessionID{Agent: "bob", Session: "s0"}, 0, 3)...)
			round := 0
			got := walk(t, s, core.ScanQuery{Scope: core.Scope{Agent: "ann"}, Limit: 2, Reverse: reverse}, func() {
				// New sessions and entries come, whole sessions (every second) vanish while the scan is under way.
				id := core.SessionID{Agent: "ann", Session: fmt.Sprint("new", round)}
				if round < 8 {
					mustAppend(t, s, entry(id, 0), entry(sessions[0], 100+round))
				}
				if gone := 2*round + 1; gone < len(sessions) {
					var del []string
					for _, e := range entries(sessions[gone], 0, 5) {
						del = append(del, e.ID)
					}
					if _, err := s.Delete(t.Context(), sessions[gone].Scope(), del); err != nil {
						t.Fatal(err)
					}
				}
				round++
			})
			seen := map[string]int{}
			for _, id := range got {
				seen[id]++
			}
			for id, stays := range keep {
				if stays && seen[id] != 1 {
					t.Errorf("entry %s was visited %d times, want once", id, seen[id])
				}
			}
			for id, n := range seen {
				if n > 1 || id[:3] != "ann" {
					t.Errorf("entry %s was visited %d times", id, n)
				}
			}
		})
	}
}

func TestScanGoesOnWhenItsPlaceIsGone(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		s := memory.New()
		for _, name := range []string{"a", "b", "c"} {
			mustAppend(t, s, entries(core.SessionID{Agent: "ann", Session: name}, 0, 2)...)
		}
		q := core.ScanQuery{Scope: core.Scope{Agent: "ann"}, Limit: 3, Reverse: reverse}
		page, err := s.Scan(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Delete(t.Context(), core.Scope{Agent: "ann"}, []string{"ann-b-0", "ann-b-1"}); err != nil {
			t.Fatal(err)
		}
		q.Cursor = page.Next
		want := []string{"ann-c-0", "ann-c-1"}
		if reverse {
			want = []string{"ann-a-1", "ann-a-0"}
		}
		if diff := cmp.Diff(want, walk(t, s, q, nil)); diff != "" {
			t.Errorf("reverse %v (-want +got):\n%s", reverse, diff)
		}
	}
}

func TestScanRefuses(t *testing.T) {
	s := memory.New()
	mustAppend(t, s, entries(ann, 0, 3)...)
	page, err := s.Scan(t.Context(), core.ScanQuery{Scope: ann.Scope(), Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]core.ScanQuery{
		"no limit":             {Scope: ann.Scope()},
		"limit too large":      {Scope: ann.Scope(), Limit: core.MaxPage + 1},
		"no agent":             {Limit: 1},
		"garbled cursor":       {Scope: ann.Scope(), Limit: 1, Cursor: "f.x"},
		"cursor of other kind": {Scope: ann.Scope(), Limit: 1, Cursor: page.Next, Reverse: true},
	} {
		if _, err := s.Scan(t.Context(), q); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: Scan = %v, want ErrInvalid", name, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("f.1.0.2", false)
	f.Add("r.zz.-9.18446744073709551615", true)
	f.Fuzz(func(t *testing.T, cursor string, reverse bool) {
		s := memory.New()
		mustAppend(t, s, entries(ann, 0, 3)...)
		for _, scope := range []core.Scope{ann.Scope(), {Agent: "ann"}} {
			_, err := s.Scan(t.Context(), core.ScanQuery{Scope: scope, Limit: 2, Cursor: core.Cursor(cursor), Reverse: reverse})
			if err != nil && !errors.Is(err, core.ErrInvalid) {
				t.Errorf("Scan with cursor %q = %v", cursor, err)
			}
		}
	})
}
