package conformance_test

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/mask"
	"github.com/contextengine/contextengine/strategies/summary"
)

// seldomRetriever is a fault that shows only where a conversation, a query or a failure is of a kind that comes seldom. Each retriever remembers something of its own.
func seldomRetriever(name, caught string, each func() func(context.Context, core.Query, sound) ([]core.Candidate, error), kin ...string) fault {
	if caught == "retrieve.granted" {
		kin = append(kin, "isolation.retrieve")
	}
	return seldomPart(name, caught, func() core.Retriever { return &retrieves{f: each()} }, kin...)
}

func seldomPart(name, caught string, over func() core.Retriever, kin ...string) fault {
	kin = append(kin, "cancel.retrieve") // those that remember hold their lock while they read
	return fault{name: name, caught: []string{caught}, kin: kin, part: part{retriever: over}, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return over(), memory.New() }, append(few(5), telling([]string{caught}, kin))...)
	}}
}

// seldomRetrievers are retrievers that break a sentence where few conversations lead.
func seldomRetrievers() []fault {
	type retrieve = func(context.Context, core.Query, sound) ([]core.Candidate, error)
	stateless := func(f retrieve) func() retrieve { return func() retrieve { return f } }
	return []fault{
		seldomRetriever("a score divided by how far the times lie apart", "retrieve.limit", stateless(func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			limit := q.Limit
			q.Limit = core.MaxPage
			got, err := s(ctx, q)
			byTime := func(a, b core.Candidate) int { return a.Entry.Time.Compare(b.Entry.Time) }
			if len(got) == 0 {
				return nil, err
			}
			first, last := slices.MinFunc(got, byTime).Entry.Time, slices.MaxFunc(got, byTime).Entry.Time
			for i := range got {
				got[i].Score += 0 * float64(got[i].Entry.Time.Sub(first)) / float64(last.Sub(first))
			}
			return got[:min(len(got), limit)], err
		}), "retrieve.vacuous"),
		seldomRetriever("a grant of another's session opens the other", "retrieve.granted", stateless(func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			q.Granted = slices.Clone(q.Granted)
			for i, g := range q.Granted {
				if g.Agent != q.Scope.Agent {
					q.Granted[i].Session = ""
				}
			}
			return s(ctx, q)
		})),
		seldomRetriever("a grant that cannot be read is left out", "retrieve.surfaces", stateless(func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := eachScope(ctx, q, s, nil, func(n int) bool { return n > 0 })
			return bestOf(got, q.Limit), err
		})),
		seldomPart("a type that changes alone is not heard", "retrieve.updated", func() core.Retriever {
			return &listener{update: func(old, e core.Entry) core.Entry {
				if old.Fingerprint == e.Fingerprint {
					e.Type = old.Type
				}
				return e
			}}
		}, "retrieve.meanwhile"),
		seldomPart("metadata that changes alone are not heard", "retrieve.updated", func() core.Retriever {
			return &listener{update: func(old, e core.Entry) core.Entry {
				if old.Fingerprint == e.Fingerprint {
					e.Meta = maps.Clone(old.Meta)
				}
				return e
			}}
		}, "retrieve.meanwhile"),
		askerFault("nothing of what comes with an error", func(a *asker) { a.whole = true }, "failure.retrieve"),
		seldomRetriever("metadata of its own memory", "retrieve.pure", func() retrieve {
			var mu sync.Mutex
			known := map[string]map[string]string{}
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				got, err := s(ctx, q)
				mu.Lock()
				defer mu.Unlock()
				for i := range got {
					e := &got[i].Entry
					if kept, ok := known[e.ID]; ok {
						e.Meta = kept
					}
					known[e.ID] = e.Meta
				}
				return got, err
			}
		}, "retrieve.updated"),
		seldomRetriever("what is equal comes in any order", "deterministic.retrieve", stateless(func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
			slices.SortStableFunc(got, func(a, b core.Candidate) int {
				return cmp.Or(cmp.Compare(b.Score, a.Score), b.Entry.Time.Compare(a.Entry.Time))
			})
			return got, err
		}), "retrieve.pure", "retrieve.concurrent", "retrieve.clock"),
		seldomPart("a share that falls with each query", "retrieve.share", func() core.Retriever {
			var asked atomic.Int64
			return &brokenRetriever{query: func(*core.Query) { asked.Add(1) }, share: func() float64 { return 0.4 / float64(1+asked.Load()) }}
		}, "retrieve.attached", "retrieve.told", "retrieve.pages"),
		seldomRetriever("one list for all that are asked at once", "retrieve.concurrent", func() retrieve {
			var mu sync.Mutex
			var list []*core.Candidate
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				mu.Lock()
				own := list[:0]
				mu.Unlock()
				own, err := eachScope(ctx, q, s, own, func(int) bool { return false })
				mu.Lock()
				list = own
				mu.Unlock()
				return bestOf(own, q.Limit), err
			}
		}),
	}
}

// eachScope adds to a list what is found in one scope after the other; those that fail and may are left out.
func eachScope(ctx context.Context, q core.Query, s sound, all []*core.Candidate, may func(n int) bool) ([]*core.Candidate, error) {
	for n, scope := range q.Scopes() {
		one := q
		one.Scope, one.Granted = scope, nil
		got, err := s(ctx, one)
		if err != nil && !may(n) {
			return nil, err
		}
		for i := range got {
			if !slices.ContainsFunc(all, func(c *core.Candidate) bool { return c.Entry.ID == got[i].Entry.ID }) {
				all = append(all, &got[i])
			}
		}
	}
	return all, nil
}

// bestOf returns copies of the best.
func bestOf(all []*core.Candidate, limit int) []core.Candidate {
	slices.SortStableFunc(all, func(a, b *core.Candidate) int { return cmp.Compare(b.Score, a.Score) })
	out := make([]core.Candidate, min(len(all), limit))
	for i := range out {
		out[i] = *all[i]
	}
	return out
}

// seldomCompactors are compactors that break a sentence where few tasks, or few answers of a model, lead.
func seldomCompactors() []fault {
	note := func() (core.Compactor, error) { return archive.New(archive.DefaultConfig()) }
	masks := func() (core.Compactor, error) { return mask.New(mask.DefaultConfig()) }
	after := func(f func(c core.Compaction, p *core.Patch)) func(*brokenCompactor, *conformance.Model) {
		return func(b *brokenCompactor, _ *conformance.Model) {
			b.after = func(_ context.Context, c core.Compaction, p core.Patch) (core.Patch, error) { f(c, &p); return p, nil }
		}
	}
	gives := func(up func(c core.Compaction) bool) func(*brokenCompactor, *conformance.Model) {
		return after(func(c core.Compaction, p *core.Patch) {
			if up(c) {
				*p = core.Patch{Reason: core.ReasonAlreadyCompacted}
			}
		})
	}
	return []fault{
		compactorFault("nothing more where wishes meet a summary", note, gives(func(c core.Compaction) bool {
			return c.Instructions != "" && len(c.Summaries) > 0
		}), []string{"patch.progress"}, "patch.fallback"),
		compactorFault("nothing where two entries may go, below the mark", note, gives(func(c core.Compaction) bool {
			return c.Tokens <= c.Target && len(c.Entries)-c.Protected <= 2
		}), []string{"patch.progress"}),
		compactorFault("nothing where the mark is far above", note, gives(func(c core.Compaction) bool { return 5*c.Tokens < c.Target }), []string{"patch.progress"}),
		compactorFault("nothing where there is no mark", note, gives(func(c core.Compaction) bool { return c.Target == 0 }), []string{"patch.progress"}),
		compactorFault("the group goes in which what stays begins", note, func(b *brokenCompactor, _ *conformance.Model) {
			b.before = func(_ context.Context, c *core.Compaction) {
				first := len(c.Entries) - c.Protected
				for i := first; i > 0 && i < len(c.Entries) && c.Entries[i].Message.HasResults(); i++ {
					c.Protected = len(c.Entries) - i - 1
				}
			}
		}, []string{"patch.oldest"}),
		compactorFault("an empty text where nothing was said", note, after(func(c core.Compaction, p *core.Patch) {
			for i := range p.Replace {
				rep := &p.Replace[i]
				if !slices.ContainsFunc(c.Entries, func(e core.Entry) bool { return slices.Contains(rep.Entries, e.ID) && e.Text() != "" }) {
					rep.Text = ""
				}
			}
		}), []string{"patch.text"}, "patch.fallback"),
		compactorFault("no warning where a model answered once", note, func(b *brokenCompactor, m *conformance.Model) {
			b.Compactor, _ = summary.New(summary.DefaultConfig(), m)
			b.after = func(_ context.Context, _ core.Compaction, p core.Patch) (core.Patch, error) {
				if slices.ContainsFunc(p.Replace, func(r core.Replacement) bool { return r.Kind == "summary" }) {
					p.Warnings = nil
				}
				return p, nil
			}
		}, []string{"patch.fallback"}),
		compactorFault("a stub for the price of its own texts", masks, after(func(c core.Compaction, p *core.Patch) {
			for id, s := range p.Stubs {
				s.Tokens = 4
				for _, t := range s.Texts {
					s.Tokens += c.Count(t)
				}
				p.Stubs[id] = s
			}
		}), []string{"patch.honest"}),
		compactorFault("one of several masks is blank", masks, after(func(_ core.Compaction, p *core.Patch) {
			for id, s := range p.Stubs {
				if s.Texts = maps.Clone(s.Texts); len(s.Texts) > 1 {
					s.Texts[slices.Max(slices.Collect(maps.Keys(s.Texts)))] = "\u200b"
				}
				p.Stubs[id] = s
			}
		}), []string{"patch.honest"}),
	}
}
