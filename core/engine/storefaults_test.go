package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
)

// faultyStore fails one of its calls, and has something happen in front of its first change of an entry.
type faultyStore struct {
	struckViews
	first func()
}

// calmly has something happen in which no call fails or counts.
func (s *faultyStore) calmly(do func()) {
	calls, at := s.calls, s.at
	s.at = 0
	do()
	s.calls, s.at = calls, at
}

func (s *faultyStore) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	if do := s.first; do != nil {
		s.first = nil
		s.calmly(do)
	}
	return s.struckStore.Update(ctx, scope, id, change)
}

// viewsApart is a store that keeps no views, and tells what others did.
type viewsApart struct {
	core.Store
	core.Tailer
}

// faulted is an engine with sessions in which everything happened once, over a store that fails.
type faulted struct {
	*fixture
	store *faultyStore
	late  *meanwhile
	now   time.Time
	// solo is a session in which nothing was said yet, gone an entry that was erased.
	fork, kid, solo core.SessionID
	gone            string
	host, sent      []message.Message
}

func (w *faulted) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *faulted) ask(id core.SessionID, change ...func(*core.AssembleRequest)) error {
	req := core.AssembleRequest{Session: id, Budget: 300}
	for _, c := range change {
		c(&req)
	}
	res, err := w.engine.Assemble(w.t.Context(), req)
	w.sent = res.Messages
	return err
}

func (w *faulted) erase(text string) error {
	_, err := w.engine.Forget(w.t.Context(), engine.ForgetRequest{Scope: w.id.Scope(), Entries: []string{w.entry(text).ID}})
	return err
}

func newFaulted(t *testing.T, kind string) *faulted {
	t.Helper()
	w := &faulted{
		store: &faultyStore{struckViews: struckViews{&struckStore{Store: memory.New()}}}, late: &meanwhile{Compactor: retold{}}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		fork: core.SessionID{Agent: "main", Session: "fork"}, kid: core.SessionID{Agent: "kid", Session: "fork"}, solo: core.SessionID{Agent: "main", Session: "solo"},
	}
	w.fixture = newFixture(t, func(c *engine.Config, p *engine.Parts) {
		c.Failure, c.Recall.AcrossSessions = engine.FailStrict, true
		p.Retriever, p.Compactor, p.Host = &reading{}, w.late, toldTime{now: &w.now}
		switch p.Store = w.store; kind {
		case "views apart":
			p.Store, p.Views = viewsApart{w.store, w.store}, w.store
		case "alone":
			p.Store = alone{w.store, w.store}
		}
	})
	w.fixture.store = w.store.Store
	w.host = []message.Message{message.New(message.System, "rules")}
	for i := 5; i < 10; i++ {
		w.host = append(w.host, user(fmt.Sprint("question n", i, strings.Repeat(" word", 20))), assistant(fmt.Sprint("answer n", i, strings.Repeat(" word", 20))))
	}
	w.must(w.ask(w.id, transcript("", w.host...)))
	w.compact(200)
	_, err := w.engine.Arm(t.Context(), w.id, func(string) string { return "a" })
	w.must(err)
	w.must(w.engine.Score(t.Context(), engine.Outcome{Session: w.id, Name: "good", Value: 1}))
	w.gone = w.entry("question n8").ID
	w.must(w.erase("question n8"))
	for _, id := range []core.SessionID{w.fork, w.kid} {
		_, err := w.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: w.id, Child: id, Mode: core.SpawnFork, TTL: time.Hour})
		w.must(err)
		w.say(id, false, user("one more question"+strings.Repeat(" word", 20)), assistant("and an answer"+strings.Repeat(" word", 20)))
		w.must(w.ask(id))
		_, err = w.engine.Compact(t.Context(), core.CompactRequest{Session: id, Budget: 60, Force: true})
		w.must(err)
	}
	return w
}

// TestStoreFaultsAreReported: whichever call of a store fails in the course of a call of a strict engine, the caller is told of it.
func TestStoreFaultsAreReported(t *testing.T) {
	needs.NoRace(t)
	type call struct {
		before, op func(w *faulted) error
		cold       bool // only in a process that has nothing in memory
	}
	full := func(r *core.AssembleRequest) {
		r.PromptMode, r.Prompt = core.PromptFull, "What was said in question n6?"
	}
	meanwhile := func(do func(w *faulted) error) func(w *faulted) error {
		return func(w *faulted) error {
			w.late.do = func() { w.store.calmly(func() { w.must(do(w)) }) }
			return nil
		}
	}
	compact := func(w *faulted) error {
		_, err := w.engine.Compact(t.Context(), core.CompactRequest{Session: w.id, Budget: 100, Force: true})
		return err
	}
	calls := map[string]call{
		"assemble":        {op: func(w *faulted) error { return w.ask(w.id) }},
		"assemble a fork": {op: func(w *faulted) error { return w.ask(w.kid) }},
		"recall":          {op: func(w *faulted) error { return w.ask(w.id, full) }},
		"the grant of a fork is over": {op: func(w *faulted) error {
			w.now = w.now.Add(2 * time.Hour)
			return w.ask(w.kid)
		}},
		"a transcript with what was erased": {op: func(w *faulted) error { return w.ask(w.id, transcript("", append(w.host, user("next"))...)) }},
		"a transcript of merged messages": {op: func(w *faulted) error {
			merged := append(w.host[:len(w.host)-4:len(w.host)-4], user(w.host[len(w.host)-4].Text()), assistant(w.host[len(w.host)-3].Text()+"\n"+w.host[len(w.host)-1].Text()))
			return w.ask(w.id, transcript("", append(merged, user("next"))...))
		}},
		"handed back inside a turn": {cold: true, op: func(w *faulted) error {
			return w.ask(w.id, transcript("", append(slices.Clone(w.sent), assistant("more"))...), func(r *core.AssembleRequest) { r.Call = core.CallLoop })
		}, before: func(w *faulted) error { return w.ask(w.id, transcript("", w.host...)) }},
		"compact":                          {op: compact},
		"compact what is erased meanwhile": {op: compact, before: meanwhile(func(w *faulted) error { return w.erase("answer n8") })},
		"compact what is shortened and erased meanwhile": {op: compact, before: func(w *faulted) error {
			w.late.Compactor = stubber{"short"}
			return meanwhile(func(w *faulted) error { return w.erase("answer n8") })(w)
		}},
		"compact without a compactor's help": {op: compact, before: func(w *faulted) error {
			w.late.Compactor = &acting{do: func(context.Context, core.Compaction) (core.Patch, error) { return core.Patch{}, nil }}
			return nil
		}},
		"expand": {op: func(w *faulted) error {
			_, err := w.engine.Expand(t.Context(), engine.ExpandRequest{Session: w.id, ID: "3"})
			return err
		}},
		"expand a summary": {op: func(w *faulted) error {
			_, err := w.engine.Expand(t.Context(), engine.ExpandRequest{Session: w.id, ID: w.entry("word word").ID})
			return err
		}},
		"expand what is around": {op: func(w *faulted) error {
			_, err := w.engine.Expand(t.Context(), engine.ExpandRequest{Session: w.id, ID: w.entry("answer n7").ID, Before: 2, After: 2})
			return err
		}},
		"describe": {op: func(w *faulted) error {
			_, err := w.engine.Describe(t.Context(), engine.DescribeRequest{Session: w.id})
			return err
		}},
		"score": {op: func(w *faulted) error {
			return w.engine.Score(t.Context(), engine.Outcome{Session: w.id, Name: "good", Value: 2})
		}},
		"outcomes": {op: func(w *faulted) error {
			_, err := w.engine.Outcomes(t.Context(), w.id.Agent)
			return err
		}},
		"receipts": {op: func(w *faulted) error {
			_, err := w.engine.Receipts(t.Context(), w.id.Agent)
			return err
		}},
		"arm": {op: func(w *faulted) error {
			_, err := w.engine.Arm(t.Context(), w.id, func(string) string { return "b" })
			return err
		}},
		"forget one": {op: func(w *faulted) error { return w.erase("answer n9") }},
		"forget what comes again meanwhile": {op: func(w *faulted) error {
			w.store.first = func() { w.say(w.id, false, w.host[len(w.host)-1]) }
			return w.erase("answer n9")
		}},
		"forget what is compacted meanwhile": {op: func(w *faulted) error {
			w.store.first = func() { w.must(compact(w)) }
			return w.erase("answer n7")
		}},
		"forget what is compacted twice meanwhile": {op: func(w *faulted) error {
			w.store.first = func() {
				w.must(compact(w))
				w.say(w.id, false, user("more"+strings.Repeat(" word", 40)), assistant("and more"+strings.Repeat(" word", 40)))
				w.must(compact(w))
			}
			return w.erase("answer n7")
		}},
		"forget what was erased": {op: func(w *faulted) error {
			_, err := w.engine.Forget(t.Context(), engine.ForgetRequest{Scope: w.id.Scope(), Entries: []string{w.gone}})
			return err
		}},
		"forget what no view shows": {op: func(w *faulted) error {
			_, err := w.engine.Forget(t.Context(), engine.ForgetRequest{Scope: core.Scope{Agent: w.id.Agent}, Entries: []string{"unseen"}})
			return err
		}, before: func(w *faulted) error {
			m := user("nobody knows")
			_, err := w.store.Append(t.Context(), []core.Entry{{
				ID: "unseen", Key: "unseen", Agent: w.id.Agent, Session: "unseen", Role: m.Role, Type: core.TypeMessage, Message: m, Fingerprint: message.Fingerprint(m), Tokens: 5,
			}})
			return err
		}},
		"purge an agent": {op: func(w *faulted) error {
			_, err := w.engine.Forget(t.Context(), engine.ForgetRequest{Scope: core.Scope{Agent: w.id.Agent}, Purge: true})
			return err
		}},
		"compact what was asked once": {op: func(w *faulted) error {
			_, err := w.engine.Compact(t.Context(), core.CompactRequest{Session: w.solo, Budget: 100, Force: true})
			return err
		}, before: func(w *faulted) error {
			w.say(w.solo, false, user("do it"))
			for range 8 {
				w.say(w.solo, false, assistant("done"+strings.Repeat(" word", 20)))
			}
			w.must(w.ask(w.solo))
			return meanwhile(func(w *faulted) error {
				w.say(w.solo, false, assistant("one more"))
				return nil
			})(w)
		}},
		"a turn behind an erasure": {op: func(w *faulted) error {
			return w.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: w.id, Messages: append(slices.Clip(w.host), user("next"), assistant("done")), PrePrompt: len(w.host)})
		}, before: func(w *faulted) error { return w.erase("answer n9") }},
		"forget all": {op: func(w *faulted) error {
			_, err := w.engine.Forget(t.Context(), engine.ForgetRequest{Scope: core.Scope{Agent: w.id.Agent}})
			return err
		}},
		"purge": {op: func(w *faulted) error {
			_, err := w.engine.Forget(t.Context(), engine.ForgetRequest{Scope: w.id.Scope(), Purge: true})
			return err
		}},
	}
	for name, c := range calls {
		for _, as := range []struct {
			kind string
			cold bool
		}{{"views kept", false}, {"views kept", true}, {"views apart", true}, {"alone", false}} {
			for at := 1; ; at++ {
				w := newFaulted(t, as.kind)
				if c.before != nil {
					w.must(c.before(w))
				}
				if c.cold || as.cold {
					w.restart()
				}
				w.store.calls, w.store.at = 0, at
				err := c.op(w)
				if w.store.at = 0; w.store.what == "" {
					break
				}
				if !errors.Is(err, errStruck) {
					t.Errorf("%s, %+v: call %d (%s): error %v", name, as, at, w.store.what, err)
				}
			}
		}
	}
}
