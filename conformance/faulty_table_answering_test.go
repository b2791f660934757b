package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// tableAnswering are retrievers that are wrong where they are asked on another day, turn after turn, or while something fails, and some that quote wrongly.
func tableAnswering() []broken {
	quotes := func(name string, quote func(text, prompt string) string) broken {
		return caughtRetriever("retrieve.text", name, func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				got, err := s(ctx, q)
				for i := range got {
					got[i].Text = quote(got[i].Entry.Text(), q.Prompt)
				}
				return got, err
			}
		})
	}
	fails := func(id, name string, f func(q core.Query, last []core.Candidate, err error) error) broken {
		return caughtRetriever(id, name, func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			var mu sync.Mutex
			var last []core.Candidate
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				got, err := s(ctx, q)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					return nil, f(q, last, err)
				}
				last = slices.Clone(got)
				return got, nil
			}
		})
	}
	plain := func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) { return s(ctx, q) }
	}
	return []broken{
		fails("retrieve.surfaces", "an error says how the prompt begins", func(q core.Query, _ []core.Candidate, err error) error {
			return fmt.Errorf("words: retrieve for %.10q: %w", q.Prompt, err)
		}),
		fails("retrieve.surfaces", "an error says what was found last", func(_ core.Query, last []core.Candidate, err error) error {
			if len(last) > 0 {
				err = fmt.Errorf("words: retrieve after %.20q: %w", last[0].Entry.Text(), err)
			}
			return err
		}),
		fails("cancel.retrieve", "an error says what was asked, where time is over", func(q core.Query, _ []core.Candidate, err error) error {
			if errors.Is(err, context.Canceled) {
				err = fmt.Errorf("words: retrieve for %q: %w", q.Prompt, err)
			}
			return err
		}),
		caughtRetriever("retrieve.surfaces", "nothing beside core.ErrPartial", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				var failed error
				all, err := eachScope(ctx, q, func(ctx context.Context, q core.Query) ([]core.Candidate, error) {
					got, err := s(ctx, q)
					failed = cmp.Or(failed, err)
					return got, err
				}, nil, func(int) bool { return true })
				if failed != nil {
					return nil, fmt.Errorf("words: %w: %w", core.ErrPartial, failed)
				}
				return bestOf(all, q.Limit), err
			}
		}),
		caughtRetriever("retrieve.surfaces", "after three failures in a row nothing is there", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			var inRow atomic.Int64
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				got, err := s(ctx, q)
				switch {
				case err == nil:
					inRow.Store(0)
				case inRow.Add(1) > 3:
					return nil, nil
				}
				return got, err
			}
		}),
		caughtRetriever("failure.retrieve", "after three failures in a row nobody is missed", plain, overSearchers(func(a *asker) core.Retriever { return &tired{asker: a} })),
		caughtRetriever("retrieve.late-searcher", "whatever had an error is late", plain, overSearchers(func(a *asker) core.Retriever { return &hopeful{asker: a} })),
		caughtRetriever("retrieve.clock", "ages by the time of the first question", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			var once sync.Once
			var now time.Time
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				once.Do(func() { now = q.Now })
				got, err := s(ctx, q)
				for i := range got {
					got[i].Score *= 1 + 1/(1+max(now.Sub(got[i].Entry.Time), 0).Hours())
				}
				slices.SortStableFunc(got, func(a, b core.Candidate) int { return cmp.Compare(b.Score, a.Score) })
				return got, err
			}
		}),
		quotes("the best line of a long text first", func(text, prompt string) string {
			lines := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(".!\n", r) })
			if len(text) < 400 || len(lines) < 2 {
				return ""
			}
			hits := func(line string) (n int) {
				for w := range strings.FieldsSeq(prompt) {
					n += strings.Count(line, w)
				}
				return n
			}
			slices.SortStableFunc(lines, func(a, b string) int { return hits(b) - hits(a) })
			return lines[0] + " " + lines[1]
		}),
		quotes("the first 300 bytes of what has no blank", func(text, _ string) string {
			if len(text) <= 300 {
				return ""
			}
			if i := strings.LastIndexAny(text[:300], " \n"); i > 0 {
				return text[:i]
			}
			return text[:300]
		}),
		{class: "retriever: retrieve.concurrent", name: "word is put into a copy of what it knows", find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return early(5, only, func(opts ...conformance.Option) []conformance.Finding {
				return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return &copying{}, memory.New() }, opts...)
			}, conformance.WithClaims("retrieve.concurrent"))
		}},
	}
}

// tired says nothing any more where all searchers failed three times.
type tired struct {
	*asker
	inRow atomic.Int64
}

func (l *tired) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	before := l.owed.Load()
	got, err := l.asker.Retrieve(ctx, q)
	if l.owed.Load()-before < int64(len(l.searchers)) {
		l.inRow.Store(0)
	} else if l.inRow.Add(1) > 3 {
		return nil, nil
	}
	return got, err
}

// hopeful takes for late whatever did not answer beside another.
type hopeful struct {
	*asker
	missed sync.Map
}

func (h *hopeful) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	got, err := h.asker.Retrieve(ctx, q)
	if len(got) > 0 && errors.Is(err, core.ErrPartial) && !strings.Contains(err.Error(), "not yet") {
		h.missed.Store(q.Prompt, true)
	} else {
		h.missed.Delete(q.Prompt)
	}
	return got, err
}

func (h *hopeful) Late(q core.Query) bool {
	_, missed := h.missed.Load(q.Prompt)
	return missed || h.asker.Late(q)
}

// copying changes a copy of what it knows and puts that in the place: of two who do, one is lost.
type copying struct{ readsOnce }

func (c *copying) note(agent string, change func(map[string]core.Entry)) error {
	c.mu.Lock()
	known := maps.Clone(c.known[agent])
	c.mu.Unlock()
	if known == nil {
		return nil
	}
	change(known)
	time.Sleep(50 * time.Microsecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[agent] = known
	return nil
}

func (c *copying) Appended(_ context.Context, entries []core.Entry) error {
	for _, e := range entries {
		_ = c.note(e.Agent, func(known map[string]core.Entry) { known[e.ID] = e })
	}
	return nil
}

func (c *copying) Updated(ctx context.Context, e core.Entry) error {
	return c.Appended(ctx, []core.Entry{e})
}

func (c *copying) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	return c.note(scope.Agent, func(known map[string]core.Entry) {
		for _, id := range ids {
			delete(known, id)
		}
	})
}
