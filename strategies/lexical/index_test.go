package lexical_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
	"github.com/contextengine/contextengine/strategies/lexical"
)

var noon = time.Date(2024, time.March, 4, 12, 0, 0, 0, time.UTC)

func entry(id, session string, seq int64, text string) core.Entry {
	return core.Entry{
		ID: id, Agent: "ada", Session: session, Seq: seq, Role: message.User, Type: core.TypeMessage,
		Time: noon.Add(time.Duration(seq) * time.Minute), Key: id, Message: message.New(message.User, text),
	}
}

func search(t *testing.T, x core.Searcher, q core.SearchQuery) []core.Hit {
	t.Helper()
	if q.Scope.Agent == "" {
		q.Scope.Agent = "ada"
	}
	if q.Limit == 0 {
		q.Limit = 10
	}
	hits, err := x.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func ids(hits []core.Hit) string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Entry.ID)
	}
	return strings.Join(out, " ")
}

var vocabulary = strings.Fields(`harbour lantern copper meadow violin glacier pepper saddle turbine walnut
	v1.2.3 core/store.go snake_case Ann's running runs ran 東京タワー 明日の会議 สวัสดี Überraschung and the of in`)

func randomText(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(90) {
		b.WriteString(vocabulary[rng.IntN(len(vocabulary))])
		b.WriteString([]string{" ", " ", " ", ". ", "\n"}[rng.IntN(5)])
	}
	return b.String()
}

// TestIncrementalLikeRebuilt changes a store at random and expects an index that followed to rank, and score, exactly like one
// that reads the store afresh.
func TestIncrementalLikeRebuilt(t *testing.T) {
	base := drawn.Seed(t)
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(base, seed))
		store := &listStore{}
		x := newIndex(t, store)
		if err := x.Load(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
		names := []string{"", "Mira", "Tomas Vale", "user"}
		for step := range 300 {
			scope := core.Scope{Agent: "ada"}
			switch op := rng.IntN(10); {
			case op < 6 || len(store.entries) == 0:
				e := entry(fmt.Sprintf("e%d", step), fmt.Sprintf("s%d", rng.IntN(3)), int64(max(0, step-rng.IntN(4))), randomText(rng))
				e.Message.Name = names[rng.IntN(len(names))]
				if rng.IntN(12) == 0 {
					e.Type = core.TypeHeartbeat
				}
				if _, err := store.Append(t.Context(), []core.Entry{e}); err != nil {
					t.Fatal(err)
				}
				for range 1 + rng.IntN(2) { // told twice is no harm
					if err := x.Appended(t.Context(), []core.Entry{e}); err != nil {
						t.Fatal(err)
					}
				}
			case op < 9:
				id := store.entries[rng.IntN(len(store.entries))].ID
				if _, err := store.Delete(t.Context(), scope, []string{id}); err != nil {
					t.Fatal(err)
				}
				if err := x.Deleted(t.Context(), scope, []string{id, "unknown"}); err != nil {
					t.Fatal(err)
				}
			default:
				e := store.entries[rng.IntN(len(store.entries))]
				e.Message = message.New(message.User, randomText(rng))
				if err := store.Update(t.Context(), scope, e.ID, core.Change{Message: &e.Message}); err != nil {
					t.Fatal(err)
				}
				if err := x.Updated(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			if step%10 != 9 {
				continue
			}
			fresh := newIndex(t, store)
			for range 4 {
				q := core.SearchQuery{Text: "Mira " + randomText(rng), Limit: 1 + rng.IntN(40)}
				if rng.IntN(3) == 0 {
					q.Scope.Session = "s1"
					q.Scope.Agent = "ada"
				}
				if diff := cmp.Diff(search(t, fresh, q), search(t, x, q)); diff != "" {
					t.Fatalf("seed %d, step %d, query %q: rebuilt index (-) and incremental one (+) differ:\n%s", seed, step, q.Text, diff)
				}
			}
		}
	}
}

func TestFilters(t *testing.T) {
	store := &listStore{}
	heartbeat := entry("beat", "one", 6, "lantern")
	heartbeat.Type = core.TypeHeartbeat
	thought := entry("thought", "one", 7, "")
	thought.Message.Parts = []message.Part{{Kind: message.Thinking, Text: "lantern"}, {Kind: message.Text, Text: "nothing"}}
	result := entry("result", "two", 1, "")
	result.Message = message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, Name: "grep", Text: "lantern here"}}}
	other := entry("other", "one", 8, "lantern")
	other.Agent = "bob"
	store.entries = []core.Entry{
		entry("a", "one", 0, "lantern lantern lantern"), entry("b", "one", 1, "lantern"), entry("c", "one", 5, "lantern"),
		heartbeat, thought, other, entry("d", "two", 0, "copper"), result,
	}
	x := newIndex(t, store)
	rows := []struct {
		name string
		q    core.SearchQuery
		want string
	}{
		{"session", core.SearchQuery{Scope: core.Scope{Agent: "ada", Session: "two"}, Text: "copper"}, "d result"},
		{"unknown session", core.SearchQuery{Scope: core.Scope{Agent: "ada", Session: "six"}, Text: "lantern"}, ""},
		{"unknown agent", core.SearchQuery{Scope: core.Scope{Agent: "eve"}, Text: "lantern"}, ""},
		{"excluded before the limit", core.SearchQuery{Text: "lantern", Limit: 1, Exclude: func(id string) bool { return id != "c" }}, "c"},
		{"from is in, to is out", core.SearchQuery{Text: "lantern", From: noon.Add(time.Minute), To: noon.Add(5 * time.Minute),
			Scope: core.Scope{Agent: "ada", Session: "one"}}, "b"},
		{"tool by name", core.SearchQuery{Text: "what did grep say", Limit: 1}, "result"},
		{"no words", core.SearchQuery{Text: " ?! "}, ""},
		{"stopwords only", core.SearchQuery{Text: "what is it"}, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := ids(search(t, x, r.q)); got != r.want {
				t.Errorf("hits = %q, want %q", got, r.want)
			}
		})
	}
	got := ids(search(t, x, core.SearchQuery{Text: "lantern"}))
	for _, id := range []string{"beat", "other"} {
		if strings.Contains(got, id) {
			t.Errorf("hits = %q, want none of %q", got, id)
		}
	}
}

func TestTies(t *testing.T) {
	store := &listStore{}
	// Sessions of their own, so that no neighbour matters; the last three were made at the same moment.
	for i, id := range []string{"old", "b", "a", "c"} {
		e := entry(id, "s-"+id, int64(min(i, 1)), "copper kettle")
		if id == "c" {
			e.Seq = 9
			e.Time = noon.Add(time.Minute)
		}
		store.entries = append(store.entries, e)
	}
	if got, want := ids(search(t, newIndex(t, store), core.SearchQuery{Text: "kettle"})), "c a b old"; got != want {
		t.Errorf("hits = %q, want %q: the more recent first, then by id", got, want)
	}
}

func TestNeighboursAndNames(t *testing.T) {
	store := &listStore{}
	say := func(id, name, text string) {
		e := entry(id, "talk", int64(len(store.entries)), text)
		e.Message.Name = name
		store.entries = append(store.entries, e)
	}
	for i := range 10 {
		say(fmt.Sprintf("early%d", i), "Mira", "Filling talk about gardens, number words and weather.")
	}
	say("question", "Mira", "Which instrument did your grandmother leave you?")
	say("answer", "Tomas", "A violin.")
	for i := range 10 {
		say(fmt.Sprintf("late%d", i), "Mira", "More filling talk about clouds.")
	}
	x := newIndex(t, store)
	hits := search(t, x, core.SearchQuery{Text: "Tomas grandmother instrument", Limit: 2})
	if got := ids(hits); !strings.Contains(got, "answer") {
		t.Errorf("hits = %q, want the answer although it has none of the question's words", got)
	}
	if got := ids(search(t, x, core.SearchQuery{Text: "when in 2024, Tomas?", Limit: 1})); got != "answer" {
		t.Errorf("hits = %q, want what Tomas said", got)
	}
}

func TestPassageOfLongMessage(t *testing.T) {
	filler := strings.Repeat("Nothing of interest happens in this long sentence about weather. ", 30)
	needle := "The turbine needs a new bearing."
	store := &listStore{entries: []core.Entry{entry("long", "s", 0, filler+"\n"+needle+"\n"+filler)}}
	hits := search(t, newIndex(t, store), core.SearchQuery{Text: "which bearing for the turbine"})
	if len(hits) != 1 || !strings.Contains(hits[0].Passage, needle) {
		t.Fatalf("hits = %v, want a passage with %q", hits, needle)
	}
	if n := len(strings.Fields(hits[0].Passage)); n > lexical.DefaultConfig().PassageWords {
		t.Errorf("passage has %d words, want at most 40", n)
	}
	short := &listStore{entries: []core.Entry{entry("short", "s", 0, needle)}}
	if hits := search(t, newIndex(t, short), core.SearchQuery{Text: "turbine"}); len(hits) != 1 || hits[0].Passage != "" {
		t.Errorf("hits = %v, want one without a passage: all of it matched", hits)
	}
}

// TestChangesWhileReading appends, changes and deletes entries while the store is being read.
func TestChangesWhileReading(t *testing.T) {
	store := &listStore{}
	for i := range 450 {
		store.entries = append(store.entries, entry(fmt.Sprintf("e%d", i), "s", int64(i), "copper kettle"))
	}
	x := newIndex(t, store)
	scope := core.Scope{Agent: "ada"}
	store.onScan = func(page int) error {
		if page != 2 {
			return nil
		}
		late := entry("late", "s", 1000, "walnut")
		_, _ = store.Append(t.Context(), []core.Entry{late})
		changed := entry("e3", "s", 3, "walnut")
		_ = store.Update(t.Context(), scope, "e3", core.Change{Message: &changed.Message})
		_, _ = store.Delete(t.Context(), scope, []string{"e449"})
		return errors.Join(
			x.Appended(t.Context(), []core.Entry{late}),
			x.Updated(t.Context(), changed),
			x.Deleted(t.Context(), scope, []string{"e449", "e449"}),
		)
	}
	query := core.SearchQuery{Text: "walnut kettle", Limit: 1000}
	got := search(t, x, query)
	store.onScan = nil
	if diff := cmp.Diff(search(t, newIndex(t, store), query), got); diff != "" {
		t.Errorf("rebuilt index (-) and the one that read during changes (+) differ:\n%s", diff)
	}
}

func TestInterruptedReadingGoesOn(t *testing.T) {
	store := &listStore{}
	for i := range 900 {
		store.entries = append(store.entries, entry(fmt.Sprintf("e%d", i), "s", int64(i), "copper kettle"))
	}
	x := newIndex(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	store.onScan = func(page int) error {
		if page == 3 {
			cancel()
		}
		return nil
	}
	if _, err := x.Search(ctx, core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: "kettle", Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Fatalf("Search() error = %v, want context.Canceled", err)
	}
	if got := len(search(t, x, core.SearchQuery{Text: "kettle", Limit: 1000})); got != 900 {
		t.Errorf("%d hits, want 900", got)
	}
	if store.scans > 3+3 {
		t.Errorf("%d pages read, want at most 6: what was read before the interruption is kept", store.scans)
	}

	broken := errors.New("disk on fire")
	store.onScan = func(int) error { return broken }
	y := newIndex(t, store)
	if _, err := y.Search(t.Context(), core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: "kettle", Limit: 1}); !errors.Is(err, broken) {
		t.Errorf("Search() error = %v, want the store's", err)
	}
	store.onScan = nil
	if got := len(search(t, y, core.SearchQuery{Text: "kettle", Limit: 1000})); got != 900 {
		t.Errorf("%d hits after the store recovered, want 900", got)
	}
}

func TestEntriesThatLeftTheStore(t *testing.T) {
	store := &listStore{}
	for i := range 6 {
		store.entries = append(store.entries, entry(fmt.Sprintf("e%d", i), fmt.Sprintf("s%d", i), 0, "copper kettle"))
	}
	x := newIndex(t, store)
	search(t, x, core.SearchQuery{Text: "kettle"})
	if _, err := store.Delete(t.Context(), core.Scope{Agent: "ada"}, []string{"e0", "e1"}); err != nil {
		t.Fatal(err)
	}
	if got := ids(search(t, x, core.SearchQuery{Text: "kettle", Limit: 3})); got != "e2 e3 e4" {
		t.Errorf("hits = %q, want %q: others in the place of what is gone", got, "e2 e3 e4")
	}
}

func TestConcurrentUse(t *testing.T) {
	store := &listStore{}
	for i := range 300 {
		store.entries = append(store.entries, entry(fmt.Sprintf("old%d", i), "s", int64(i), "copper kettle"))
	}
	x := newIndex(t, store)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				e := entry(fmt.Sprintf("w%d-%d", w, i), fmt.Sprintf("s%d", w), int64(i), "walnut kettle")
				if _, err := store.Append(t.Context(), []core.Entry{e}); err != nil {
					t.Error(err)
				}
				if err := x.Appended(t.Context(), []core.Entry{e}); err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					if _, err := x.Search(t.Context(), core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: "walnut", Limit: 5}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if got := len(search(t, x, core.SearchQuery{Text: "walnut kettle", Limit: 1000})); got != 700 {
		t.Errorf("%d hits, want 700: nothing lost, nothing twice", got)
	}
}

func TestErrors(t *testing.T) {
	x, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Search(t.Context(), core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: "x", Limit: 1}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Search() before Attach: error = %v, want core.ErrInvalid", err)
	}
	if err := x.Attach(nil); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Attach(nil) error = %v, want core.ErrInvalid", err)
	}
	if _, err := newIndex(t, &listStore{}).Search(t.Context(), core.SearchQuery{Text: "x", Limit: 1}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Search() without an agent: error = %v, want core.ErrInvalid", err)
	}
	cfg := lexical.DefaultConfig()
	cfg.B = 2
	if _, err := lexical.New(cfg); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "b: must be 0 to 1") {
		t.Errorf("New() error = %v, want core.ErrInvalid that names b", err)
	}
}
