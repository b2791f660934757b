package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// struckViews is where an engine keeps views whose store keeps none.
type struckViews struct{ *struckStore }

func (s struckViews) DeleteView(ctx context.Context, id core.SessionID) error {
	return s.strike("delete view", func() error { return s.Store.DeleteView(ctx, id) })
}

// occupied is a store that others use while it works, and which may not say what it holds.
type occupied struct {
	core.Store
	// appending is called once, before the next append to a conversation.
	appending func()
	blind     bool
}

func (s *occupied) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if !core.Reserved(entries[0].Session) {
		once(&s.appending)
	}
	return s.Store.Append(ctx, entries)
}

func (s *occupied) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	got, err := s.Store.Get(ctx, scope, ids)
	if err == nil && s.blind {
		return nil, errors.Join(core.ErrNotFound, errors.ErrUnsupported)
	}
	return got, err
}

// reading is a retriever that reads the store.
type reading struct{ common }

func (*reading) ReadsStore() bool { return true }

// struckFixture is a fixture whose store may fail, with another process over the same store.
type struckFixture struct {
	*fixture
	other  *fixture
	store  *struckStore
	busy   *occupied
	remote *remote
	now    time.Time
	// making is called while a summary is made.
	making func()
}

// struckKinds are ways in which a store keeps views: it does; it does not, and says what others did, where the views are in another place, or in memory alone; or it is opened
// by one process at a time.
var struckKinds = []string{"views", "aside", "no views", "alone"}

func newStruck(t *testing.T, kind string) *struckFixture {
	t.Helper()
	f := &struckFixture{store: &struckStore{Store: memory.New()}, now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), making: func() {}}
	f.busy = &occupied{Store: f.store}
	f.remote = &remote{viewless: viewless{f.busy}, changes: make(map[string]uint64)}
	f.fixture = newFixture(t, func(c *engine.Config, p *engine.Parts) {
		c.Failure, c.Recall.AcrossSessions, c.Recall.ResetMessages = engine.FailStrict, true, 2
		p.Retriever, p.Compactor, p.Host = &common{}, keeper{&f.making}, toldTime{now: &f.now}
		switch kind {
		case "views":
			p.Store = struckViews{f.store}
		case "alone":
			p.Store = alone{f.store, struckViews{f.store}}
		case "aside":
			p.Store, p.Views = f.remote, struckViews{f.store}
		default:
			p.Store = f.remote
		}
	})
	f.fixture.store = f.store.Store
	f.other = f.second()
	return f
}

// quietly does something that does not fail, and is not counted.
func (f *struckFixture) quietly(do func()) func() {
	return func() {
		calls, at := f.store.calls, f.store.at
		f.store.at = 0
		do()
		f.store.calls, f.store.at = calls, at
	}
}

// with has another retriever propose what is recalled.
func (f *struckFixture) with(r core.Retriever) {
	f.parts.Retriever = r
	f.restart()
}

// occasion is something that an engine is asked, when a session has come to a certain point.
type occasion struct {
	before func(f *struckFixture)
	ask    func(f *struckFixture) error
}

// TestWhatFailedIsSaid: a strict engine answers with the error of whichever call of the store fails, the first or the last that an answer takes, as the process that knows the
// session and as one that opens it. It goes on without none of them.
func TestWhatFailedIsSaid(t *testing.T) {
	for name, o := range occasions(t) {
		t.Run(name, func(t *testing.T) {
			struck := false
			for _, kind := range struckKinds {
				for _, opens := range []bool{false, true} {
					for at := 1; ; at++ {
						f := newStruck(t, kind)
						o.before(f)
						if opens {
							f.restart()
						}
						f.store.calls, f.store.at = 0, at
						err := o.ask(f)
						if f.store.what == "" {
							if err != nil {
								t.Errorf("%s, opens %t, without a fault: %v", kind, opens, err)
							}
							break
						}
						struck = true
						if !errors.Is(err, errStruck) {
							t.Errorf("%s, opens %t, call %d (%s): error %v, want that of the store", kind, opens, at, f.store.what, err)
						}
					}
				}
			}
			if !struck {
				t.Error("the store is not asked anything")
			}
		})
	}
}

// occasions are the calls of an engine, at points of a session at which much is read or written.
func occasions(t *testing.T) map[string]occasion {
	t.Helper()
	child, third := core.SessionID{Agent: "main", Session: "child"}, core.SessionID{Agent: "other", Session: "third"}
	keyed := func(m message.Message, key string) message.Message { m.Key = key; return m }
	talked := one(user("where is the zebra"), calling("c1"), resulting("c1", "in the oven"), assistant("in the oven"), user("my code is "+secret), assistant("noted"))
	says := func(f *struckFixture) { f.ingest(talked...) }
	shows := func(f *struckFixture) { f.assemble(1000, transcript("", talked...)) }
	then := func(all ...func(f *struckFixture)) func(f *struckFixture) {
		return func(f *struckFixture) {
			for _, do := range all {
				do(f)
			}
		}
	}
	assembles := func(change ...func(*core.AssembleRequest)) func(f *struckFixture) error {
		return func(f *struckFixture) error {
			req := core.AssembleRequest{Session: f.id, Budget: 1000}
			for _, c := range change {
				c(&req)
			}
			return second(f.engine.Assemble(t.Context(), req))
		}
	}
	reads := func(list ...message.Message) func(f *struckFixture) error {
		return assembles(func(r *core.AssembleRequest) { r.Transcript = &core.Transcript{Messages: list, Whole: true} })
	}
	asks := func(r *core.AssembleRequest) {
		r.Prompt, r.PromptMode = "where is the zebra, and what code was noted", core.PromptFull
	}
	ingests := func(list ...message.Message) func(f *struckFixture) error {
		return func(f *struckFixture) error {
			return second(f.engine.IngestBatch(t.Context(), core.IngestBatchRequest{Session: f.id, Messages: list}))
		}
	}
	window := func(f *struckFixture) { f.assemble(1000) }
	forgets := func(f *fixture) {
		f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	}
	purges := func(f *fixture) { f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Reason: "all of it"}) }
	own := func(do func(f *fixture)) func(f *struckFixture) { return func(f *struckFixture) { do(f.fixture) } }
	others := func(do func(f *fixture)) func(f *struckFixture) { return func(f *struckFixture) { do(f.other) } }
	spawns := func(mode core.SpawnMode, id core.SessionID) func(f *struckFixture) error {
		return func(f *struckFixture) error {
			return second(f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: id, Mode: mode, TTL: time.Hour}))
		}
	}
	spawned := func(mode core.SpawnMode, id core.SessionID) func(f *struckFixture) {
		return func(f *struckFixture) {
			if err := spawns(mode, id)(f); err != nil {
				t.Fatal(err)
			}
			f.say(id, false, user("look for it"), assistant("it is in the oven"))
		}
	}
	within := func(id core.SessionID) func(f *struckFixture) { return func(f *struckFixture) { f.id = id } }
	compacts := func(f *struckFixture) error {
		return second(f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 1000, Force: true}))
	}
	compacted := func(f *struckFixture) {
		if err := compacts(f); err != nil {
			t.Fatal(err)
		}
	}
	ends := func(f *struckFixture) error {
		return f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: child, Reason: "completed"})
	}
	inLoop := func(list ...message.Message) func(f *struckFixture) error {
		return assembles(func(r *core.AssembleRequest) { r.Call, r.Transcript = core.CallLoop, &core.Transcript{Messages: list} })
	}
	later := func(f *struckFixture) { f.now = f.now.Add(2 * time.Hour) }
	id := ownID(1)
	return map[string]occasion{
		"a window": {says, assembles()},
		"bootstrap": {says, func(f *struckFixture) error {
			return second(f.engine.Bootstrap(t.Context(), core.BootstrapRequest{Session: f.id}))
		}},
		"a transcript":        {shows, reads(append(talked[:6:6], user("more"))...)},
		"rewound":             {shows, reads(talked[0], user("another way"))},
		"moved":               {shows, reads(talked[4], talked[0], user("another way"))},
		"in the midst":        {shows, reads(append(one(talked[0], user("meanwhile")), talked[1:]...)...)},
		"in front":            {shows, reads(append(one(user("first of all"), assistant("yes")), talked...)...)},
		"a head":              {shows, reads(append(one(system("be brief")), talked...)...)},
		"joined":              {func(f *struckFixture) { f.assemble(1000, transcript("", user("one"), user("two"), assistant("three"))) }, reads(user("one\n\ntwo"), assistant("three"), user("four"))},
		"joined, of a parent": {then(func(f *struckFixture) { f.ingest(user("one"), user("two"), assistant("three")) }, spawned(core.SpawnFork, child), within(child)), reads(user("one\n\ntwo"), assistant("three"), user("four"))},
		"another head": {func(f *struckFixture) {
			f.assemble(1000, transcript("", append(one(system("be brief")), talked...)...))
		}, reads(append(one(system("be long")), talked...)...)},
		"with erased":         {then(shows, own(forgets)), reads(append(talked[:6:6], user("my code is "+secret))...)},
		"said, then erased":   {then(shows, own(forgets)), reads(append(one(user("other")), talked...)...)},
		"erased comes again":  {then(says, own(forgets)), ingests(user("my code is " + secret))},
		"erased, with its id": {then(func(f *struckFixture) { f.ingest(id, assistant("noted")) }, own(forgets)), ingests(id)},
		"a reset":             {then(shows, func(f *struckFixture) { f.assemble(1000, transcript("", user("begin"))) }), assembles(asks)},
		"a compacted reset":   {then(shows, compacted, func(f *struckFixture) { f.assemble(1000, transcript("", user("begin"))) }), assembles(asks)},
		"reworded": {func(f *struckFixture) {
			f.assemble(1000, transcript("", keyed(user("one"), "k1"), keyed(assistant("two"), "k2")))
		}, reads(keyed(user("one"), "k1"), keyed(assistant("other than two"), "k2"))},
		"reworded, erased": {then(func(f *struckFixture) {
			f.assemble(1000, transcript("", keyed(user("my code is "+secret), "k1"), keyed(assistant("two"), "k2")))
		}, own(forgets)), reads(keyed(user("other"), "k1"), keyed(assistant("other than two"), "k2"))},
		"recalled":            {then(says, compacted, func(f *struckFixture) { f.ingest(user("so"), assistant("yes")) }), assembles(asks)},
		"recalled, erased":    {then(says, own(forgets), compacted, func(f *struckFixture) { f.with(&reading{}) }), assembles(asks)},
		"recalled elsewhere":  {then(says, within(child), func(f *struckFixture) { f.ingest(user("so"), assistant("yes")); f.with(&reading{}) }), assembles(asks)},
		"recalled unseen":     {then(says, compacted, func(f *struckFixture) { f.busy.blind = true }), assembles(asks)},
		"a further call":      {func(f *struckFixture) { f.assemble(1000, transcript("", talked[0])) }, inLoop(talked[:3]...)},
		"other list, further": {then(shows, window), inLoop(user("another way"), talked[5])},
		"a further, others'":  {then(shows, window, others(func(f *fixture) { f.ingest(user("more")) })), inLoop(append(talked[:6:6], user("other"))...)},
		"goes on with erased": {then(shows, own(forgets), window), inLoop(append(talked[:4:4], talked[4], talked[5], user("more"))...)},
		"others erased":       {then(says, window, others(forgets)), assembles()},
		"others erased an id": {then(func(f *struckFixture) { f.ingest(user("hi"), id, assistant("noted")) }, others(forgets)), assembles()},
		"erased while stored": {then(func(f *struckFixture) {
			f.ingest(user("hi"), id, assistant("noted"))
			f.busy.appending = f.quietly(func() { forgets(f.other) })
			f.ingest(id)
		}), assembles()},
		"others purged":       {then(says, window, others(purges)), assembles()},
		"others purged an id": {then(func(f *struckFixture) { f.ingest(user("hi"), id, assistant("noted")) }, others(purges)), assembles()},
		"purged, said anew":   {then(says, window, others(purges), others(func(f *fixture) { f.ingest(user("anew")) })), assembles()},
		"of a parent, erased": {then(says, spawned(core.SpawnFork, child), others(forgets), within(child)), assembles()},
		"others compacted":    {then(says, window, others(func(f *fixture) { f.compact(1000) })), assembles()},
		"compacted, erased": {then(says, func(f *struckFixture) {
			f.making = f.quietly(func() { f.making = func() {}; forgets(f.other) })
			_ = compacts(f)
		}), assembles()},
		"of a fork, erased": {then(says, spawned(core.SpawnFork, child), func(f *struckFixture) {
			was := f.id
			f.id = child
			f.making = f.quietly(func() { f.making = func() {}; f.other.id = was; forgets(f.other) })
			_ = compacts(f)
		}), assembles()},
		"others wrote": {then(says, window, others(func(f *fixture) { f.ingest(user("more")) })), ingests(user("and more"))},
		"commit": {shows, func(f *struckFixture) error {
			return second(f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: one(talked[5], user("more"))}))
		}},
		"commit, erased": {then(shows, own(forgets)), func(f *struckFixture) error {
			return second(f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: append(talked[4:6:6], user("more"))}))
		}},
		"after turn": {shows, func(f *struckFixture) error {
			return f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: append(talked[:6:6], user("more")), PrePrompt: 5})
		}},
		"fork":            {says, spawns(core.SpawnFork, child)},
		"isolated":        {says, spawns(core.SpawnIsolated, child)},
		"another agent's": {says, spawns(core.SpawnFork, third)},
		"of a fork":       {then(says, spawned(core.SpawnFork, child), within(child)), spawns(core.SpawnFork, third)},
		"rollback": {says, func(f *struckFixture) error {
			sp, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child})
			if err != nil {
				return err
			}
			return sp.Rollback(t.Context())
		}},
		"a child ended": {then(says, spawned(core.SpawnIsolated, child)), ends},
		"a fork ended":  {then(says, spawned(core.SpawnFork, child)), ends},
		"a grant ended": {then(says, spawned(core.SpawnFork, child), later, func(f *struckFixture) {
			f.id = child
			f.assemble(1000)
			f.id = core.SessionID{Agent: "main", Session: "s1"}
		}), ends},
		"a grant is over": {then(says, spawned(core.SpawnFork, child), later, within(child)), assembles()},
		"over, and searched": {then(says, spawned(core.SpawnFork, child), later, within(child)), func(f *struckFixture) error {
			return second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "the zebra"}))
		}},
		"search": {says, func(f *struckFixture) error {
			return second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "the zebra"}))
		}},
		"search, a name": {says, func(f *struckFixture) error {
			return second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: secret}))
		}},
		"expand": {says, func(f *struckFixture) error {
			return second(f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: "3", Before: 1, After: 1}))
		}},
		"describe": {says, func(f *struckFixture) error {
			return second(f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id}))
		}},
		"mend": {says, func(f *struckFixture) error { return second(f.engine.Mend(t.Context(), f.id)) }},
		"maintain": {says, func(f *struckFixture) error {
			return second(f.engine.Maintain(t.Context(), core.MaintainRequest{Session: f.id}))
		}},
		"compact": {says, compacts},
	}
}
