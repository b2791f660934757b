package lexical_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
	"github.com/contextengine/contextengine/strategies/lexical"
)

func openSQLite(t *testing.T, path string) core.Store {
	t.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = path
	s, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestMemoryAndSQLiteAlike makes the same history in a memory store and in a sqlite file that two processes use, with restarts, and expects
// the same hits and scores everywhere.
func TestMemoryAndSQLiteAlike(t *testing.T) {
	base := drawn.Seed(t)
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(base, seed))
		path := filepath.Join(t.TempDir(), "store.db")
		plain := memory.New()
		writer, reader := openSQLite(t, path), openSQLite(t, path)
		told, follows := newIndex(t, writer), newIndex(t, reader)
		var known []core.Entry
		for step := range 120 {
			switch op := rng.IntN(10); {
			case op < 7 || len(known) == 0:
				e := entry(fmt.Sprintf("e%d", step), fmt.Sprintf("s%d", rng.IntN(3)), int64(step), randomText(rng))
				e.Message.Name = []string{"", "Mira"}[rng.IntN(2)]
				e.Fingerprint = message.Fingerprint(e.Message)
				for _, s := range []core.Store{plain, writer} {
					if _, err := s.Append(t.Context(), []core.Entry{e}); err != nil {
						t.Fatal(err)
					}
				}
				if err := told.Appended(t.Context(), []core.Entry{e}); err != nil {
					t.Fatal(err)
				}
				known = append(known, e)
			case op < 9:
				k := rng.IntN(len(known))
				for _, s := range []core.Store{plain, writer} {
					if _, err := s.Delete(t.Context(), ada, []string{known[k].ID}); err != nil {
						t.Fatal(err)
					}
				}
				if err := told.Deleted(t.Context(), ada, []string{known[k].ID}); err != nil {
					t.Fatal(err)
				}
				known = append(known[:k], known[k+1:]...)
			default:
				m := message.New(message.User, randomText(rng))
				k := rng.IntN(len(known))
				for _, s := range []core.Store{plain, reader} { // the other process does it, and nobody is told
					if err := s.Update(t.Context(), ada, known[k].ID, core.Change{Message: &m, Fingerprint: message.Fingerprint(m), Tokens: 9}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if rng.IntN(15) == 0 {
				closeIndex(t, told)
				told = newIndex(t, writer)
			}
			if step%10 != 9 {
				continue
			}
			q := core.SearchQuery{Text: "Mira " + randomText(rng), Limit: 1 + rng.IntN(30)}
			want := search(t, newIndex(t, plain), q)
			for name, x := range map[string]*lexical.Index{"told": told, "following": follows, "new": newIndex(t, reader)} {
				if diff := cmp.Diff(scores(want), scores(search(t, x, q))); diff != "" {
					t.Fatalf("seed %d, step %d, query %q: over memory (-) and %s over sqlite (+) differ:\n%s", seed, step, q.Text, name, diff)
				}
			}
		}
		closeIndex(t, follows)
		closeIndex(t, told)
	}
}

func scores(hits []core.Hit) string {
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "%s %v %q\n", h.Entry.ID, h.Score, h.Passage)
	}
	return b.String()
}

// TestFilesBesideSQLite expects an index in a file beside the database, which is used after a restart, and cleaned by Scrub.
func TestFilesBesideSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openSQLite(t, path)
	for i := range 30 {
		e := entry(fmt.Sprintf("e%d", i), "s", int64(i), "copper kettle")
		if i == 7 {
			e = entry("secret", "s", int64(i), "meet me in zanzibar")
		}
		if _, err := s.Append(t.Context(), []core.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	x := newIndex(t, s)
	search(t, x, core.SearchQuery{Text: "kettle"})
	closeIndex(t, x)
	held := func() bool {
		files, err := filepath.Glob(filepath.Join(path+".d", "lexical", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(b), "zanzibar") {
				return true
			}
		}
		return false
	}
	if !held() {
		t.Fatal("no file holds the word in the first place")
	}
	if _, err := s.Delete(t.Context(), ada, []string{"secret"}); err != nil {
		t.Fatal(err)
	}
	if err := newIndex(t, s).Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	if held() {
		t.Error("a file holds the erased word after Scrub")
	}
}
