package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestWhatIsNotStoredIsNotRecalled: a retriever that proposes what the store does not hold, or other than it does, is not believed. What it says that is so is
// recalled beside it.
func TestWhatIsNotStoredIsNotRecalled(t *testing.T) {
	own, sister, foreign := core.SessionID{Agent: "main", Session: "s1"}, core.SessionID{Agent: "main", Session: "other"}, core.SessionID{Agent: "eve", Session: "s1"}
	for name, c := range map[string]struct {
		lie func(mine, sisters, foreigns, timer core.Entry) core.Entry
		// quiet says that it may be by mistake: an index that lags behind.
		quiet bool
	}{
		"another message under its id":       {lie: func(e, _, _, _ core.Entry) core.Entry { e.Message = user(secret); return e }},
		"more than was said":                 {lie: func(e, _, _, _ core.Entry) core.Entry { e.Message = user(e.Message.Text() + " " + secret); return e }},
		"another agent's words under its id": {lie: func(e, _, o, _ core.Entry) core.Entry { e.Message = o.Message; return e }},
		"another session's words as its own": {lie: func(_, o, _, _ core.Entry) core.Entry { o.Session = own.Session; return o }, quiet: true},
		"another agent's entry as its own":   {lie: func(_, _, o, _ core.Entry) core.Entry { o.Agent = own.Agent; return o }, quiet: true},
		"an id that nobody gave":             {lie: func(e, _, _, _ core.Entry) core.Entry { e.ID, e.Message = "zzz", user(secret); return e }, quiet: true},
		"a timer's message as a person's":    {lie: func(_, _, _, e core.Entry) core.Entry { e.Type = core.TypeMessage; return e }},
		"what a user said as an answer":      {lie: func(e, _, _, _ core.Entry) core.Entry { e.Role = message.Assistant; return e }},
		"another name":                       {lie: func(e, _, _, _ core.Entry) core.Entry { e.Message.Name = secret; return e }},
		"another day":                        {lie: func(e, _, _, _ core.Entry) core.Entry { e.Time = e.Time.Add(24 * time.Hour); return e }},
		"another position":                   {lie: func(e, _, _, _ core.Entry) core.Entry { e.Seq++; return e }},
	} {
		for _, failure := range []engine.FailurePolicy{engine.FailDegrade, engine.FailStrict} {
			t.Run(name+", "+string(failure), func(t *testing.T) {
				p := &proposer{}
				f := newFixture(t, func(cfg *engine.Config, parts *engine.Parts) { cfg.Failure, parts.Retriever = failure, p })
				f.say(own, false, user("the kite is red"), user("the boat is blue"), assistant("noted"), user("so"), assistant("yes"))
				f.say(own, true, user("at noon: "+secret))
				f.say(sister, false, user("to another session: "+secret))
				f.say(foreign, false, user("to another agent: "+secret))
				f.compact(40)
				sound := f.entry("the boat")
				lie := c.lie(f.entry("the kite"), f.entryOf(sister), f.entryOf(foreign), f.entry("at noon"))
				p.candidates = []core.Candidate{{Entry: lie, Score: 2, Source: "proposer"}, {Entry: sound, Score: 1, Source: "proposer"}}
				for range 2 {
					res := f.assemble(4000, func(r *core.AssembleRequest) { r.PromptMode, r.Prompt = core.PromptFull, "what was it?" })
					got := shown(res)
					if strings.Contains(got, secret) || strings.Contains(got, "> the kite") || !strings.Contains(got, "> the boat is blue") {
						t.Errorf("shown: %s", got)
					}
				}
				if told := f.problem("retriever"); told == c.quiet {
					t.Errorf("problems: %+v", f.engine.Info().Health)
				}
			})
		}
	}
}

// entryOf is the newest entry of a session.
func (f *fixture) entryOf(id core.SessionID) core.Entry {
	f.t.Helper()
	page, err := f.store.Scan(f.t.Context(), core.ScanQuery{Scope: id.Scope(), Reverse: true, Limit: 1})
	if err != nil {
		f.t.Fatal(err)
	}
	return page.Entries[0]
}

// liar is a searcher that finds what it is given.
type liar struct{ hits []core.Hit }

func (l *liar) Search(context.Context, core.SearchQuery) ([]core.Hit, error) { return l.hits, nil }

// TestSearchSaysWhatIsStored: what a searcher says of an entry is not believed either, and what is gone is not found.
func TestSearchSaysWhatIsStored(t *testing.T) {
	l := &liar{}
	f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Searcher = l })
	f.ingest(user("the kite is red"), user("the boat is blue"), assistant("noted"))
	f.say(f.id, true, user("at noon: "+secret))
	changed, foreign, timer, gone := f.entry("the kite"), f.entry("the boat"), f.entry("at noon"), f.entry("noted")
	f.say(core.SessionID{Agent: "eve", Session: "s1"}, false, user("to another agent: "+secret))
	changed.Message = user("the kite is " + secret)
	foreign.ID = f.entryOf(core.SessionID{Agent: "eve", Session: "s1"}).ID
	timer.Type = core.TypeMessage
	gone.ID = "zzz"
	for _, e := range []core.Entry{changed, foreign, timer, gone} {
		l.hits = append(l.hits, core.Hit{Entry: e, Score: 1})
	}
	res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "which colour is the kite?"})
	if err != nil || len(res.Found) != 1 || !strings.Contains(res.Text, "the kite is red") || strings.Contains(res.Text, secret) {
		t.Errorf("found %q, %v", res.Text, err)
	}
}

// unsure is a store that cannot say whether it holds an entry.
type unsure struct{ *memory.Store }

func (unsure) Get(context.Context, core.Scope, []string) ([]core.Entry, error) {
	return nil, fmt.Errorf("get: %w: %w", core.ErrNotFound, errors.ErrUnsupported)
}

// TestRecallOverAStoreThatCannotSay: over a store that does not show all it holds, what a retriever found is recalled nevertheless.
func TestRecallOverAStoreThatCannotSay(t *testing.T) {
	p := &proposer{}
	f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Retriever = p })
	f.parts.Store = unsure{f.store}
	f.restart()
	f.ingest(user("the kite is red"), assistant("noted "+strings.Repeat("word ", 20)), user("so"), assistant("yes"))
	f.compact(40)
	p.candidates = []core.Candidate{{Entry: f.entry("the kite"), Score: 1}}
	if got := f.recalledFrom(f.id); !strings.Contains(got, "> the kite is red") {
		t.Errorf("recalled: %q", got)
	}
}
