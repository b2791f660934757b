package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/strategies/hybrid"
)

// finder finds the oldest entry of a scope; or fails, or hangs until it is told to stop.
type finder struct {
	store core.Store
	err   error
	hang  bool
	asked atomic.Int32
}

func (s *finder) Attach(store core.Store) error { s.store = store; return nil }

func (s *finder) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	s.asked.Add(1)
	if s.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	page, err := s.store.Scan(ctx, core.ScanQuery{Scope: q.Scope, Limit: 1})
	if err != nil {
		return nil, err
	}
	return []core.Hit{{Entry: page.Entries[0], Score: 1}}, nil
}

// recalling returns an engine with a hybrid retriever over words, which find the first message, and another searcher; and a session in which that message is
// not shown any more.
func recalling(t *testing.T, other *finder, failure engine.FailurePolicy) *fixture {
	t.Helper()
	r, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"words": &finder{}, "vectors": other})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
		c.Failure, c.Recall.Share = failure, 0.3
		p.Retriever = r
	})
	f.ingest(user("the kite is red"), assistant("noted "+strings.Repeat("word ", 300)))
	for range 20 {
		f.ingest(user("go on "+strings.Repeat("word ", 30)), assistant("done "+strings.Repeat("word ", 30)))
	}
	return f
}

func (f *fixture) turn(n int) (core.AssembleResult, error) {
	return f.engine.Assemble(f.t.Context(), core.AssembleRequest{Session: f.id, Budget: 600, Prompt: "which colour is the kite, question " + strings.Repeat("I", n)})
}

func recalled(res core.AssembleResult) bool {
	return slices.ContainsFunc(res.Choices, func(c window.Choice) bool { return c.Reason == window.ReasonRecalled && c.Source == "words" })
}

// TestRecallWithoutOnePart: what the words found is recalled although the other searcher fails or hangs, the result and Info say what is missing, and after a
// while nobody waits for it any more. A strict engine fails.
func TestRecallWithoutOnePart(t *testing.T) {
	for name, other := range map[string]func() *finder{
		"fails": func() *finder { return &finder{err: errors.New("vectors: status 401: no such key")} },
		"hangs": func() *finder { return &finder{hang: true} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := other()
				f := recalling(t, s, engine.FailDegrade)
				for n := range 6 {
					began := time.Now()
					res, err := f.turn(n)
					if err != nil {
						t.Fatal(err)
					}
					if !recalled(res) {
						t.Errorf("turn %d: recalled nothing, want what the words found", n)
					}
					if len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "vectors: ") {
						t.Errorf("turn %d: warnings %q, want the searcher that is missing", n, res.Warnings)
					}
					if took := time.Since(began); took > engine.DefaultConfig().Recall.Deadline || n > 1 && took > 0 {
						t.Errorf("turn %d: took %v", n, took)
					}
				}
				if n := s.asked.Load(); n > 2 {
					t.Errorf("the searcher was asked %d times, want 2 at most", n)
				}
				health := f.engine.Info().Health
				if len(health) != 1 || health[0].Part != "retriever" || health[0].Count != 6 || !strings.Contains(health[0].Text, "vectors: ") {
					t.Errorf("Health = %+v, want the retriever six times", health)
				}
				if _, err := recalling(t, other(), engine.FailStrict).turn(0); !errors.Is(err, core.ErrPartial) {
					t.Errorf("strict: error = %v, want core.ErrPartial", err)
				}
			})
		})
	}
}

// silent is a retriever that does not heed its context.
type silent struct {
	free  chan struct{}
	asked atomic.Int32
}

func (s *silent) Retrieve(context.Context, core.Query) ([]core.Candidate, error) {
	s.asked.Add(1)
	<-s.free
	return nil, nil
}

// TestSilentRetriever: it is waited for once.
func TestSilentRetriever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silent{free: make(chan struct{})}
		defer close(s.free)
		f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Recall.Share, p.Retriever = 0.3, s })
		f.ingest(user("the kite is red"), assistant("noted"))
		began := time.Now()
		for n := range 5 {
			res, err := f.turn(n)
			if err != nil || len(res.Warnings) != 1 {
				t.Errorf("turn %d: %v, warnings %q", n, err, res.Warnings)
			}
		}
		if s.asked.Load() != 1 || time.Since(began) != engine.DefaultConfig().Recall.Deadline {
			t.Errorf("asked %d times in %v, want once and no longer than the deadline", s.asked.Load(), time.Since(began))
		}
	})
}

// everything is a retriever that proposes all there is in its scope.
type everything struct{ store core.Store }

func (r *everything) Attach(store core.Store) error { r.store = store; return nil }

func (r *everything) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	var out []core.Candidate
	for e, err := range core.All(ctx, r.store, q.Scope, false) {
		if err != nil {
			return nil, err
		}
		out = append(out, core.Candidate{Entry: e, Score: 1, Source: "everything"})
	}
	return out, nil
}

// TestSystemMessageIsNotRecalled: the system message that sessions have in common is shown, so recall across sessions does not repeat it.
func TestSystemMessageIsNotRecalled(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
		c.Recall.Share, c.Recall.AcrossSessions, c.Recall.Gate, p.Retriever = 0.4, true, false, &everything{}
	})
	system := message.New(message.System, "You are the keeper of the kite.")
	for _, session := range []string{"other", "s1"} {
		f.id.Session = session
		f.ingest(system, user("the kite of "+session+" is red"), assistant("noted in "+session))
	}
	res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, Prompt: "which colour is the kite"})
	if err != nil {
		t.Fatal(err)
	}
	got := shown(res)
	if strings.Count(got, "keeper of the kite") != 1 || !strings.Contains(got, "the kite of other is red") {
		t.Errorf("the window is %q, want the system message once, and what the other session said", got)
	}
}
