package hybrid_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/hybrid"
)

// scripted answers with what it was given, in any scope that holds it.
type scripted struct {
	mu     sync.Mutex
	hits   []core.Hit
	err    error
	delay  time.Duration
	asked  int
	heard  []string
	refuse error // what the observer's methods return
}

func (s *scripted) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
			return nil, fmt.Errorf("scripted: %w", ctx.Err())
		}
	}
	if s.err != nil && !errors.Is(s.err, core.ErrPartial) {
		return nil, s.err
	}
	return s.hits[:min(len(s.hits), q.Limit)], s.err
}

func (s *scripted) Attach(core.Store) error { s.heard = append(s.heard, "attach"); return s.refuse }

func (s *scripted) Appended(context.Context, []core.Entry) error {
	s.heard = append(s.heard, "appended")
	return s.refuse
}

func (s *scripted) Updated(context.Context, core.Entry) error {
	s.heard = append(s.heard, "updated")
	return s.refuse
}

func (s *scripted) Deleted(context.Context, core.Scope, []string) error {
	s.heard = append(s.heard, "deleted")
	return s.refuse
}

// deaf is a searcher that is nothing else.
type deaf struct{ core.Searcher }

func hits(ids ...string) []core.Hit {
	var out []core.Hit
	for i, id := range ids {
		out = append(out, core.Hit{Score: float64(100 - i), Entry: core.Entry{
			ID: id, Agent: "ada", Session: "s", Type: core.TypeMessage, Role: message.User, Message: message.New(message.User, id),
		}})
	}
	return out
}

func retrieve(t *testing.T, r *hybrid.Retriever, change func(*core.Query)) ([]core.Candidate, error) {
	t.Helper()
	q := core.Query{Scope: core.Scope{Agent: "ada"}, Prompt: "where is the red kite now", Limit: 10, Tokens: 100}
	if change != nil {
		change(&q)
	}
	return r.Retrieve(t.Context(), q)
}

func newHybrid(t *testing.T, weights map[string]float64, searchers map[string]core.Searcher, opts ...hybrid.Option) *hybrid.Retriever {
	t.Helper()
	cfg := hybrid.DefaultConfig()
	cfg.Weights = weights
	r, err := hybrid.New(cfg, searchers, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func names(cs []core.Candidate) string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Entry.ID+"("+c.Source+")")
	}
	return strings.Join(out, " ")
}

func TestOneSearcherKeepsItsOrder(t *testing.T) {
	var ids []string
	for i := range 500 {
		ids = append(ids, fmt.Sprintf("e%d", (i*37)%500))
	}
	in := hits(ids...)
	r := newHybrid(t, nil, map[string]core.Searcher{"words": &scripted{hits: in}})
	got, err := retrieve(t, r, func(q *core.Query) { q.Limit = 1000 })
	if err != nil {
		t.Fatal(err)
	}
	var want []core.Candidate
	for _, h := range in[:hybrid.DefaultConfig().Limit] {
		want = append(want, core.Candidate{Entry: h.Entry, Score: h.Score, Source: "words"})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("candidates differ from the searcher's hits (-want +got):\n%s", diff)
	}
}

func TestFusion(t *testing.T) {
	words, meaning := &scripted{hits: hits("a", "b", "c")}, &scripted{hits: hits("b", "d", "a")}
	words.hits[1].Passage = "part of b"
	both := map[string]core.Searcher{"words": words, "meaning": meaning}
	rows := []struct {
		name    string
		weights map[string]float64
		change  func(*core.Query)
		want    string
	}{
		{"equal weights", nil, nil, "b(meaning+words) a(meaning+words) d(meaning) c(words)"},
		{"words count more", map[string]float64{"words": 3}, nil, "a(meaning+words) b(meaning+words) c(words) d(meaning)"},
		{"a weight of 0", map[string]float64{"meaning": 0}, nil, "a(words) b(words) c(words)"},
		{"in the window", nil, func(q *core.Query) { q.InWindow = func(id string) bool { return id == "b" } },
			"a(meaning+words) d(meaning) c(words)"},
		{"limit", nil, func(q *core.Query) { q.Limit = 1 }, "b(meaning+words)"},
		{"outside of the scope", nil, func(q *core.Query) { q.Scope.Session = "other" }, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := retrieve(t, newHybrid(t, row.weights, both), row.change)
			if err != nil {
				t.Fatal(err)
			}
			if names(got) != row.want {
				t.Errorf("candidates = %q, want %q", names(got), row.want)
			}
		})
	}
	got, _ := retrieve(t, newHybrid(t, nil, both), nil)
	if got[0].Text != "part of b" {
		t.Errorf("quote = %q, want the passage that words found", got[0].Text)
	}
}

func TestFailures(t *testing.T) {
	down := &scripted{err: core.ErrUnavailable}
	var logged bytes.Buffer
	log := hybrid.WithLogger(slog.New(slog.NewTextHandler(&logged, nil)))
	r := newHybrid(t, nil, map[string]core.Searcher{"meaning": down, "words": &scripted{hits: hits("a")}}, log)
	got, err := retrieve(t, r, nil)
	if names(got) != "a(words)" {
		t.Errorf("candidates = %q, want those of the searcher that works", names(got))
	}
	if !errors.Is(err, core.ErrPartial) || !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "meaning: ") {
		t.Errorf("error = %v, want core.ErrPartial with the name and the error of the searcher that failed", err)
	}
	if s := logged.String(); !strings.Contains(s, "searcher=meaning") || strings.Contains(s, "kite") {
		t.Errorf("log = %q, want the failed searcher's name and nothing of the query", s)
	}
	r = newHybrid(t, nil, map[string]core.Searcher{"meaning": down, "words": &scripted{err: core.ErrClosed}})
	if _, err := retrieve(t, r, nil); !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, core.ErrClosed) {
		t.Errorf("error = %v, want both", err)
	}
	if got, err := retrieve(t, r, func(q *core.Query) { q.Prompt = "" }); err != nil || len(got) != 0 {
		t.Errorf("candidates = %v, %v, want none where nothing is asked", got, err)
	}
}

// TestLateSearcher gives the searchers a deadline that one of them misses.
func TestLateSearcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &scripted{hits: hits("b"), delay: time.Hour}
		r := newHybrid(t, nil, map[string]core.Searcher{"fast": &scripted{hits: hits("a"), delay: time.Second}, "slow": slow})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		got, err := r.Retrieve(ctx, core.Query{Scope: core.Scope{Agent: "ada"}, Prompt: "where is the red kite now", Limit: 5, Tokens: 9})
		if !errors.Is(err, core.ErrPartial) || !strings.Contains(err.Error(), "slow: ") || names(got) != "a(fast)" {
			t.Errorf("candidates = %q, %v, want those in time and the name of the one that was not", names(got), err)
		}
		r = newHybrid(t, nil, map[string]core.Searcher{"slow": slow})
		if _, err := r.Retrieve(ctx, core.Query{Scope: core.Scope{Agent: "ada"}, Prompt: "where is the red kite now", Limit: 5, Tokens: 9}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want context.DeadlineExceeded", err)
		}
	})
}

// stuck never returns before it is let go, whatever its context says.
type stuck struct{ free chan struct{} }

func (s stuck) Search(context.Context, core.SearchQuery) ([]core.Hit, error) {
	<-s.free
	return nil, nil
}

// TestStuckSearcher: one that does not heed its context is left behind, and not asked again for a while.
func TestStuckSearcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{make(chan struct{})}
		defer close(s.free)
		r := newHybrid(t, nil, map[string]core.Searcher{"words": &scripted{hits: hits("a")}, "stuck": s})
		q := core.Query{Scope: core.Scope{Agent: "ada"}, Prompt: "where is the red kite now", Limit: 5, Tokens: 9}
		for turn, want := range []time.Duration{time.Second, 0, 0} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			got, err := r.Retrieve(ctx, q)
			if !errors.Is(err, core.ErrPartial) || names(got) != "a(words)" || time.Since(began) != want {
				t.Errorf("turn %d: candidates = %q, %v after %v, want what words found, and the other named, after %v", turn, names(got), err, time.Since(began), want)
			}
			cancel()
		}
	})
}

// TestHastySearcher: what a searcher has without the slowest of its own is what it has, and no failure.
func TestHastySearcher(t *testing.T) {
	hasty := &scripted{hits: hits("b"), err: fmt.Errorf("hasty: %w", core.ErrPartial)}
	r := newHybrid(t, nil, map[string]core.Searcher{"hasty": hasty, "words": &scripted{hits: hits("a")}})
	for range 4 {
		if got, err := retrieve(t, r, nil); err != nil || names(got) != "a(words) b(hasty)" && names(got) != "b(hasty) a(words)" {
			t.Errorf("candidates = %q, error %v, want what both found", names(got), err)
		}
	}
	if hasty.asked != 4 {
		t.Errorf("asked %d times, want 4", hasty.asked)
	}
}

// TestFailingSearcherIsLeftAlone: two failures in a row, and it is asked again after half a minute.
func TestFailingSearcherIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &scripted{err: core.ErrUnavailable}
		r := newHybrid(t, nil, map[string]core.Searcher{"meaning": down, "words": &scripted{hits: hits("a")}})
		for range 5 {
			if _, err := retrieve(t, r, nil); !errors.Is(err, core.ErrPartial) {
				t.Errorf("error = %v, want core.ErrPartial as long as a searcher is missing", err)
			}
		}
		if down.asked != 2 {
			t.Errorf("asked %d times, want 2", down.asked)
		}
		down.err = nil
		time.Sleep(30 * time.Second)
		if _, err := retrieve(t, r, nil); err != nil || down.asked != 3 {
			t.Errorf("error = %v after %d questions, want none once it answers again", err, down.asked)
		}
	})
}

func TestNewsReachAllSearchers(t *testing.T) {
	a, b := &scripted{refuse: core.ErrClosed}, &scripted{}
	r := newHybrid(t, nil, map[string]core.Searcher{"a": a, "b": b, "c": deaf{&scripted{}}})
	errs := []error{
		r.Attach(nil), r.Appended(t.Context(), nil), r.Updated(t.Context(), core.Entry{}), r.Deleted(t.Context(), core.Scope{}, nil),
	}
	for i, err := range errs {
		if !errors.Is(err, core.ErrClosed) {
			t.Errorf("call %d: error = %v, want that of a", i, err)
		}
	}
	want := []string{"attach", "appended", "updated", "deleted"}
	if diff := cmp.Diff([][]string{want, want}, [][]string{a.heard, b.heard}); diff != "" {
		t.Errorf("what a and b heard (-want +got):\n%s", diff)
	}
}

func TestInvalid(t *testing.T) {
	one := map[string]core.Searcher{"words": &scripted{}}
	rows := []struct {
		name      string
		change    func(*hybrid.Config)
		searchers map[string]core.Searcher
		want      string
	}{
		{"no searcher", func(*hybrid.Config) {}, nil, "at least one searcher"},
		{"nil searcher", func(*hybrid.Config) {}, map[string]core.Searcher{"words": nil}, `"words" is nil`},
		{"unknown weight", func(c *hybrid.Config) { c.Weights = map[string]float64{"wrds": 1} }, one, `did you mean "words"? (known: words)`},
		{"weight that is no number", func(c *hybrid.Config) { c.Weights = map[string]float64{"words": math.NaN()} }, one, "weights.words"},
		{"all weights 0", func(c *hybrid.Config) { c.Weights = map[string]float64{"words": 0} }, one, "above 0"},
		{"limit", func(c *hybrid.Config) { c.Limit = 0 }, one, "limit: must be 1 to 1000"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			cfg := hybrid.DefaultConfig()
			row.change(&cfg)
			if _, err := hybrid.New(cfg, row.searchers); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("New() error = %v, want core.ErrInvalid with %q", err, row.want)
			}
		})
	}
}

// A searcher that is alone reads from the store what is wanted, and more only when some of it cannot be used.
func TestAsksForMoreOnlyWhenNeeded(t *testing.T) {
	in := hits("a", "b", "c", "d", "e")
	for _, c := range []struct {
		name   string
		shown  string
		asked  int
		wanted string
	}{
		{"all can be used", "", 1, "a b c d"},
		{"one is in the window", "b", 2, "a c d e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scripted{hits: in}
			r, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"words": s})
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Retrieve(t.Context(), core.Query{
				Scope: core.Scope{Agent: "ada"}, Prompt: "where is the red kite now", Limit: 4, Tokens: 100,
				InWindow: func(id string) bool { return id == c.shown },
			})
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, one := range got {
				ids = append(ids, one.Entry.ID)
			}
			if found := strings.Join(ids, " "); found != c.wanted || s.asked != c.asked {
				t.Errorf("found %q in %d searches, want %q in %d", found, s.asked, c.wanted, c.asked)
			}
		})
	}
}
