package conformance_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// caughtRetriever is a broken retriever that the named check alone must catch.
func caughtRetriever(id, name string, f func() func(context.Context, core.Query, sound) ([]core.Candidate, error), opts ...conformance.Option) broken {
	return broken{class: "retriever: " + id, name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(5, only, func(more ...conformance.Option) []conformance.Finding {
			return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return &retrieves{f: f()}, memory.New() }, more...)
		}, append(opts, conformance.WithClaims(id))...)
	}}
}

// tableFound are retrievers that quote, count, share or remember a little wrongly.
func tableFound() []broken {
	answer := func(f func(q core.Query, c []core.Candidate) []core.Candidate) func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		return func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				got, err := s(ctx, q)
				return f(q, got), err
			}
		}
	}
	plain := answer(func(_ core.Query, c []core.Candidate) []core.Candidate { return c })
	return []broken{
		caughtRetriever("retrieve.text", "a passage without a blank is cut at a byte", answer(func(q core.Query, c []core.Candidate) []core.Candidate {
			for i := range c {
				c[i].Text = passage(c[i].Entry.Text(), strings.Fields(q.Prompt))
			}
			return c
		})),
		caughtRetriever("retrieve.once", "only neighbouring parts of an entry are one", answer(partly)),
		caughtRetriever("retrieve.clock", "ages by the machine's clock", answer(func(_ core.Query, c []core.Candidate) []core.Candidate {
			for i := range c {
				c[i].Score /= 1 + min(365, max(0, time.Since(c[i].Entry.Time).Hours()/24))/30
			}
			slices.SortStableFunc(c, func(a, b core.Candidate) int { return cmp.Compare(b.Score, a.Score) })
			return c
		})),
		caughtRetriever("retrieve.granted", "what is granted is found once its agent was asked", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			var known sync.Map
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				known.Store(q.Scope.Agent, true)
				got, err := s(ctx, q)
				return slices.DeleteFunc(got, func(c core.Candidate) bool { _, ok := known.Load(c.Entry.Agent); return !ok }), err
			}
		}),
		caughtRetriever("retrieve.concurrent", "a list for the answers of all calls", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			var list [core.MaxPage]*core.Candidate
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				got, err := s(ctx, q)
				for i := range got {
					list[i] = &got[i]
				}
				var out []core.Candidate
				for i := range got {
					if c := *list[i]; !q.InWindow(c.Entry.ID) {
						out = append(out, c)
					}
				}
				return out, err
			}
		}),
		caughtRetriever("failure.retrieve", "hangs with a searcher that is asked for what is granted", plain, overSearchers(func(a *asker) core.Retriever { return deafToGrants{a} })),
		caughtRetriever("retrieve.late-searcher", "late is what was asked in another session", plain, overSearchers(func(a *asker) core.Retriever { return &lateByPrompt{asker: a} })),
	}
}

// passage is what a text says from the first of some words on, up to the last blank in 160 bytes, or to their end.
func passage(text string, words []string) string {
	const most = 160
	for _, w := range words {
		at := strings.Index(text, w)
		if at < 0 || len(text)-at <= most {
			continue
		}
		rest := text[at : at+most]
		if blank := strings.LastIndexByte(rest, ' '); blank > 0 {
			return rest[:blank]
		}
		return rest
	}
	return ""
}

// partly counts a long entry as two, which are one where they are neighbours.
func partly(q core.Query, c []core.Candidate) []core.Candidate {
	for _, one := range c {
		if len(one.Entry.Text()) > 700 {
			one.Score -= 3
			c = append(c, one)
		}
	}
	slices.SortStableFunc(c, func(a, b core.Candidate) int { return cmp.Compare(b.Score, a.Score) })
	c = slices.CompactFunc(c, func(a, b core.Candidate) bool { return a.Entry.ID == b.Entry.ID })
	return c[:min(len(c), q.Limit)]
}

// overSearchers asks searchers with a retriever around the plain one.
func overSearchers(around func(*asker) core.Retriever) conformance.Option {
	return conformance.WithSearchers(func(_ testing.TB, searchers map[string]core.Searcher) core.Retriever {
		a := &asker{searchers: searchers, breakers: map[string]*core.Breaker{}}
		for name := range searchers {
			a.breakers[name] = &core.Breaker{}
		}
		return around(a)
	})
}

// deafToGrants asks for what is granted without an end.
type deafToGrants struct{ *asker }

func (d deafToGrants) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	got, err := d.asker.Retrieve(ctx, q)
	for _, scope := range q.Granted {
		for _, s := range d.searchers {
			_, _ = s.Search(context.WithoutCancel(ctx), core.SearchQuery{Scope: scope, Text: q.Prompt, Limit: q.Limit})
		}
	}
	return got, err
}

// lateByPrompt knows by its prompt alone what was asked.
type lateByPrompt struct {
	*asker
	asked sync.Map
}

func (l *lateByPrompt) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	l.asked.Store(q.Prompt, core.SearchQuery{Scope: q.Scope, Text: q.Prompt})
	return l.asker.Retrieve(ctx, q)
}

func (l *lateByPrompt) Late(q core.Query) bool {
	was, ok := l.asked.Load(q.Prompt)
	for _, s := range l.searchers {
		if late, is := s.(core.LateSearcher); ok && is && late.Late(was.(core.SearchQuery)) { //nolint:forcetypeassert // it was stored above
			return true
		}
	}
	return false
}
