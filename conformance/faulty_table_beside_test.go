package conformance_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/strategies/hybrid"
)

// asksAs answers another query than the one it is asked, and changes what it found.
type asksAs struct {
	wordRetriever
	query func(q *core.Query)
	found func(c *core.Candidate)
}

func (r *asksAs) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	if r.query != nil {
		r.query(&q)
	}
	out, err := r.wordRetriever.Retrieve(ctx, q)
	for i := range out {
		if r.found != nil {
			r.found(&out[i])
		}
	}
	return out, err
}

// readsOnce reads an agent's entries when it is first asked. It is sound where it loses no word and does not hold its lock meanwhile.
type readsOnce struct {
	mu    sync.Mutex
	store core.Store
	known map[string]map[string]core.Entry
	word  map[string][]func(map[string]core.Entry)
	// loses is the kind of word that is lost while it reads, holds says that it keeps others waiting.
	loses string
	holds bool
	// again says that it keeps no word while it reads, and begins once more; forgets is the kind of word after which it reads anew, and later that its faults begin then.
	again, later bool
	forgets      string
	was          map[string]bool
	// half says of an error of the context that what was read until then is taken for all.
	half func(error) bool
}

// wrong reports whether a fault may show.
func (r *readsOnce) wrong(agent string) bool { return !r.later || r.was[agent] }

func (r *readsOnce) Attach(s core.Store) error { r.store = s; return nil }

func (r *readsOnce) note(kind, agent string, change func(map[string]core.Entry)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.known[agent]; known != nil && kind == r.forgets {
		delete(r.known, agent)
		r.was[agent] = true
	} else if known != nil {
		change(known)
	} else if r.word != nil && (kind != r.loses || !r.wrong(agent)) {
		r.word[agent] = append(r.word[agent], change)
	}
	return nil
}

func (r *readsOnce) Appended(_ context.Context, entries []core.Entry) error {
	for _, e := range entries {
		_ = r.note("append", e.Agent, func(known map[string]core.Entry) { known[e.ID] = e })
	}
	return nil
}

func (r *readsOnce) Updated(_ context.Context, e core.Entry) error {
	return r.note("update", e.Agent, func(known map[string]core.Entry) { known[e.ID] = e })
}

func (r *readsOnce) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	return r.note("delete", scope.Agent, func(known map[string]core.Entry) {
		for _, id := range ids {
			delete(known, id)
		}
	})
}

func (r *readsOnce) read(ctx context.Context, agent string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[agent] != nil {
		return nil
	}
	if r.word == nil {
		r.word, r.known, r.was = map[string][]func(map[string]core.Entry){}, map[string]map[string]core.Entry{}, map[string]bool{}
	}
	from, holds := len(r.word[agent]), r.holds && r.wrong(agent) // what came before is read
	known := map[string]core.Entry{}
	if !holds {
		r.mu.Unlock()
	}
	var failed error
	for e, err := range core.All(ctx, r.store, core.Scope{Agent: agent}, false) {
		if failed = err; err == nil {
			known[e.ID] = e
		}
	}
	if !holds {
		r.mu.Lock()
	}
	if r.again && failed == nil && len(r.word[agent]) > from {
		r.mu.Unlock()
		defer r.mu.Lock()
		return r.read(ctx, agent)
	}
	if failed != nil && (r.half == nil || ctx.Err() == nil || !r.half(failed)) || r.known[agent] != nil {
		return failed
	}
	for _, change := range r.word[agent][from:] {
		change(known)
	}
	r.known[agent] = known
	return nil
}

func (r *readsOnce) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	for _, scope := range q.Scopes() {
		if err := r.read(ctx, scope.Agent); err != nil {
			return nil, fmt.Errorf("reads once: %w", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]core.Candidate{}
	for _, scope := range q.Scopes() {
		for id, e := range r.known[scope.Agent] {
			c := core.Candidate{Entry: e.Clone(), Source: "read once"}
			for word := range strings.FieldsSeq(q.Prompt) {
				if strings.Contains(e.Text(), word) {
					c.Score++
				}
			}
			if c.Score > 0 && scope.Contains(e.SessionID()) && !e.Hidden() && !q.InWindow(id) {
				found[id] = c
			}
		}
	}
	out := slices.SortedFunc(maps.Values(found), func(a, b core.Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Entry.ID, b.Entry.ID))
	})
	return out[:min(len(out), q.Limit)], ctx.Err()
}

// lateOf is a hybrid retriever that asks some of its searchers whether they are late, in some scopes.
type lateOf struct {
	*hybrid.Retriever
	searchers map[string]core.Searcher
	first     bool
	grants    bool
}

func (l *lateOf) Late(q core.Query) bool {
	scopes := q.Scopes()
	if !l.grants {
		scopes = scopes[:1]
	}
	names := slices.Sorted(maps.Keys(l.searchers))
	if l.first {
		names = names[:1]
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(scopes, func(s core.Scope) bool {
			late, ok := l.searchers[name].(core.LateSearcher)
			return ok && late.Late(core.SearchQuery{Scope: s, Text: q.Prompt})
		})
	})
}

// tableBeside are retrievers that are wrong where something else is going on, or in scopes that are seldom asked together.
func tableBeside() []broken {
	var out []broken
	over := func(name string, open func() core.Retriever, opts ...conformance.Option) {
		out = append(out, broken{class: "retriever: beside something else", name: name, part: part{retriever: open}, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return early(3, only, func(early ...conformance.Option) []conformance.Finding {
				return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return open(), memory.New() }, append(early, opts...)...)
			})
		}})
	}
	over("where recall reaches all of an agent, so does a grant", func() core.Retriever {
		return &asksAs{query: func(q *core.Query) {
			for i := range q.Granted {
				if q.Scope.Session == "" {
					q.Granted[i].Session = ""
				}
			}
		}}
	})
	over("quotes the message, with what a client put in", func() core.Retriever {
		return &asksAs{found: func(c *core.Candidate) { c.Text = c.Entry.Message.Text() }}
	})
	for _, kind := range []string{"append", "update", "delete"} {
		over("word of each "+kind+" is lost while it reads", func() core.Retriever { return &readsOnce{loses: kind} })
	}
	over("keeps others waiting while it reads", func() core.Retriever { return &readsOnce{holds: true} })
	for _, kind := range []string{"append", "update", "delete"} {
		over("any word while it reads makes it read again, but of each "+kind, func() core.Retriever { return &readsOnce{loses: kind, again: true} }, conformance.WithClaims("retrieve.meanwhile"))
		over("reads anew after each "+kind+", and keeps others waiting then", func() core.Retriever {
			return &readsOnce{forgets: kind, holds: true, later: true}
		}, conformance.WithClaims("cancel.retrieve"))
	}
	over("reads anew after each delete, and loses word of an update then", func() core.Retriever {
		return &readsOnce{forgets: "delete", loses: "update", later: true}
	}, conformance.WithClaims("retrieve.meanwhile"))
	for name, of := range map[string]lateOf{"asks the first searcher whether it is late": {first: true, grants: true}, "asks of its own scope what is late": {}} {
		late := func(tb testing.TB, searchers map[string]core.Searcher) core.Retriever {
			tb.Helper()
			r, err := hybrid.New(hybrid.DefaultConfig(), searchers)
			if err != nil {
				tb.Fatal(err)
			}
			return &lateOf{Retriever: r, searchers: searchers, first: of.first, grants: of.grants}
		}
		over(name, words, conformance.WithSearchers(late), conformance.WithClaims("retrieve.late-searcher"))
	}
	return out
}

// TestReadsOnce holds the sound one to the checks that the others are caught by.
func TestReadsOnce(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func() core.Retriever{
		"once": func() core.Retriever { return &readsOnce{} }, "again where word comes": func() core.Retriever { return &readsOnce{again: true} },
		"anew after each delete": func() core.Retriever { return &readsOnce{forgets: "delete"} },
	} {
		open := func(testing.TB) (core.Retriever, core.Store) { return over(), memory.New() }
		if found := conformance.ExamineRetriever(t, open, conformance.WithClaims("retrieve.meanwhile", "cancel.retrieve")); len(found) > 0 {
			t.Errorf("one that reads %s: %v", name, found)
		}
	}
}

// tableMidway are compactors that are wrong where their time is over midway, under counters of their own kind, or over what was shortened before.
func tableMidway() []broken {
	var out []broken
	add := func(base, name string, f func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error)) {
		out = append(out, brokenCompactorOf("midway", base, name, f))
	}
	add("summary", "a token is four bytes, whatever the task counts", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		c.Count = func(s string) int { return (len(s) + 3) / 4 }
		return s(ctx, c)
	})
	add("summary", "what was ready when time was over early is lost", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		var ready []core.Replacement
		c.Publish = func(_ context.Context, p core.Patch) error { ready = append(ready, p.Replace...); return nil }
		p, err := s(ctx, c)
		if p.Replace = append(ready, p.Replace...); ctx.Err() != nil && len(p.Replace) < 2 {
			return core.Patch{}, err
		}
		return p, err
	})
	add("summary", "asks on when time is over", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		for range 8 {
			if ctx.Err() != nil && m.Calls() > 0 {
				_, _ = m.Complete(ctx, core.CompletionRequest{Prompt: "go on"})
			}
		}
		return p, err
	})
	for name, quote := range map[string]func(string) string{
		"the beginning": func(s string) string { return s[:min(20, len(s))] },
		"the end":       func(s string) string { return s[max(0, len(s)-20):] },
		"a plan":        func(s string) string { return strings.Fields(s)[min(4, len(strings.Fields(s))-1)] },
	} {
		add("summary", "a warning quotes "+name+" of an answer", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
			p, err := s(ctx, c)
			if a, failed := m.Complete(ctx, core.CompletionRequest{Prompt: "sum up", Purpose: "summary"}); failed == nil && !window.Blank(a.Text) {
				p.Warnings = append(slices.Clone(p.Warnings), "it said: "+quote(a.Text))
			}
			return p, err
		})
	}
	stubs := func(name string, f func(c core.Compaction, e core.Entry, s window.Stub) window.Stub) {
		add("mask", name, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			p, err := s(ctx, c)
			for _, e := range c.Entries {
				if st, ok := p.Stubs[e.ID]; ok {
					p.Stubs[e.ID] = f(c, e, st)
				}
			}
			return p, err
		})
	}
	stubs("a result is shown by how it begins, blank or not", func(_ core.Compaction, e core.Entry, s window.Stub) window.Stub {
		s.Texts = maps.Clone(s.Texts)
		for i := range s.Texts {
			if p := e.Message.Parts[i]; p.Kind == message.ToolResult && len(p.Text) > 60 {
				s.Texts[i] = strings.TrimSpace(window.CutRune(p.Text, 60)) + "\u200b"
			}
		}
		return s
	})
	stubs("what was shortened of other parts before is counted whole", func(c core.Compaction, e core.Entry, s window.Stub) window.Stub {
		for i, text := range c.Stubs[e.ID].Texts {
			if s.Texts[i] == text {
				s.Tokens += c.Count(e.Message.Parts[i].Text) - c.Count(text)
			}
		}
		return s
	})
	return out
}
