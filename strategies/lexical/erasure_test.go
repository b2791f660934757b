package lexical_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// TestErasedWordsLeaveTheFile looks for an erased word in every file after each way to erase.
func TestErasedWordsLeaveTheFile(t *testing.T) {
	ways := map[string]func(t *testing.T, s *feedStore, x *lexical.Index){
		"deleted": func(t *testing.T, s *feedStore, x *lexical.Index) {
			t.Helper()
			_, _ = s.Delete(t.Context(), ada, []string{"secret"})
			if err := x.Deleted(t.Context(), ada, []string{"secret"}); err != nil {
				t.Fatal(err)
			}
		},
		"updated": func(t *testing.T, s *feedStore, x *lexical.Index) {
			t.Helper()
			empty := message.New(message.User, "")
			_ = s.Update(t.Context(), ada, "secret", core.Change{Message: &empty, Type: core.TypeErased})
			if err := x.Updated(t.Context(), s.entries[len(s.entries)-1]); err != nil {
				t.Fatal(err)
			}
		},
		"scrubbed": func(t *testing.T, s *feedStore, x *lexical.Index) {
			t.Helper()
			_, _ = s.Delete(t.Context(), ada, []string{"secret"}) // by another process
			if err := os.WriteFile(filepath.Join(s.dir, "lexical", "x.1.tmp"), []byte("zanzibar"), 0o600); err != nil {
				t.Fatal(err) // what a crash left behind
			}
			if err := x.Scrub(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, erase := range ways {
		for _, loaded := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, loaded %v", name, loaded), func(t *testing.T) {
				store, x := filled(t, 50)
				secret := entry("secret", "alone", 99, "meet me in zanzibar")
				secret.Message.Name = "Xerxes"
				if _, err := store.Append(t.Context(), []core.Entry{secret}); err != nil {
					t.Fatal(err)
				}
				closeIndex(t, newIndex(t, store)) // knows nothing, writes nothing
				if got := ids(search(t, x, core.SearchQuery{Text: "zanzibar"})); got != "secret" {
					t.Fatalf("hits = %q, want %q", got, "secret")
				}
				closeIndex(t, x)
				if !store.holds(t, "zanzibar") {
					t.Fatal("the file does not hold the word in the first place")
				}
				x = newIndex(t, store)
				if loaded {
					search(t, x, core.SearchQuery{Text: "kettle"})
				}
				erase(t, store, x)
				if store.holds(t, "zanzibar") {
					t.Error("a file holds the erased word")
				}
				if got := ids(search(t, x, core.SearchQuery{Text: "zanzibar"})); got != "" {
					t.Errorf("hits = %q, want none", got)
				}
				closeIndex(t, x)
				if store.holds(t, "zanzibar") || store.holds(t, "xerx") {
					t.Error("the file written later holds an erased word")
				}
				if got := len(search(t, newIndex(t, store), core.SearchQuery{Text: "kettle", Limit: 99})); got != 50 {
					t.Errorf("%d hits after a restart, want 50", got)
				}
			})
		}
	}
}

// TestScrubKeepsWhatIsClean expects files of agents without changes to stay.
func TestScrubKeepsWhatIsClean(t *testing.T) {
	store, x := filled(t, 30)
	closeIndex(t, x)
	y := newIndex(t, store)
	if err := y.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(store.files(t)); n != 1 {
		t.Errorf("%d files after Scrub, want 1", n)
	}
}

// TestErasureDuringSaving erases an entry while the index that holds it is being written.
func TestErasureDuringSaving(t *testing.T) {
	store, x := filled(t, 50)
	secret := entry("secret", "s0", 99, "meet me in zanzibar")
	if _, err := store.Append(t.Context(), []core.Entry{secret}); err != nil {
		t.Fatal(err)
	}
	search(t, x, core.SearchQuery{Text: "zanzibar"})
	other := newIndex(t, store)
	var once sync.Once
	store.onFeed = func() { // the draft is there, and the answer is on its way
		once.Do(func() {
			_, _ = store.Delete(t.Context(), ada, []string{"secret"})
			if err := other.Deleted(t.Context(), ada, []string{"secret"}); err != nil {
				t.Error(err)
			}
		})
	}
	closeIndex(t, x)
	if store.holds(t, "zanzibar") {
		t.Error("the file holds the erased word")
	}
	if n := len(store.files(t)); n != 0 {
		t.Errorf("%d files, want none: the draft was overtaken", n)
	}
}

// TestUpdateWhileFollowing changes an entry while a page with its old text is on its way.
func TestUpdateWhileFollowing(t *testing.T) {
	store, x := filled(t, 5)
	if _, err := store.Append(t.Context(), []core.Entry{entry("n", "s0", 9, "zanzibar")}); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	store.onFeed = func() {
		once.Do(func() {
			_, _ = store.Delete(t.Context(), ada, []string{"n"})
			if err := x.Deleted(t.Context(), ada, []string{"n"}); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		if got := ids(search(t, x, core.SearchQuery{Text: "zanzibar"})); got != "" {
			t.Errorf("hits = %q, want none", got)
		}
	}
}
