package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/delegate"
)

// brokenRetriever is wordRetriever with its query or its answer changed. It remembers what it was told.
type brokenRetriever struct {
	wordRetriever
	query  func(*core.Query)
	answer func([]core.Candidate) []core.Candidate
	// recall says which remembered entries it adds to its answers.
	recall func(core.Entry) bool
	share  func() float64
	// stopped is its error when the context has ended.
	stopped error
	mu      sync.Mutex
	memory  []core.Entry
}

func (r *brokenRetriever) Appended(_ context.Context, entries []core.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory = append(r.memory, entries...)
	return nil
}

func (r *brokenRetriever) Updated(context.Context, core.Entry) error { return nil }

func (r *brokenRetriever) Deleted(context.Context, core.Scope, []string) error { return nil }

func (r *brokenRetriever) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	if ctx.Err() != nil && r.stopped != nil {
		return nil, r.stopped
	}
	if r.query != nil {
		r.query(&q)
	}
	got, err := r.wordRetriever.Retrieve(ctx, q)
	if err != nil {
		return nil, err
	}
	if r.answer != nil {
		got = r.answer(got)
	}
	if r.recall == nil {
		return got, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.memory {
		known := slices.ContainsFunc(got, func(c core.Candidate) bool { return c.Entry.ID == e.ID })
		if r.recall(e) && !known && q.Scope.Contains(e.SessionID()) && !q.InWindow(e.ID) {
			got = append(got, core.Candidate{Entry: e, Score: -1, Source: "memory"})
		}
	}
	return got, nil
}

func (r *brokenRetriever) RecallShare() float64 {
	if r.share == nil {
		return 0.1
	}
	return r.share()
}

func retrieverFault(name string, change func(*brokenRetriever), caught []string, kin ...string) fault {
	// These look at everything at once.
	kin = append(kin, "retrieve.limit", "retrieve.pure", "retrieve.updated", "retrieve.concurrent", "retrieve.granted", "retrieve.text", "retrieve.surfaces", "retrieve.vacuous",
		"retrieve.attached", "retrieve.told", "retrieve.pages", "retrieve.prompt", "retrieve.meanwhile")
	over := func() core.Retriever {
		r := &brokenRetriever{}
		change(r)
		return r
	}
	return fault{name: name, caught: caught, kin: kin, part: part{retriever: over}, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return over(), memory.New() }, append(few(15), telling(caught, kin))...)
	}}
}

func faultyRetrievers() []fault {
	return append(plainRetrievers(), seldomRetrievers()...)
}

func plainRetrievers() []fault {
	answer := func(f func([]core.Candidate) []core.Candidate) func(*brokenRetriever) {
		return func(r *brokenRetriever) { r.answer = f }
	}
	return []fault{
		retrieverFault("the best one twice", answer(func(c []core.Candidate) []core.Candidate {
			return append(c[:min(len(c), 1):min(len(c), 1)], c...)
		}), []string{"retrieve.once"}),
		retrieverFault("worst first", answer(func(c []core.Candidate) []core.Candidate { slices.Reverse(c); return c }), []string{"retrieve.order"}),
		retrieverFault("what is new scores more behind the order", answer(func(c []core.Candidate) []core.Candidate {
			var now time.Time
			for i := range c {
				if t := c[i].Entry.Time; t.After(now) {
					now = t
				}
			}
			for i := range c {
				c[i].Score *= 1 + 1/(1+now.Sub(c[i].Entry.Time).Hours()/24)
			}
			return c
		}), []string{"retrieve.order"}),
		retrieverFault("large bytes left out", answer(func(c []core.Candidate) []core.Candidate {
			for i := range c {
				if len(c[i].Entry.Message.Raw) > 1<<10 {
					c[i].Entry.Message.Raw = nil
				}
			}
			return c
		}), []string{"retrieve.content"}),
		retrieverFault("large bytes of parts left out", answer(func(c []core.Candidate) []core.Candidate {
			for i := range c {
				for p := range c[i].Entry.Message.Parts {
					if part := &c[i].Entry.Message.Parts[p]; len(part.Raw) > 1<<10 {
						part.Raw = nil
					}
				}
			}
			return c
		}), []string{"retrieve.content"}),
		retrieverFault("text cut", answer(func(c []core.Candidate) []core.Candidate {
			for i := range c {
				c[i].Entry.Message.Parts = nil
			}
			return c
		}), []string{"retrieve.content"}),
		retrieverFault("memory of the erased", func(r *brokenRetriever) {
			r.recall = func(e core.Entry) bool { return !e.Hidden() }
		}, []string{"retrieve.erased"}),
		retrieverFault("heartbeats recalled", func(r *brokenRetriever) {
			r.recall = func(e core.Entry) bool { return e.Type == core.TypeHeartbeat }
		}, []string{"retrieve.heartbeat"}, "retrieve.erased"),
		retrieverFault("system messages of the beginning recalled", func(r *brokenRetriever) {
			r.recall = func(e core.Entry) bool { return e.Leads() }
		}, []string{"retrieve.heartbeat"}, "retrieve.erased"),
		retrieverFault("the whole agent", func(r *brokenRetriever) { r.query = func(q *core.Query) { q.Scope.Session = "" } }, []string{"isolation.retrieve"}, "retrieve.legal"),
		retrieverFault("scores by chance", answer(func(c []core.Candidate) []core.Candidate {
			rand.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
			for i := range c {
				c[i].Score = 1
			}
			return c
		}), []string{"deterministic.retrieve"}, "retrieve.again", "retrieve.clock"),
		retrieverFault("cancellation is a failure", func(r *brokenRetriever) {
			r.stopped = errors.New("broken: no answer")
		}, []string{"cancel.retrieve"}),
		askerFault("silent about searchers", func(a *asker) { a.blind = true }, "failure.retrieve"),
		askerFault("silent when all fail", func(a *asker) { a.calm = true }, "failure.retrieve"),
		askerFault("says what was asked", func(a *asker) { a.chatty = true }, "failure.retrieve", "retrieve.late-searcher"),
		askerFault("scores are shares of the best", func(a *asker) { a.toBest = true }, "retrieve.scores"),
		askerFault("late without an end", func(a *asker) { a.late = func(owed, _ int) bool { return owed > 0 } }, "retrieve.late-searcher"),
		askerFault("late before it was asked", func(a *asker) { a.late = func(_, asked int) bool { return asked == 0 } }, "retrieve.late-searcher"),
		askerFault("late while nothing is there", func(a *asker) { a.late = func(owed, asked int) bool { return asked == 1 && owed > 0 } }, "retrieve.late-searcher"),
		askerFault("nothing when one hangs", func(a *asker) { a.impatient = true }, "failure.retrieve"),
		{name: "nothing of before", caught: []string{"retrieve.attached"}, kin: []string{"retrieve.updated", "retrieve.surfaces", "retrieve.told", "retrieve.pages", "retrieve.meanwhile", "retrieve.concurrent", "sequence.retrieve"}, find: func(t *testing.T) []conformance.Finding {
			t.Helper()
			return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return &listener{deaf: true}, memory.New() }, few(15)...)
		}},
		retrieverFault("operators in a prompt", func(r *brokenRetriever) {
			r.query = func(q *core.Query) {
				if strings.Contains(q.Prompt, "(") {
					panic("broken: unbalanced")
				}
			}
		}, []string{"retrieve.prompt"}, "retrieve.order"),
		{name: "always late", caught: []string{"retrieve.late"}, find: func(t *testing.T) []conformance.Finding {
			t.Helper()
			return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return &lateOne{}, memory.New() }, few(15)...)
		}},
		retrieverFault("all of the budget", func(r *brokenRetriever) { r.share = func() float64 { return 0.9 } }, []string{"retrieve.share"}),
	}
}

// lateOne is a plain retriever that always has something late.
type lateOne struct{ wordRetriever }

func (*lateOne) Late(core.Query) bool { return true }

// asker asks searchers one after the other: plain, and sound where blind and impatient are not set.
type asker struct {
	core.Retriever
	searchers map[string]core.Searcher
	breakers  map[string]*core.Breaker
	// blind tells nobody of searchers that failed, and impatient gives up all when the time is over.
	blind, impatient bool
	// calm tells nobody where all failed, and chatty what was asked.
	calm, chatty bool
	// unhurried gives searchers three seconds of their own.
	unhurried bool
	// whole takes nothing of an answer that comes with an error, toBest sorts by scores divided by the first.
	whole, toBest bool
	// late says whether something is, by how often it was asked; owed is how often a searcher was.
	late        func(owed, asked int) bool
	owed, asked atomic.Int64
}

// Late implements core.LateRetriever.
func (a *asker) Late(q core.Query) bool {
	if a.late != nil {
		return a.late(int(a.owed.Load()), int(a.asked.Load()))
	}
	for _, s := range a.searchers {
		l, ok := s.(core.LateSearcher)
		if ok && slices.ContainsFunc(q.Scopes(), func(in core.Scope) bool { return l.Late(core.SearchQuery{Scope: in, Text: q.Prompt}) }) {
			return true
		}
	}
	return false
}

func (a *asker) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	var out []core.Candidate
	var missing []error
	a.asked.Add(1)
	if a.unhurried {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer done()
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(a.searchers))) {
		b := a.breakers[name]
		err := b.Try(q.Now)
		var hits []core.Hit
		if err == nil {
			hits, err = a.searchers[name].Search(ctx, core.SearchQuery{Scope: q.Scope, Text: q.Prompt, Limit: q.Limit, Exclude: q.InWindow})
			b.Note(q.Now, err)
		}
		if err != nil {
			missing = append(missing, fmt.Errorf("%s: %w", name, err))
			a.owed.Add(1)
			if a.whole {
				hits = nil
			}
		}
		for _, h := range hits {
			out = append(out, core.Candidate{Entry: h.Entry, Score: h.Score, Source: name})
			if a.toBest {
				out[len(out)-1].Score /= hits[0].Score
			}
		}
	}
	if a.toBest {
		slices.SortStableFunc(out, func(x, y core.Candidate) int { return cmp.Compare(y.Score, x.Score) })
	}
	switch {
	case a.impatient && ctx.Err() != nil:
		return nil, fmt.Errorf("bad: %w: %w", core.ErrPartial, ctx.Err())
	case a.blind || missing == nil, a.calm && len(missing) == len(a.searchers):
		return out, nil
	case a.chatty:
		missing = append(missing, errors.New(q.Prompt))
	}
	return out, fmt.Errorf("%w: %w", core.ErrPartial, errors.Join(missing...))
}

// askerFault is a retrieverFault of one that asks searchers; what it is asked without them does not matter.
func askerFault(name string, change func(*asker), caught ...string) fault {
	return fault{name: name, caught: caught, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return &wordRetriever{}, memory.New() },
			append(few(5), overAsker(change))...)
	}}
}

func overAsker(change func(*asker)) conformance.Option {
	return conformance.WithSearchers(func(_ testing.TB, searchers map[string]core.Searcher) core.Retriever {
		a := &asker{searchers: searchers, breakers: map[string]*core.Breaker{}}
		for name := range searchers {
			a.breakers[name] = &core.Breaker{}
		}
		change(a)
		return a
	})
}

// brokenCompactor changes what a sound compactor answers.
type brokenCompactor struct {
	core.Compactor
	before func(context.Context, *core.Compaction)
	after  func(context.Context, core.Compaction, core.Patch) (core.Patch, error)
	// stopped is its error when the context has ended.
	stopped error
}

func (b *brokenCompactor) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	if b.before != nil {
		b.before(ctx, &c)
	}
	if b.stopped != nil && ctx.Err() != nil {
		return core.Patch{}, b.stopped
	}
	p, err := b.Compactor.Compact(ctx, c)
	if err == nil && b.after != nil {
		return b.after(ctx, c, p)
	}
	return p, err
}

func compactorFault(name string, sound func() (core.Compactor, error), change func(*brokenCompactor, *conformance.Model), caught []string, kin ...string) fault {
	// These look at everything at once.
	kin = append(kin, "patch.concurrent", "patch.honest", "patch.host-fails", "patch.instructions", "patch.listed", "patch.publish", "patch.rounds", "patch.whole",
		"patch.alone", "patch.long", "patch.paid", "deterministic.fallback", "patch.included", "patch.worth", "patch.pure", "patch.runtime", "patch.scripts", "patch.shapes", "patch.soon", "patch.tries")
	over := func(env conformance.Env) (core.Compactor, error) {
		c, err := sound()
		b := &brokenCompactor{Compactor: c}
		change(b, env.Model)
		return b, err
	}
	return fault{name: name, caught: caught, kin: kin, part: part{compactor: over}, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		return conformance.ExamineCompactor(t, func(tb testing.TB, m *conformance.Model) core.Compactor {
			tb.Helper()
			c, err := over(conformance.Env{Model: m})
			if err != nil {
				tb.Fatalf("compactor: %v", err)
			}
			return c
		}, append(few(20), telling(caught, kin))...)
	}}
}

func faultyCompactors() []fault {
	return slices.Concat(plainCompactors(), seldomCompactors(), byThemselves())
}

func plainCompactors() []fault {
	sound := func() (core.Compactor, error) { return archive.New(archive.DefaultConfig()) }
	delegating := func() (core.Compactor, error) { return delegate.New(conformance.NewHost(&conformance.Model{})) }
	patch := func(f func(core.Compaction, core.Patch) core.Patch) func(*brokenCompactor, *conformance.Model) {
		return func(b *brokenCompactor, _ *conformance.Model) {
			b.after = func(_ context.Context, c core.Compaction, p core.Patch) (core.Patch, error) { return f(c, p), nil }
		}
	}
	var calls atomic.Int64
	return []fault{
		compactorFault("the newest first", sound, patch(func(c core.Compaction, p core.Patch) core.Patch {
			for i := range p.Replace {
				n := len(p.Replace[i].Entries)
				p.Replace[i].Entries = nil
				for _, e := range c.Entries[len(c.Entries)-n:] {
					p.Replace[i].Entries = append(p.Replace[i].Entries, e.ID)
				}
			}
			return p
		}), []string{"patch.oldest"}, "patch.*"),
		compactorFault("half a group", sound, patch(func(_ core.Compaction, p core.Patch) core.Patch {
			for i := range p.Replace {
				if n := len(p.Replace[i].Entries); n > 1 {
					p.Replace[i].Entries = p.Replace[i].Entries[:n-1]
				}
			}
			return p
		}), []string{"patch.groups"}, "patch.progress", "patch.fallback", "patch.deadline"),
		compactorFault("no text", sound, patch(func(_ core.Compaction, p core.Patch) core.Patch {
			for i := range p.Replace {
				p.Replace[i].Text = ""
			}
			return p
		}), []string{"patch.text"}, "patch.fallback"),
		compactorFault("nothing, without a word", sound, patch(func(core.Compaction, core.Patch) core.Patch { return core.Patch{} }),
			[]string{"patch.progress"}, "patch.fallback", "patch.deadline", "patch.hangs"),
		compactorFault("fails with its model", sound, func(b *brokenCompactor, m *conformance.Model) {
			b.after = func(ctx context.Context, c core.Compaction, p core.Patch) (core.Patch, error) {
				_, err := m.Complete(ctx, core.CompletionRequest{Prompt: "summarise"})
				return p, err
			}
		}, []string{"patch.fallback"}, "cancel.patch"),
		compactorFault("gives up before its time", sound, func(b *brokenCompactor, m *conformance.Model) {
			b.after = func(ctx context.Context, _ core.Compaction, p core.Patch) (core.Patch, error) {
				ctx, cancel := context.WithTimeout(ctx, 1)
				defer cancel()
				if _, err := m.Complete(ctx, core.CompletionRequest{}); errors.Is(err, context.DeadlineExceeded) {
					return core.Patch{}, nil
				}
				return p, nil
			}
		}, []string{"patch.deadline"}, "patch.*"),
		compactorFault("one place for what all patches say of themselves", sound, func(b *brokenCompactor, _ *conformance.Model) {
			meta := map[string]string{"by": "broken"}
			b.after = func(_ context.Context, _ core.Compaction, p core.Patch) (core.Patch, error) {
				for i := range p.Replace {
					p.Replace[i].Meta = meta
				}
				return p, nil
			}
		}, []string{"patch.pure"}),
		compactorFault("texts by chance", sound, patch(func(_ core.Compaction, p core.Patch) core.Patch {
			n := calls.Add(1)
			for i := range p.Replace {
				p.Replace[i].Text += fmt.Sprint(n)
			}
			p.Reason += fmt.Sprint(n)
			return p
		}), []string{"deterministic.patch"}),
		compactorFault("the patch of before", sound, func(b *brokenCompactor, _ *conformance.Model) {
			var mu sync.Mutex
			before := map[string]core.Patch{}
			b.after = func(_ context.Context, c core.Compaction, p core.Patch) (core.Patch, error) {
				mu.Lock()
				defer mu.Unlock()
				key := fmt.Sprint(c.Entries[0].ID, len(c.Entries), c.Force, c.Protected, c.Target)
				if old, ok := before[key]; ok {
					return old, nil
				}
				before[key] = p
				return p, nil
			}
		}, []string{"patch.alone"}, "patch.fallback", "patch.progress"),
		compactorFault("nothing of long histories", sound, patch(func(c core.Compaction, p core.Patch) core.Patch {
			if len(c.Entries) > 1000 {
				return core.Patch{Reason: core.ReasonAlreadyCompacted}
			}
			return p
		}), []string{"patch.long"}),
		compactorFault("asks the runtime as well", sound, func(b *brokenCompactor, _ *conformance.Model) {
			b.before = func(ctx context.Context, c *core.Compaction) { _, _ = c.Host.Compact(ctx, c.Request) }
		}, []string{"patch.owner"}),
		compactorFault("asks the runtime twice", delegating, func(b *brokenCompactor, _ *conformance.Model) {
			b.before = func(ctx context.Context, c *core.Compaction) { _, _ = c.Host.Compact(ctx, c.Request) }
		}, []string{"patch.delegate"}),
		compactorFault("own error for a cancelled context", sound, func(b *brokenCompactor, _ *conformance.Model) {
			b.stopped = errors.New("broken: stopped")
		}, []string{"cancel.patch"}, "patch.deadline", "patch.quotes"),
	}
}
