package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// retrieves is a retriever around the plain one.
type retrieves struct {
	wordRetriever
	f func(ctx context.Context, q core.Query, sound func(context.Context, core.Query) ([]core.Candidate, error)) ([]core.Candidate, error)
}

func (r *retrieves) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	return r.f(ctx, q, r.wordRetriever.Retrieve)
}

type sound = func(context.Context, core.Query) ([]core.Candidate, error)

func brokenRetrieverOf(class, name string, f func() func(context.Context, core.Query, sound) ([]core.Candidate, error)) broken {
	over := func() core.Retriever { return &retrieves{f: f()} }
	return broken{class: class, name: name, part: part{retriever: over}, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(5, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return over(), memory.New() }, opts...)
		})
	}}
}

// tableRetrievers are broken retrievers.
func tableRetrievers() []broken {
	var out []broken
	answer := func(class, name string, f func(q core.Query, c []core.Candidate) []core.Candidate) {
		out = append(out, brokenRetrieverOf("retriever: "+class, name, func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				got, err := s(ctx, q)
				return f(q, got), err
			}
		}))
	}
	query := func(class, name string, f func(q *core.Query)) {
		out = append(out, brokenRetrieverOf("retriever: "+class, name, func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				f(&q)
				return s(ctx, q)
			}
		}))
	}
	calls := func(class, name string, f func() func(context.Context, core.Query, sound) ([]core.Candidate, error)) {
		out = append(out, brokenRetrieverOf("retriever: "+class, name, f))
	}
	each := func(f func(*core.Candidate)) func(core.Query, []core.Candidate) []core.Candidate {
		return func(_ core.Query, c []core.Candidate) []core.Candidate {
			for i := range c {
				c[i].Entry = entriesOf([]core.Entry{c[i].Entry}, nil)[0]
				f(&c[i])
			}
			return c
		}
	}
	for _, l := range entryLeaves() {
		answer("a field lost", l.path, each(func(c *core.Candidate) { l.clear(reflect.ValueOf(&c.Entry).Elem()) }))
	}

	// Numbers and order.
	answer("order", "limit ignored", func(q core.Query, c []core.Candidate) []core.Candidate { return c })
	out = out[:len(out)-1]
	query("order", "limit one too many from ten on", func(q *core.Query) {
		if q.Limit >= 10 {
			q.Limit++
		}
	})
	query("order", "limit one too many", func(q *core.Query) { q.Limit++ })
	query("order", "limit ignored", func(q *core.Query) { q.Limit = 1000 })
	query("order", "at least ten", func(q *core.Query) { q.Limit = max(q.Limit, 10) })
	answer("order", "NaN", each(func(c *core.Candidate) { c.Score = math.NaN() }))
	answer("order", "infinite", each(func(c *core.Candidate) { c.Score = math.Inf(1) }))
	answer("order", "a best score that is infinite", func(_ core.Query, c []core.Candidate) []core.Candidate {
		if len(c) > 0 {
			c[0].Score = math.Inf(1)
		}
		return c
	})
	answer("order", "a last score that is none", func(_ core.Query, c []core.Candidate) []core.Candidate {
		if len(c) > 1 {
			c[len(c)-1].Score = math.NaN()
		}
		return c
	})
	answer("order", "negated", each(func(c *core.Candidate) { c.Score = -c.Score }))
	answer("order", "by time", func(_ core.Query, c []core.Candidate) []core.Candidate {
		slices.SortStableFunc(c, func(a, b core.Candidate) int { return b.Entry.Time.Compare(a.Entry.Time) })
		return c
	})
	answer("order", "no source", each(func(c *core.Candidate) { c.Source = "" }))
	answer("order", "the last twice", func(_ core.Query, c []core.Candidate) []core.Candidate {
		if n := len(c); n > 0 && n < 15 {
			c = append(c, c[n-1])
		}
		return c
	})

	// Texts.
	answer("texts", "made up", each(func(c *core.Candidate) { c.Text = "as you said, the password is tulip" }))
	answer("texts", "labelled", each(func(c *core.Candidate) { c.Text = "Remember: " + c.Entry.Text() }))
	answer("texts", "of the best one", func(_ core.Query, c []core.Candidate) []core.Candidate {
		for i := range c {
			c[i].Text = c[0].Entry.Text()
		}
		return c
	})
	answer("texts", "upper case", each(func(c *core.Candidate) { c.Text = strings.ToUpper(c.Entry.Text()) }))
	answer("texts", "backwards", each(func(c *core.Candidate) {
		w := strings.Fields(c.Entry.Text())
		slices.Reverse(w)
		c.Text = strings.Join(w, " ")
	}))
	answer("texts", "twice", each(func(c *core.Candidate) { c.Text = c.Entry.Text() + " " + c.Entry.Text() }))
	answer("texts", "with the prompt", func(q core.Query, c []core.Candidate) []core.Candidate {
		for i := range c {
			c[i].Text = q.Prompt + " " + c[i].Entry.Text()
		}
		return c
	})

	// Scopes.
	query("scopes", "grants ignored", func(q *core.Query) { q.Granted = nil })
	query("scopes", "the first grant alone", func(q *core.Query) { q.Granted = q.Granted[:min(1, len(q.Granted))] })
	query("scopes", "a grant opens the agent", func(q *core.Query) {
		q.Granted = slices.Clone(q.Granted)
		for i := range q.Granted {
			q.Granted[i].Session = ""
		}
	})
	query("scopes", "a grant instead of its own", func(q *core.Query) {
		if len(q.Granted) > 0 {
			q.Scope = q.Granted[0]
		}
	})
	query("scopes", "a grant opens its own agent", func(q *core.Query) {
		if len(q.Granted) > 0 {
			q.Scope.Session = ""
		}
	})
	query("scopes", "always the session", func(q *core.Query) { q.Scope = q.Session.Scope() })
	query("scopes", "always the agent", func(q *core.Query) { q.Scope.Session = "" })
	query("scopes", "sessions in lower case", func(q *core.Query) {
		q.Granted = append(slices.Clone(q.Granted), core.Scope{Agent: q.Scope.Agent, Session: strings.ToLower(q.Scope.Session)})
		for _, g := range q.Granted {
			q.Granted = append(q.Granted, core.Scope{Agent: g.Agent, Session: strings.ToLower(g.Session)}, core.Scope{Agent: strings.ToLower(g.Agent), Session: g.Session})
		}
	})
	query("scopes", "sessions trimmed", func(q *core.Query) {
		q.Granted = slices.Clone(q.Granted)
		for _, g := range q.Granted {
			q.Granted = append(q.Granted, core.Scope{Agent: g.Agent, Session: strings.TrimSpace(g.Session)})
		}
	})
	query("scopes", "another agent's session of the name", func(q *core.Query) {
		q.Granted = append(slices.Clone(q.Granted), core.Scope{Agent: "agent-b", Session: q.Scope.Session})
	})

	query("scopes", "all of a limit in each", func(q *core.Query) { q.Limit *= 1 + len(q.Granted) })
	calls("scopes", "one after the other", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		return func(ctx context.Context, q core.Query, s sound) (got []core.Candidate, err error) {
			for _, scope := range q.Scopes() {
				one := q
				one.Scope, one.Granted = scope, nil
				more, failed := s(ctx, one)
				if failed != nil {
					return nil, failed
				}
				got = append(got, more...)
			}
			slices.SortStableFunc(got, func(a, b core.Candidate) int { return int(b.Score - a.Score) })
			return got[:min(len(got), q.Limit)], nil
		}
	})

	// The window.
	query("window", "not looked at where more is granted", func(q *core.Query) {
		if len(q.Granted) > 0 {
			q.InWindow = func(string) bool { return false }
		}
	})
	query("window", "not looked at", func(q *core.Query) { q.InWindow = func(string) bool { return false } })
	query("window", "asked about the first alone", func(q *core.Query) {
		inner, asked := q.InWindow, false
		q.InWindow = func(id string) bool { was := asked; asked = true; return !was && inner(id) }
	})

	// What is found, and when.
	answer("what is found", "nothing", func(core.Query, []core.Candidate) []core.Candidate { return nil })
	calls("what is found", "nothing after the first time", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		var once sync.Once
		return func(ctx context.Context, q core.Query, s sound) (got []core.Candidate, err error) {
			once.Do(func() { got, err = s(ctx, q) })
			return got, err
		}
	})
	remembering := func(keep func(core.Entry) bool) func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		return func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			var mu sync.Mutex
			known := map[string]core.Candidate{}
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				got, err := s(ctx, q)
				mu.Lock()
				defer mu.Unlock()
				for i := range got {
					if old, ok := known[got[i].Entry.ID]; ok && keep(old.Entry) {
						got[i].Entry = old.Entry
					} else {
						known[got[i].Entry.ID] = got[i]
					}
				}
				for id, c := range known {
					is := func(c core.Candidate) bool { return c.Entry.ID == id }
					if !slices.ContainsFunc(got, is) && len(got) < q.Limit && q.Scope.Contains(c.Entry.SessionID()) && !q.InWindow(id) && keep(c.Entry) && err == nil {
						c.Score = -1
						got = append(got, c)
					}
				}
				return got, err
			}
		}
	}
	calls("what is found", "what was found once", remembering(func(core.Entry) bool { return true }))
	calls("what is found", "as it was when found first", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		var c cached
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			for i := range got {
				got[i].Entry = c.first(got[i].Entry)
			}
			return got, err
		}
	})
	hidden := func(name string, is func(core.Entry) bool) {
		over := func() core.Retriever { return &everything{is: is} }
		out = append(out, broken{class: "retriever: what is found", name: name, part: part{retriever: over}, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return early(5, only, func(opts ...conformance.Option) []conformance.Finding {
				return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return over(), memory.New() }, opts...)
			})
		}})
	}
	hidden("heartbeats", func(e core.Entry) bool { return e.Type == core.TypeHeartbeat })
	hidden("emptied entries", func(e core.Entry) bool { return e.Type == core.TypeErased })

	calls("what is found", "the last answer, when the same is asked", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		var mu sync.Mutex
		var last []core.Candidate
		var of string
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			mu.Lock()
			defer mu.Unlock()
			key := fmt.Sprint(q.Scope, q.Granted, q.Prompt, q.Limit)
			if key != of || ctx.Err() != nil {
				got, err := s(ctx, q)
				if err != nil {
					return nil, err
				}
				last, of = slices.Clone(got), key
			}
			return slices.DeleteFunc(slices.Clone(last), func(c core.Candidate) bool { return q.InWindow(c.Entry.ID) }), nil
		}
	})
	answer("what is found", "odd bytes mended", each(func(c *core.Candidate) {
		for i := range c.Entry.Message.Parts {
			p := &c.Entry.Message.Parts[i]
			p.Text = strings.ToValidUTF8(p.Text, "?")
		}
	}))
	answer("what is found", "every type a message", each(func(c *core.Candidate) { c.Entry.Type = core.TypeMessage }))

	// Errors.
	swallow := func(name string, as func(error) error) {
		calls("errors", name, func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				got, err := s(ctx, q)
				if err != nil {
					err = as(err)
				}
				return got, err
			}
		})
	}
	swallow("swallowed", func(error) error { return nil })
	swallow("swallowed, not the context's", func(err error) error {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	swallow("all are the same", func(error) error { return errors.New("broken") })
	calls("errors", "once failed, always failed", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		var failed error
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			if failed == nil && err != nil {
				failed = err
			}
			if failed != nil {
				return nil, failed
			}
			return got, err
		}
	})
	calls("errors", "once failed, nothing is there", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		failed := false
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			if failed = failed || err != nil; failed {
				return nil, err
			}
			return got, err
		}
	})
	calls("errors", "an empty prompt is an error", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			if q.Prompt == "" {
				return nil, core.ErrInvalid
			}
			return s(ctx, q)
		}
	})
	query("errors", "panics over odd bytes", func(q *core.Query) {
		if !utf8.ValidString(q.Prompt) {
			panic("broken: no text")
		}
	})
	query("errors", "panics over a long prompt", func(q *core.Query) {
		if len(q.Prompt) > 1<<16 {
			panic("broken: too long")
		}
	})
	calls("errors", "time over is not heard", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return s(context.WithoutCancel(ctx), q)
		}
	})
	calls("errors", "panics over an empty session", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			_ = q.Recent[len(q.Recent)-1]
			return s(ctx, q)
		}
	})
	calls("errors", "hangs over an empty prompt", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			if q.Prompt == "" {
				select {}
			}
			return s(ctx, q)
		}
	})

	// Several at once, and what is shared.
	calls("shared", "the answer of another query", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		var mu sync.Mutex
		var current core.Query
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			mu.Lock()
			current = q
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			q = current
			mu.Unlock()
			return s(ctx, q)
		}
	})
	calls("shared", "busy", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		var mu sync.Mutex
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			if !mu.TryLock() {
				return nil, core.ErrUnavailable
			}
			defer mu.Unlock()
			time.Sleep(time.Millisecond)
			return s(ctx, q)
		}
	})
	calls("shared", "its own list", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		var mu sync.Mutex
		kept := map[string][]core.Candidate{}
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			key := q.Prompt + q.Session.String() + strings.Join(ids(got), " ")
			if old, ok := kept[key]; ok {
				return old, err
			}
			kept[key] = got
			return got, err
		}
	})
	query("shared", "writes behind the recent entries", func(q *core.Query) { _ = append(q.Recent, core.Entry{ID: "mine"}) })
	query("shared", "writes behind the grants", func(q *core.Query) { _ = append(q.Granted, core.Scope{Agent: "mine"}) })
	query("shared", "turns round the grants", func(q *core.Query) { slices.Reverse(q.Granted) })
	calls("shared", "one list for all answers", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		var mu sync.Mutex
		var list []core.Candidate
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			mu.Lock()
			defer mu.Unlock()
			got, err := s(ctx, q)
			list = append(list[:0], got...)
			return list, err
		}
	})
	calls("shared", "the recent entries kept", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		var mu sync.Mutex
		var recent []core.Entry
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			mu.Lock()
			defer mu.Unlock()
			got, err := s(ctx, q)
			for _, e := range recent {
				for i := range got {
					if got[i].Entry.ID == e.ID {
						got[i].Entry = e
					}
				}
			}
			recent = q.Recent
			return got, err
		}
	})
	query("shared", "writes to the recent entries", func(q *core.Query) {
		for i := range q.Recent {
			q.Recent[i].Session = "changed"
		}
	})
	calls("shared", "another answer every other time", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
		n := 0
		var mu sync.Mutex
		return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			if n++; n%2 == 0 && len(got) > 1 {
				got = got[1:]
			}
			return got, err
		}
	})
	return out
}

func ids(c []core.Candidate) []string {
	out := make([]string, len(c))
	for i := range c {
		out[i] = c[i].Entry.ID
	}
	return out
}

// everything is a retriever of the plain one's answers and of some entries that are hidden.
type everything struct {
	wordRetriever
	is func(core.Entry) bool
}

func (r *everything) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	got, err := r.wordRetriever.Retrieve(ctx, q)
	for e, scanErr := range core.All(ctx, r.store, q.Scope, true) {
		if scanErr == nil && r.is(e) && !q.InWindow(e.ID) && len(got) < q.Limit {
			got = append(got, core.Candidate{Entry: e, Score: -1, Source: "more"})
		}
	}
	return got, err
}
