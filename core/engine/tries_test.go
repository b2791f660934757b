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

// paused is a store that others use while it works: each function is called once, at its place, and may set itself anew.
type paused struct {
	*memory.Store
	// emptied is called when an entry was emptied, appending and appended around the next append to a conversation, swapping before the next view is stored.
	emptied, appending, appended, swapping func()
	// read counts the entries that scans answered with.
	read int
}

// once calls a function that is set, which is not set meanwhile.
func once(f *func()) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
}

func (s *paused) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	err := s.Store.Update(ctx, scope, id, c)
	if c.Type == core.TypeErased {
		once(&s.emptied)
	}
	return err
}

func (s *paused) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if core.Reserved(entries[0].Session) {
		return s.Store.Append(ctx, entries)
	}
	once(&s.appending)
	res, err := s.Store.Append(ctx, entries)
	once(&s.appended)
	return res, err
}

func (s *paused) SwapView(ctx context.Context, v core.View) error {
	once(&s.swapping)
	return s.Store.SwapView(ctx, v)
}

func (s *paused) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	page, err := s.Store.Scan(ctx, q)
	s.read += len(page.Entries)
	return page, err
}

// pausedStores are ways in which a store keeps views: it does, it does not but tells what others did, and neither.
var pausedStores = map[string]func(*paused) core.Store{
	"views":    func(s *paused) core.Store { return s },
	"no views": func(s *paused) core.Store { return &remote{viewless: viewless{s}, changes: make(map[string]uint64)} },
	"alone":    func(s *paused) core.Store { return viewless{s} },
}

// pausedFixture is a fixture over such a store, with a second engine over it.
func pausedFixture(t *testing.T, kind string) (f, other *fixture, store *paused) {
	t.Helper()
	store = &paused{Store: memory.New()}
	f = newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = pausedStores[kind](store) })
	f.store = store.Store
	return f, f.second(), store
}

// ownID is a message with a host's id that is to be erased.
func ownID(n int) message.Message {
	m := user(fmt.Sprintf("my code is %s of %d", secret, n))
	m.ID = fmt.Sprint("h", n)
	return m
}

// TestErasedBeforeItIsPublished: a call whose message another process erases when it is stored and not yet published ends, answers with what it stored, and stores
// nothing twice, also while others keep writing.
func TestErasedBeforeItIsPublished(t *testing.T) {
	id := ownID(1)
	plain := user("my code is " + secret)
	batch := func(m message.Message, call string) func(context.Context, *fixture) ([]string, error) {
		return func(ctx context.Context, f *fixture) ([]string, error) {
			res, err := f.engine.IngestBatch(ctx, core.IngestBatchRequest{Session: f.id, Messages: []message.Message{m, assistant("noted")}, IdempotencyKey: call})
			if err == nil && (res.Ingested != 2 || res.Duplicates != 0) {
				err = fmt.Errorf("it says %+v", res)
			}
			return res.IDs, err
		}
	}
	for name, call := range map[string]func(context.Context, *fixture) ([]string, error){
		"ingested":               batch(plain, ""),
		"ingested with an id":    batch(id, ""),
		"by the key of the call": batch(plain, "call"),
		"committed": func(ctx context.Context, f *fixture) ([]string, error) {
			res, err := f.engine.CommitTurn(ctx, core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: []message.Message{plain, assistant("noted")}})
			if err == nil && res.Status != core.Committed {
				err = errors.New(string(res.Status))
			}
			return res.IDs, err
		},
		"after a turn": func(ctx context.Context, f *fixture) ([]string, error) {
			return nil, f.engine.AfterTurn(ctx, core.AfterTurnRequest{Session: f.id, Messages: []message.Message{plain, assistant("noted")}})
		},
		"a transcript": func(ctx context.Context, f *fixture) ([]string, error) {
			_, err := f.engine.Bootstrap(ctx, core.BootstrapRequest{
				Session: f.id, Transcript: &core.Transcript{Messages: []message.Message{user("hello"), plain, assistant("noted")}},
			})
			return nil, err
		},
		"a subagent": func(ctx context.Context, f *fixture) ([]string, error) {
			f.ingest(assistant("noted"))
			child := core.SessionID{Agent: f.id.Agent, Session: "child"}
			return nil, f.engine.OnSubagentEnded(ctx, core.SubagentEnded{Parent: f.id, Child: child, Result: plain.Text()})
		},
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/others write %v", name, busy), func(t *testing.T) {
				f, other, store := pausedFixture(t, "views")
				f.ingest(user("hello"))
				n := 0
				var others func()
				others = func() {
					if n++; n < 60 {
						other.ingest(user(fmt.Sprintf("theirs %d", n)))
						store.appended = others
					}
				}
				erase := func() {
					other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
					if busy {
						store.appended = others
					}
				}
				if store.appended = erase; name == "a subagent" {
					store.appended = func() { store.appended = erase } // the first is before it
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				ids, err := call(ctx, f)
				if err != nil {
					t.Fatal(err)
				}
				if ids != nil {
					if _, err := f.store.Get(t.Context(), f.id.Scope(), ids); err != nil || len(ids) != 2 {
						t.Errorf("it names %q: %v", ids, err)
					}
				}
				texts := make(map[string]int)
				for _, entry := range entriesOf(f) {
					texts[entry.Text()]++
				}
				if got := f.traces(); got != nil || texts["noted"] != 1 || texts["hello"] != 1 {
					t.Errorf("it is stored in %q; of the others %v", got, texts)
				}
				for range 2 {
					for _, g := range []*fixture{f, other} {
						if got := shown(g.assemble(100_000)); strings.Contains(got, secret) || strings.Count(got, "noted") != 1 {
							t.Errorf("shown: %q", got)
						}
					}
					f.restart()
				}
			})
		}
	}
}
