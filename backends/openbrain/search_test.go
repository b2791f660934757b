package openbrain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

func TestSearch(t *testing.T) {
	for name, set := range shapes() {
		t.Run(name, func(t *testing.T) {
			srv := openbraintest.New(t, set)
			s := open(t, srv)
			texts := []string{"red apple", "green apple tree", "blue sky", "apple", "apple timer", "an apple a day keeps doctors away"}
			var entries []core.Entry
			for i, text := range texts {
				e := entry("main", "s", i, text)
				if text == "apple timer" {
					e.Type = core.TypeHeartbeat
				}
				entries = append(entries, e)
			}
			mustAppend(t, s, entries...)
			mustAppend(t, s, entry("main", "t", 0, "apple in another session"))
			mustAppend(t, s, entry("agent2", "s", 0, "apple"))
			srv.Insert("apple", "notes", nil)
			srv.Insert("apple apple", "openclaw:main", map[string]any{"sessionId": "s", "role": "user"})

			hits, err := s.Search(t.Context(), core.SearchQuery{Scope: core.Scope{Agent: "main", Session: "s"}, Text: "apple?", Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{entries[3].ID, entries[0].ID, entries[1].ID, entries[5].ID}
			if diff := cmp.Diff(want, hitIDs(hits)); diff != "" {
				t.Errorf("hits (-want +got):\n%s", diff)
			}
			if !slices.IsSortedFunc(hits, func(a, b core.Hit) int { return -cmpFloat(a.Score, b.Score) }) {
				t.Errorf("scores are not falling: %v", hits)
			}
			if s.Skipped() == 0 {
				t.Error("thoughts of others were not counted")
			}

			q := core.SearchQuery{
				Scope: agentScope("main"), Text: "apple", Limit: 2, From: entries[1].Time, To: entries[5].Time,
				Exclude: func(id string) bool { return id == entries[3].ID },
			}
			if hits, err = s.Search(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{entries[1].ID}, hitIDs(hits)); diff != "" {
				t.Errorf("restricted hits (-want +got):\n%s", diff)
			}
		})
	}
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func hitIDs(hits []core.Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Entry.ID)
	}
	return out
}

// The server's best hits all belong to others: the search asks for more until it has enough, or there is no more.
func TestSearchLooksFurther(t *testing.T) {
	for _, limit := range []int{0, 60} {
		srv := openbraintest.New(t, func(b *openbraintest.Behavior) { b.MaxLimit, b.RefuseLimit = limit, true })
		s := open(t, srv)
		mustAppend(t, s, entry("main", "s", 0, "apple and pear and plum"))
		for i := range 50 {
			srv.Insert(fmt.Sprint("apple ", i), "notes", nil)
		}
		hits, err := s.Search(t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: "apple", Limit: 1})
		if want := 1; limit == 0 && (err != nil || len(hits) != want) {
			t.Errorf("limit %d: Search = %d hits, %v; want %d", limit, len(hits), err, want)
		}
		if err != nil {
			t.Errorf("limit %d: Search: %v", limit, err)
		}
	}
}

func TestSearchForNothing(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	for _, text := range []string{"", " \n", "\x00"} {
		hits, err := s.Search(t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: text, Limit: 5})
		if len(hits) != 0 || err != nil {
			t.Errorf("Search(%q) = %v, %v", text, hits, err)
		}
	}
	if n := len(srv.Requests()); n != 0 {
		t.Errorf("%d requests for empty queries", n)
	}
}

func TestSearchTies(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	a, b, c := entry("main", "s", 0, "tie"), entry("main", "s", 1, "tie"), entry("main", "s", 2, "tie")
	b.Time, c.Time = a.Time.Add(time.Second), a.Time
	mustAppend(t, s, c, b, a)
	hits, err := s.Search(t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: "tie", Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{b.ID, a.ID, c.ID}, hitIDs(hits)); diff != "" {
		t.Errorf("ties (-want +got):\n%s", diff)
	}
}

func TestSearchWithoutMetadataFindsNothing(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	mustAppend(t, s, entry("main", "s", 0, "apple"))
	srv.Set(func(b *openbraintest.Behavior) { b.NoMetadata, b.IDField = true, "" })
	hits, err := s.Search(t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: "apple", Limit: 3})
	if len(hits) != 0 || err != nil || s.Skipped() != 1 {
		t.Errorf("Search = %v, %v; skipped %d, want 1", hits, err, s.Skipped())
	}
}

// The body of a search has the document's keys alone; a source goes along only where an answer said that searches take it.
func TestSearchSource(t *testing.T) {
	for _, how := range []openbraintest.SearchSource{
		openbraintest.SourceIgnored, openbraintest.SourceHonoured, openbraintest.SourceForbidden, openbraintest.SourceRefused,
	} {
		srv := openbraintest.New(t, func(b *openbraintest.Behavior) { b.SearchSource = how })
		s := open(t, srv)
		mustAppend(t, s, run("main", "s", 0, 3)...)
		srv.Insert("word1 shared", "notes", nil)
		srv.Forget()
		for range 3 {
			hits, err := s.Search(t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: "shared", Limit: 10})
			if err != nil || len(hits) != 3 {
				t.Errorf("server %d: Search = %v, %v; want 3 hits", how, hitIDs(hits), err)
			}
		}
		requests := srv.Requests()
		if len(requests) != 3 {
			t.Errorf("server %d: %d requests for 3 searches", how, len(requests))
		}
		for i, r := range requests {
			if named := strings.Contains(r.Body, `"source"`); named != (how == openbraintest.SourceHonoured && i > 0) {
				t.Errorf("server %d: search %d: %s", how, i, r.Body)
			}
		}
	}
}
