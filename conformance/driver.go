package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
)

// driver plays one session against an engine and against a model of what must hold.
type driver struct {
	tb      testing.TB
	watch   *watch
	comb    Combination
	plan    plan
	checks  map[string]Check
	env     Env
	engine  core.ContextEngine
	store   core.Store
	author  author
	tracks  [4]*track
	owner   map[string]*track
	items   int
	childs  int
	closing []string
	tokens  *tokenCache
	// costs are what messages cost, by their bytes: every prompt asks for all of them.
	costs map[string]int
	// entries are those that were read of the store, by id.
	entries map[string]known
	// troubled says that something went wrong so far: a fault, a cancelled call, a model that is not honest.
	troubled bool

	// pending says what goes wrong in the next operation of the engine.
	pendingFault faultPlace
	// over says that the session ends with this step, of which nothing more is judged, see recover.
	over          bool
	pendingCount  int
	pendingCancel bool

	// tolerated findings do not stop the session.
	tolerated map[string]bool
	failed    string
	failure   string
	seen      map[string]string

	// erased are the marks of messages that were erased, forked those that a subagent may have a copy of, system those of system messages.
	erased, forked, system map[string]bool
	// copies are, by agent, the marks that stand in the transcripts of its forks, and in how many.
	copies map[string]map[string]int

	outputs  hash.Hash64
	parallel bool
}

// callLimit bounds every call of an engine. Only a call that hangs comes near it.
const callLimit = 60 * time.Second

// hangLimit is what a compaction or a recall may take where the model hangs: it takes all of it.
const hangLimit = 2 * time.Second

func newDriver(tb testing.TB, comb Combination, p plan, checks map[string]Check, tokens *tokenCache, tolerated map[string]bool) *driver {
	tb.Helper()
	model := &Model{}
	d := &driver{
		tb: tb, comb: comb, plan: p, checks: checks, owner: map[string]*track{}, tokens: tokens, costs: map[string]int{},
		tolerated: tolerated, seen: map[string]string{}, erased: map[string]bool{}, forked: map[string]bool{}, system: map[string]bool{}, copies: map[string]map[string]int{},
		outputs: fnv.New64a(),
	}
	d.author = author{p.Format, &d.items}
	d.troubled = p.hangs() // what takes long may be cut short there, before the model hangs too
	d.env = Env{Host: NewHost(model), Model: model, Count: tokens.count, IDs: newIDs(), Deadline: p.deadline(), faults: &faults{sparse: p.Sparse}}
	for who := range 3 {
		d.tracks[who] = newTrack(sessionOf(who))
	}
	d.env.Host.onCompact = d.hostCompacts
	d.reopen(false)
	return d
}

// reopen makes the engine, anew when there was one. Over a store without views the first goes on: a restart forgets resets, forks and compactions there, as documented.
func (d *driver) reopen(again bool) {
	if again {
		if !d.restarts() {
			return
		}
		if d.comb.Reopen != nil {
			d.store = d.comb.Reopen(d.tb, d.store)
		}
		d.env.Store = d.store
	}
	d.engine, d.store = d.comb.Open(d.tb, d.env)
	if d.store == nil {
		d.tb.Fatalf("conformance: combination %q opens no store", d.comb.Name)
	}
}

// fail records a broken rule. Rules that are not claimed or whose needs are not met are left out of checks and pass.
func (d *driver) fail(id, format string, args ...any) {
	if _, ok := d.checks[id]; !ok || d.over {
		return
	}
	text := fmt.Sprintf(format, args...)
	if _, ok := d.seen[id]; !ok {
		d.seen[id] = text
	}
	if d.failed == "" && !d.tolerated[id] {
		d.failed, d.failure = id, text
	}
}

// fundamental are the families of rules, those first whose breach explains others.
var fundamental = []string{"lost", "isolation", "erase", "twice", "idempotent", "pairs", "order", "roles", "head", "budget", "compact", "back", "hidden", "recall", "cache"}

// settle makes the most fundamental of the rules that broke in one step the one that is reported.
func (d *driver) settle() {
	rank := func(id string) int {
		return slices.Index(fundamental, d.checks[id].Family()) // those that are not listed, such as failures, come first
	}
	for _, id := range slices.Sorted(maps.Keys(d.seen)) {
		if d.failed != "" && !d.tolerated[id] && rank(id) < rank(d.failed) {
			d.failed, d.failure = id, d.seen[id]
		}
	}
}

// play runs the session and returns the id of the rule that broke, if any, and what was seen.
func (d *driver) play() (string, string) {
	d.watch.patient(2 * hangLimit) // a model that hangs takes that long
	for i, o := range d.plan.Ops {
		d.env.Host.advance(time.Second)
		d.step(o)
		if d.settle(); d.failed != "" {
			d.dispose()
			return d.failed, fmt.Sprintf("step %d (%s): %s", i+1, o, d.failure)
		}
		if d.over {
			d.dispose()
			return "", ""
		}
	}
	d.env.Model.Set(Honest)
	d.final()
	d.dispose()
	if d.settle(); d.failed != "" {
		return d.failed, "at the end: " + d.failure
	}
	return "", ""
}

// dispose ends the engine. It is not called after a panic: the engine may wait for what will never end.
func (d *driver) dispose() {
	e, ok := d.engine.(core.Disposer)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.tb.Context()), callLimit)
	defer cancel()
	if err := e.Dispose(ctx); err != nil {
		d.fail("failure.hangs", "dispose: error %v, no call was under way", err)
	}
}

// step plays one op.
func (d *driver) step(o op) {
	t := d.track(o.Who)
	switch o.Kind {
	case opUser:
		d.user(t, o)
	case opAnswer:
		d.answer(t, o)
	case opTool:
		d.tool(t, o)
	case opLate:
		d.late(t, o)
	case opRepeat:
		d.repeat(t, o)
	case opHeartbeat:
		d.heartbeat(t, o)
	case opEnd:
		d.endTurn(t, o, true)
	case opFail:
		d.endTurn(t, o, false)
	case opAssemble:
		d.assemble(t, o)
	case opCompact:
		d.compact(t, o)
	case opMaintain:
		d.maintain(t, o)
	case opSpawn:
		d.spawn(t, o)
	case opEnded:
		d.ended(o)
	case opReset, opFork:
		d.rewind(t, o)
	case opRestart:
		d.restart(o.N%2 == 0)
	case opStoreFault:
		d.pendingFault, d.pendingCount = faultPlace(1+o.N%int(faultPlaces-1)), 1+o.N%3
	case opCancel:
		d.pendingCancel = true
	case opModel:
		mood := Mood(o.N % int(Hanging))
		if o.N == hanging {
			mood = Hanging
		}
		d.env.Model.Set(mood)
		d.troubled = d.troubled || mood != Honest
	case opWait:
		d.env.Host.advance([]time.Duration{time.Minute, time.Hour, 30 * time.Hour}[o.N%3])
	case opParallel:
		d.together(o)
	case opForget:
		d.forget(t, o)
	}
}

func (d *driver) track(who int) *track {
	if t := d.tracks[who%len(d.tracks)]; t != nil {
		return t
	}
	return d.tracks[0]
}

// call runs one operation of the engine under the faults that are pending, and reports whether its failure is excused by them.
func (d *driver) call(name string, keyed bool, f func(ctx context.Context) error) (excused bool, err error) {
	ctx, cancel := context.WithTimeout(d.watch.calling(d.tb.Context()), callLimit)
	defer cancel()
	before := d.pendingCancel
	place, count := d.pendingFault, d.pendingCount
	d.pendingCancel, d.pendingFault = false, faultNone
	d.troubled = d.troubled || before || place != faultNone
	if !keyed && (place == faultAck || place == faultSwap || place == faultCancel) {
		// Without a key of its own nobody can tell the repeated message from a new one.
		place = faultAppend
	}
	if before {
		cancel()
	} else if place != faultNone {
		d.env.faults.cancel = cancel
		d.env.faults.arm(place, count)
	}
	err = f(ctx)
	hits := d.env.faults.disarm()
	if err != nil {
		if len(marksIn(err.Error())) > 0 {
			d.fail("failure.quotes", "the error of %s holds what a message says: %v", name, err)
		}
	}
	d.watch.tally.did(name, 1)
	d.saw("failure.spurious", "failure.hangs", "failure.quotes")
	if before {
		d.saw("cancel.stops")
	} else if place != faultNone {
		d.watch.tally.struck(place.String(), hits)
	}
	switch {
	case before && err == nil && name == "maintain":
		// Doing nothing is stopping.
	case before && err == nil:
		d.fail("cancel.stops", "%s with a cancelled context succeeds", name)
	case before && !errors.Is(err, context.Canceled):
		d.fail("cancel.stops", "%s with a cancelled context: error %v, want context.Canceled", name, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		d.fail("failure.hangs", "%s did not return within %s", name, callLimit)
	}
	if hits > 0 && (place == faultScan || place == faultCancel) {
		d.parallel = true // parts read at the same time: which of their calls is struck depends on timing
	}
	if before || hits > 0 {
		d.recover()
		for _, t := range d.tracks {
			if t != nil && t.prev != nil && t.prev.shaky {
				t.prev = nil // what the store did not take is gone with the next failure
			}
		}
	}
	return before || hits > 0, err
}

// recover replaces an engine that has quarantined itself. Where nothing may be restarted the session ends there.
func (d *driver) recover() {
	for _, p := range d.engine.Info().Health {
		if p.Quarantined {
			d.over = !d.restarts()
			d.restart(false)
			return
		}
	}
}

// saw notes that a rule has something to look at.
func (d *driver) saw(ids ...string) {
	for _, id := range ids {
		if _, ok := d.checks[id]; ok {
			d.watch.tally.saw(id, 1)
		}
	}
}

// spurious reports an error that nothing excuses.
func (d *driver) spurious(name string, excused bool, err error) {
	if err != nil && !excused {
		d.fail("failure.spurious", "%s: error %v, nothing was wrong with the call", name, err)
	}
}

// restarts reports whether what an engine keeps outlasts it.
func (d *driver) restarts() bool {
	if _, ok := core.As[core.ViewStore](d.store); ok {
		return true
	}
	d.watch.tally.without(NeedViewStore, "restarts")
	return false
}

func (d *driver) restart(polite bool) {
	if !d.restarts() {
		return
	}
	if polite {
		d.dispose()
	}
	d.reopen(true)
	for _, t := range d.tracks {
		if t != nil && t.prev != nil && t.prev.shaky {
			// The window is shaped anew where no view was kept.
			t.prev = nil
		}
		if t != nil {
			t.turn++
		}
	}
}

// tokenCache counts texts once.
type tokenCache struct {
	raw core.TokenCounter
	mu  sync.Mutex
	m   map[string]int
}

func newTokenCache(raw core.TokenCounter) *tokenCache {
	return &tokenCache{raw: raw, m: map[string]int{}}
}

// cacheTexts bounds the cache.
const cacheTexts = 50000

func (c *tokenCache) count(s string) int {
	c.mu.Lock()
	n, ok := c.m[s]
	c.mu.Unlock()
	if ok {
		return n
	}
	n = c.raw(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= cacheTexts {
		clear(c.m)
	}
	c.m[s] = n
	return n
}
