package lexical_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
	"github.com/contextengine/contextengine/strategies/lexical"
)

var ada = core.Scope{Agent: "ada"}

// filled returns a store of n entries and an index that knows them.
func filled(t *testing.T, n int) (*feedStore, *lexical.Index) {
	t.Helper()
	store := newFeedStore(t)
	rng := drawn.Rand(t)
	for i := range n {
		e := entry(fmt.Sprintf("e%d", i), fmt.Sprintf("s%d", i%3), int64(i), randomText(rng)+" kettle")
		if _, err := store.Append(t.Context(), []core.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	x := newIndex(t, store)
	if err := x.Load(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	return store, x
}

func TestFileSparesTheStore(t *testing.T) {
	store, x := filled(t, 500)
	want := search(t, x, core.SearchQuery{Text: "copper kettle lantern", Limit: 500})
	closeIndex(t, x)
	closeIndex(t, x)
	if _, err := x.Search(t.Context(), core.SearchQuery{Scope: ada, Text: "kettle", Limit: 1}); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Search() after Close: error = %v, want core.ErrClosed", err)
	}
	store.read, store.asked, store.scans = 0, 0, 0
	y := newIndex(t, store)
	if diff := cmp.Diff(want, search(t, y, core.SearchQuery{Text: "copper kettle lantern", Limit: 500})); diff != "" {
		t.Errorf("the index before (-) and after a restart (+) differ:\n%s", diff)
	}
	if store.read != 0 || store.asked != 1 || store.scans != 0 {
		t.Errorf("%d entries in %d pages of changes and %d scans read, want nothing but a look at the changes", store.read, store.asked, store.scans)
	}
	e := entry("late", "s0", 1000, "zanzibar")
	if _, err := store.Append(t.Context(), []core.Entry{e}); err != nil {
		t.Fatal(err)
	}
	if got := ids(search(t, y, core.SearchQuery{Text: "zanzibar", Limit: 1})); got != "late" || store.read != 1 {
		t.Errorf("hits = %q after reading %d entries, want %q after 1", got, store.read, "late")
	}
}

// TestEveryWayTheSameOrder changes a store at random, as two processes would, and expects the same hits and scores of an index that is told,
// one that follows the feed, ones that come back from their files, and one that is built at once.
func TestEveryWayTheSameOrder(t *testing.T) {
	base := drawn.Seed(t)
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(base, seed))
		store := newFeedStore(t)
		told, follows, returns := newIndex(t, store), newIndex(t, store), newIndex(t, store)
		names := []string{"", "Mira", "Tomas Vale", "user"}
		for step := range 240 {
			tell := rng.IntN(4) > 0 // else another process did it
			var err error
			switch op := rng.IntN(12); {
			case op < 7 || len(store.entries) == 0:
				e := entry(fmt.Sprintf("e%d", step), fmt.Sprintf("s%d", rng.IntN(3)), int64(max(0, step-rng.IntN(5))), randomText(rng))
				e.Message.Name = names[rng.IntN(len(names))]
				if _, err := store.Append(t.Context(), []core.Entry{e}); err != nil {
					t.Fatal(err)
				}
				if tell {
					err = told.Appended(t.Context(), []core.Entry{e})
				}
			case op < 10:
				id := store.entries[rng.IntN(len(store.entries))].ID
				if _, err := store.Delete(t.Context(), ada, []string{id}); err != nil {
					t.Fatal(err)
				}
				if tell {
					err = told.Deleted(t.Context(), ada, []string{id})
				}
			default:
				i := rng.IntN(len(store.entries))
				c := core.Change{Message: new(message.New(message.User, randomText(rng)))}
				if op == 11 {
					c.Message, c.Type = new(message.New(message.User, "")), core.TypeErased
				}
				if err := store.Update(t.Context(), ada, store.entries[i].ID, c); err != nil {
					t.Fatal(err)
				}
				if tell {
					err = told.Updated(t.Context(), store.entries[i])
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if rng.IntN(20) == 0 {
				closeIndex(t, returns)
				returns = newIndex(t, store)
			}
			if step%8 != 7 {
				continue
			}
			q := core.SearchQuery{Text: "Mira " + randomText(rng), Limit: 1 + rng.IntN(40)}
			want := search(t, newIndex(t, &store.listStore), q)
			for name, x := range map[string]*lexical.Index{"told": told, "following": follows, "returning": returns} {
				if diff := cmp.Diff(want, search(t, x, q)); diff != "" {
					t.Fatalf("seed %d, step %d, query %q: index built at once (-) and the %s one (+) differ:\n%s", seed, step, q.Text, name, diff)
				}
			}
		}
	}
}

// TestDamagedFile cuts a file off and flips bits of it, everywhere: the index is built anew, and says so.
func TestDamagedFile(t *testing.T) {
	store, x := filled(t, 40)
	q := core.SearchQuery{Text: "copper kettle lantern", Limit: 50}
	want := search(t, x, q)
	closeIndex(t, x)
	files := store.files(t)
	if len(files) != 1 {
		t.Fatalf("files = %q, want one", files)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	rng := drawn.Rand(t)
	for i := range 90 {
		bad := bytes.Clone(whole)
		switch at := rng.IntN(len(whole)); i % 3 {
		case 0:
			bad = bad[:at]
		case 1:
			bad[at] ^= 1 << rng.IntN(8)
		default:
			bad = append(bad, bad[at])
		}
		if err := os.WriteFile(files[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		y, err := lexical.New(lexical.DefaultConfig(), lexical.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		if err := y.Attach(store); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, search(t, y, q)); diff != "" {
			t.Fatalf("case %d: hits of the whole file (-) and of the damaged one (+) differ:\n%s", i, diff)
		}
		if !strings.Contains(log.String(), "built anew") {
			t.Fatalf("case %d: log = %q, want a line that says so", i, log.String())
		}
	}
}

// TestFileOfAnotherKind expects an index to do without a file that was written under another configuration, or whose mark the store does not
// know any more.
func TestFileOfAnotherKind(t *testing.T) {
	store, x := filled(t, 60)
	closeIndex(t, x)
	q := core.SearchQuery{Text: "copper kettle", Limit: 60}
	cfg := lexical.DefaultConfig()
	cfg.PassageWords = 20
	build := func(s core.Store) *lexical.Index {
		y, err := lexical.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := y.Attach(s); err != nil {
			t.Fatal(err)
		}
		return y
	}
	if diff := cmp.Diff(search(t, build(&store.listStore), q), search(t, build(store), q)); diff != "" {
		t.Errorf("index built at once (-) and one beside a file of another configuration (+) differ:\n%s", diff)
	}
	store.epoch = "b"
	if _, err := store.Delete(t.Context(), ada, []string{"e3"}); err != nil {
		t.Fatal(err)
	}
	delete(store.changed, "e3") // the restored store never had it
	want := search(t, newIndex(t, &store.listStore), q)
	if diff := cmp.Diff(want, search(t, newIndex(t, store), q)); diff != "" {
		t.Errorf("index built at once (-) and one with a mark of another store (+) differ:\n%s", diff)
	}
}

// TestSavedInTheBackground expects a large history to be in a file before Close.
func TestSavedInTheBackground(t *testing.T) {
	store := newFeedStore(t)
	for i := range 1200 {
		store.entries = append(store.entries, entry(fmt.Sprintf("e%d", i), "s", int64(i), "copper kettle"))
		store.note(fmt.Sprintf("e%d", i))
	}
	x := newIndex(t, store)
	search(t, x, core.SearchQuery{Text: "kettle"})
	for len(store.files(t)) == 0 || strings.HasSuffix(store.files(t)[0], ".tmp") {
		if t.Context().Err() != nil {
			t.Fatal("no file")
		}
	}
	closeIndex(t, x)
}

func TestMemoryIsBounded(t *testing.T) {
	store := newFeedStore(t)
	rng := drawn.Rand(t)
	for a := range 8 {
		for i := range 700 { // more than an eighth of MaxBytes, also as read from a file
			e := entry(fmt.Sprintf("a%d-e%d", a, i), "s", int64(i), randomText(rng)+fmt.Sprintf(" unique%dx%d", a, i))
			e.Agent = fmt.Sprintf("agent%d", a)
			store.entries = append(store.entries, e)
			store.note(e.ID)
		}
	}
	cfg := lexical.DefaultConfig()
	cfg.MaxBytes = 1 << 20
	x, err := lexical.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Attach(store); err != nil {
		t.Fatal(err)
	}
	ask := func(a int) string {
		return ids(search(t, x, core.SearchQuery{Scope: core.Scope{Agent: fmt.Sprintf("agent%d", a)}, Text: fmt.Sprintf("unique%dx7", a), Limit: 3}))
	}
	for range 2 {
		for a := range 8 {
			if got, want := ask(a), fmt.Sprintf("a%d-e7", a); !slices.Contains(strings.Fields(got), want) { // a short neighbour may come first
				t.Fatalf("hits = %q, want %q among them", got, want)
			}
		}
	}
	// What is not saved yet stays until it is; then the next search makes room.
	n := lexical.Loaded(x)
	for try := 0; n > 6 && try < 500; try++ {
		time.Sleep(10 * time.Millisecond)
		ask(try % 8)
		n = lexical.Loaded(x)
	}
	if n < 1 || n > 6 {
		t.Errorf("%d of 8 agents in memory, want a few", n)
	}
	closeIndex(t, x)
}

func TestDecoratorWithoutFeed(t *testing.T) {
	store := &listStore{entries: []core.Entry{entry("a", "s", 0, "copper kettle")}}
	x := newIndex(t, deafStore{store})
	if got := ids(search(t, x, core.SearchQuery{Text: "kettle"})); got != "a" {
		t.Errorf("hits = %q, want %q", got, "a")
	}
	if err := x.Scrub(t.Context()); err != nil {
		t.Error(err)
	}
	closeIndex(t, x)
}

// TestFollowingIsInterrupted ends the context in the middle of a long history; what was read is kept.
func TestFollowingIsInterrupted(t *testing.T) {
	store := newFeedStore(t)
	for i := range 900 {
		store.entries = append(store.entries, entry(fmt.Sprintf("e%d", i), "s", int64(i), "copper kettle"))
		store.note(fmt.Sprintf("e%d", i))
	}
	x := newIndex(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	pages := 0
	store.onFeed = func() {
		if pages++; pages == 3 {
			cancel()
		}
	}
	if _, err := x.Search(ctx, core.SearchQuery{Scope: ada, Text: "kettle", Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Fatalf("Search() error = %v, want context.Canceled", err)
	}
	if got := len(search(t, x, core.SearchQuery{Text: "kettle", Limit: 1000})); got != 900 {
		t.Errorf("%d hits, want 900", got)
	}
	if store.read != 900 {
		t.Errorf("%d entries read, want each once", store.read)
	}
}
