package openbrain_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// Thoughts come and go while a scan lists them: every entry that was there and stays is seen exactly once.
func TestListingWhileThoughtsMove(t *testing.T) {
	for name, move := range map[string]func(*openbraintest.Server){
		"one comes": func(s *openbraintest.Server) { s.Insert("new", "openclaw:main", nil) },
		"many come": func(s *openbraintest.Server) { comes(s, 11) },
		"a page":    func(s *openbraintest.Server) { comes(s, 9) },
		"newest go": func(s *openbraintest.Server) { goes(s, 47, 3) },
		"more go":   func(s *openbraintest.Server) { goes(s, 38, 12) },
		"oldest go": func(s *openbraintest.Server) { goes(s, 0, 3) },
		"one moves": func(s *openbraintest.Server) { moves(s, 3) },
		"many move": func(s *openbraintest.Server) {
			for i := range 12 {
				moves(s, i/2)
			}
		},
		"all is new": func(s *openbraintest.Server) { comes(s, 60) },
	} {
		for skip := range 4 {
			srv := openbraintest.New(t)
			want := run("main", "s", 0, 50)
			writer := open(t, srv)
			for _, e := range want {
				mustAppend(t, writer, e)
			}
			srv.Inject(openbraintest.Fault{Method: "GET", Path: "=/v1/thoughts", Skip: skip, Do: func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
				move(srv)
				serve(w, r)
			}})
			s := open(t, srv, func(c *openbrain.Config) { c.PageSize = 10 })
			got := all(t, s, agentScope("main"), false, core.MaxPage)
			left := map[string]bool{}
			for _, e := range all(t, open(t, srv), agentScope("main"), false, core.MaxPage) {
				left[e.ID] = true
			}
			seen := ids(slices.DeleteFunc(got, func(e core.Entry) bool { return !left[e.ID] }))
			stay := ids(slices.DeleteFunc(want, func(e core.Entry) bool { return !left[e.ID] }))
			if diff := cmp.Diff(stay, seen); diff != "" {
				t.Errorf("%s before request %d (-want +got):\n%s", name, skip+1, diff)
			}
		}
	}
}

func comes(s *openbraintest.Server, n int) {
	for range n {
		s.Insert("new", "openclaw:main", nil)
	}
}

func goes(s *openbraintest.Server, from, n int) {
	for _, th := range s.Thoughts()[from : from+n] {
		if th.Metadata != nil {
			s.Remove(th.ID)
		}
	}
}

// moves brings a thought to the front, as a server that sorts by the time of change does.
func moves(s *openbraintest.Server, i int) {
	th := s.Thoughts()[i]
	if s.Remove(th.ID) {
		s.Insert(th.Content, th.Source, th.Metadata)
	}
}

// Another process writes more than a look at the news can show.
func TestAppendCatchesUp(t *testing.T) {
	for name, server := range servers() {
		if !server.whole {
			continue
		}
		for _, n := range []int{1, 5, 25} {
			srv := openbraintest.New(t, server.set)
			s, other := open(t, srv), open(t, srv)
			mustAppend(t, s, run("main", "s", 0, 1)...)
			theirs := run("main", "s", 1, 1+n)
			for _, e := range theirs {
				mustAppend(t, other, e)
			}
			mustAppend(t, other, run("main", "batch", 0, 3)...)
			if res := mustAppend(t, s, theirs...); res.Duplicates != n {
				t.Errorf("%s, %d entries: %d duplicates", name, n, res.Duplicates)
			}
		}
	}
}

// What another process sent of a batch does not count as stored before the batch is complete.
func TestAppendIsNotFooledByHalfABatch(t *testing.T) {
	srv := openbraintest.New(t)
	s, other := open(t, srv), open(t, srv, noRetries)
	mustAppend(t, s, run("main", "s", 0, 1)...)
	srv.Inject(openbraintest.Fault{Method: "POST", Skip: 2, Do: openbraintest.Reset})
	if _, err := other.Append(t.Context(), run("main", "s", 1, 4)); err == nil {
		t.Fatal("Append succeeded through a fault")
	}
	if res := mustAppend(t, s, run("main", "s", 1, 2)...); res.Duplicates != 0 {
		t.Errorf("%d duplicates, want 0", res.Duplicates)
	}
	holds(t, srv, "main", run("main", "s", 0, 2))
}

// An exclusive store spends one request on an entry.
func TestExclusiveAppendAsksNothing(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv, func(c *openbrain.Config) { c.Exclusive = true })
	mustAppend(t, s, run("main", "s", 0, 1)...)
	srv.Forget()
	mustAppend(t, s, run("main", "s", 0, 4)...)
	if got := srv.Requests(); len(got) != 3 {
		t.Errorf("%d requests for 3 new entries: %v", len(got), got)
	}
}
