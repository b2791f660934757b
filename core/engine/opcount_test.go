package engine_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/internal/needs"
)

// The tests of this file hold the engine to how much it does, not to how long that takes: how fast a machine is has no part in them.

// countedStore counts what the engine asks of a store.
type countedStore struct {
	*memory.Store
	appends, scans, gets, loads, swaps, tails, read atomic.Int64
}

func (s *countedStore) reset() {
	for _, n := range []*atomic.Int64{&s.appends, &s.scans, &s.gets, &s.loads, &s.swaps, &s.tails, &s.read} {
		n.Store(0)
	}
}

func (s *countedStore) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	s.appends.Add(1)
	return s.Store.Append(ctx, entries)
}

func (s *countedStore) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	s.gets.Add(1)
	s.read.Add(int64(len(ids)))
	return s.Store.Get(ctx, scope, ids)
}

func (s *countedStore) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	page, err := s.Store.Scan(ctx, q)
	s.scans.Add(1)
	s.read.Add(int64(len(page.Entries)))
	return page, err
}

func (s *countedStore) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	s.loads.Add(1)
	return s.Store.LoadView(ctx, id)
}

func (s *countedStore) SwapView(ctx context.Context, v core.View) error {
	s.swaps.Add(1)
	return s.Store.SwapView(ctx, v)
}

func (s *countedStore) Tail(ctx context.Context, id core.SessionID) (core.Tail, error) {
	s.tails.Add(1)
	return s.Store.Tail(ctx, id)
}

// opFixture is an engine whose work is counted.
type opFixture struct {
	*testing.T
	store  *countedStore
	engine *engine.Engine
	id     core.SessionID
	// counted is how many bytes the counter was given, calls how often.
	counted, calls atomic.Int64
	said           int
}

const opBudget = 4000

func newOpFixture(t *testing.T, messages int) *opFixture {
	t.Helper()
	f := &opFixture{T: t, store: &countedStore{Store: memory.New()}, id: core.SessionID{Agent: "ada", Session: "long"}}
	f.restart()
	for f.said < messages {
		batch := make([]message.Message, min(500, messages-f.said))
		for i := range batch {
			batch[i] = f.next()
		}
		if _, err := f.engine.IngestBatch(t.Context(), core.IngestBatchRequest{Session: f.id, Messages: batch}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// next makes a message of 41 words.
func (f *opFixture) next() message.Message {
	role := message.User
	if f.said%2 == 1 {
		role = message.Assistant
	}
	f.said++
	m := message.New(role, fmt.Sprintf("message %d %s", f.said, strings.Repeat("word ", 39)))
	m.Time = time.Date(2026, 1, 1, 0, 0, f.said, 0, time.UTC)
	return m
}

// restart makes a new engine over the same store.
func (f *opFixture) restart() {
	f.Helper()
	count := func(text string) int {
		f.calls.Add(1)
		f.counted.Add(int64(len(text)))
		return wordCounter(text)
	}
	var err error
	if f.engine, err = engine.New(engine.Parts{Store: f.store, Compactor: &halver{}, Counter: count}, engine.DefaultConfig()); err != nil {
		f.Fatal(err)
	}
}

func (f *opFixture) assemble() core.AssembleResult {
	f.Helper()
	res, err := f.engine.Assemble(f.Context(), core.AssembleRequest{Session: f.id, Budget: opBudget})
	if err != nil {
		f.Fatal(err)
	}
	return res
}

func (f *opFixture) reset() {
	f.store.reset()
	f.counted.Store(0)
	f.calls.Store(0)
}

// TestWarmAssembleReadsNothing: what the window shows is in memory, and what it costs is known.
func TestWarmAssembleReadsNothing(t *testing.T) {
	for _, n := range []int{20, 2000, 20_000} {
		f := newOpFixture(t, n)
		f.assemble()
		addition := int64(len(engine.SystemPromptAddition) + 100)
		for range 3 {
			f.reset()
			f.assemble()
			if s := f.store; s.scans.Load()+s.gets.Load()+s.loads.Load()+s.swaps.Load()+s.appends.Load() != 0 {
				t.Errorf("%d messages: a warm assemble made %d scans, %d gets, %d loads and %d swaps of views, want none",
					n, s.scans.Load(), s.gets.Load(), s.loads.Load(), s.swaps.Load())
			}
			if got := f.store.tails.Load(); got != 1 {
				t.Errorf("%d messages: a warm assemble asked %d times what others did, want once", n, got)
			}
			if got := f.counted.Load(); got > addition {
				t.Errorf("%d messages: a warm assemble counted the tokens of %d bytes, want at most the %d of the addition and a note", n, got, addition)
			}
		}
	}
}

// TestColdAssembleReadsTheWindow: how much a cold session reads depends on the window, not on the history.
func TestColdAssembleReadsTheWindow(t *testing.T) {
	read := map[int]int64{}
	for _, n := range []int{2000, 20_000} {
		f := newOpFixture(t, n)
		res := f.assemble()
		f.restart()
		f.reset()
		f.assemble()
		s := f.store
		read[n] = s.read.Load()
		// The window itself, and pages that were read to find where it begins.
		if limit := int64(2*len(res.Messages) + 2*200); s.read.Load() > limit || s.gets.Load()+s.scans.Load() > 12 {
			t.Errorf("%d messages: a cold assemble read %d entries in %d scans and %d gets, want at most %d in 12", n, s.read.Load(), s.scans.Load(),
				s.gets.Load(), limit)
		}
		if got := s.loads.Load(); got != 1 {
			t.Errorf("%d messages: the view was loaded %d times, want once", n, got)
		}
		if got, want := f.counted.Load(), int64(len(engine.SystemPromptAddition)+1000); got > want {
			t.Errorf("%d messages: a cold assemble counted the tokens of %d bytes, want at most %d: what entries cost is stored with them", n, got, want)
		}
	}
	if read[20_000] > read[2000]+200 {
		t.Errorf("a cold assemble read %d entries of 20,000, and %d of 2,000", read[20_000], read[2000])
	}
}

// TestNewMessagesAreNotReadAgain: as long as no more than 512 messages came since a window was shown, the next one is made of what is in memory. Of more than that it
// is sought from the end in the store.
func TestNewMessagesAreNotReadAgain(t *testing.T) {
	for came, reads := range map[int]bool{512: false, 513: true} {
		f := newOpFixture(t, 500)
		f.assemble()
		batch := make([]message.Message, came)
		for i := range batch {
			batch[i] = f.next()
		}
		if _, err := f.engine.IngestBatch(t.Context(), core.IngestBatchRequest{Session: f.id, Messages: batch}); err != nil {
			t.Fatal(err)
		}
		f.reset()
		f.assemble()
		if n := f.store.scans.Load() + f.store.gets.Load(); (n > 0) != reads {
			t.Errorf("%d messages came: %d scans and gets, want any: %t", came, n, reads)
		}
	}
}

// TestIngestCountsOnce: a message's tokens are counted once, when it comes, and it is one append and one view however long the history is.
func TestIngestCountsOnce(t *testing.T) {
	for _, n := range []int{20, 20_000} {
		f := newOpFixture(t, n)
		f.assemble()
		for _, size := range []int{1, 3} {
			batch, bytes := make([]message.Message, size), 0
			for i := range batch {
				batch[i] = f.next()
				bytes += len(batch[i].Text())
			}
			f.reset()
			if _, err := f.engine.IngestBatch(t.Context(), core.IngestBatchRequest{Session: f.id, Messages: batch}); err != nil {
				t.Fatal(err)
			}
			s := f.store
			if f.counted.Load() != int64(bytes) || f.calls.Load() != int64(size) {
				t.Errorf("%d messages: ingesting %d counted %d bytes in %d calls, want %d in %d", n, size, f.counted.Load(), f.calls.Load(), bytes, size)
			}
			if got := s.tails.Load(); got != 1 {
				t.Errorf("%d messages: ingesting %d asked %d times what others did, want once", n, size, got)
			}
			if s.appends.Load() != 1 || s.swaps.Load() != 1 || s.scans.Load()+s.gets.Load()+s.loads.Load() != 0 {
				t.Errorf("%d messages: ingesting %d made %d appends, %d swaps and %d loads of views, %d scans and %d gets, want one append and one swap",
					n, size, s.appends.Load(), s.swaps.Load(), s.loads.Load(), s.scans.Load(), s.gets.Load())
			}
		}
		f.reset()
		f.assemble()
		if got, want := f.counted.Load(), int64(len(engine.SystemPromptAddition)+1000); got > want {
			t.Errorf("%d messages: the assemble after that counted the tokens of %d bytes, want at most %d", n, got, want)
		}
		if s := f.store; s.scans.Load()+s.gets.Load() != 0 {
			t.Errorf("%d messages: the assemble after that made %d scans and %d gets, want none", n, s.scans.Load(), s.gets.Load())
		}
	}
}

// TestWarmAssembleAllocations: they depend on neither window nor history. It must not run beside other tests.
func TestWarmAssembleAllocations(t *testing.T) {
	needs.NoRace(t) // it empties pools at random
	allocations := map[int]float64{}
	for _, n := range []int{2000, 20_000} {
		f := newOpFixture(t, n)
		res := f.assemble()
		allocations[n] = testing.AllocsPerRun(20, func() { f.assemble() })
		// Measured: 15.
		if allocations[n] > maxAllocations {
			t.Errorf("%d messages: %.0f allocations for a window of %d messages, want at most %d", n, allocations[n], len(res.Messages), maxAllocations)
		}
		t.Logf("%d messages: %.0f allocations for a window of %d", n, allocations[n], len(res.Messages))
	}
	if small, large := allocations[2000], allocations[20_000]; large > small+10 {
		t.Errorf("a warm assemble makes %.0f allocations over 20,000 messages, and %.0f over 2,000", large, small)
	}
}

// maxAllocations is how many allocations a warm assemble may make.
const maxAllocations = 40

// TestWarmAssembleAllocatesItsResult: little more than what it returns. It must not run beside other tests.
func TestWarmAssembleAllocatesItsResult(t *testing.T) {
	needs.NoRace(t) // it empties pools at random
	f := newOpFixture(t, 3000)
	assemble := func() core.AssembleResult {
		res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 20 * opBudget})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := assemble()
	returned := uint64(len(res.Messages))*uint64(unsafe.Sizeof(message.Message{})) + uint64(len(res.Choices))*uint64(unsafe.Sizeof(window.Choice{}))
	for i := range res.Messages {
		m := &res.Messages[i]
		returned += uint64(len(m.Parts))*uint64(unsafe.Sizeof(message.Part{})) + uint64(len(m.Raw))
	}
	least := uint64(math.MaxUint64)
	for range 10 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		assemble()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	// Measured: 1.1 times as much.
	if limit := returned * 5 / 4; least > limit {
		t.Errorf("a warm assemble of %d messages allocated %d bytes, want at most %d: what it returns takes %d", len(res.Messages), least, limit, returned)
	}
	t.Logf("%d messages: %d bytes allocated, %d returned", len(res.Messages), least, returned)
}

// TestTakingTurnsReadsWhatIsNew: engines that serve one session by turns read what the other one stored, however long the session is, also after something was
// erased from it; what the other one erases stays erased.
func TestTakingTurnsReadsWhatIsNew(t *testing.T) {
	const turns = 20
	f := newOpFixture(t, 1000)
	here := f.engine
	f.restart()
	there := f.engine
	ingest := func(e *engine.Engine, m message.Message) core.IngestResult {
		t.Helper()
		res, err := e.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: m})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	forget := func(e *engine.Engine, res core.IngestResult) {
		t.Helper()
		if _, err := e.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: res.IDs}); err != nil {
			t.Fatal(err)
		}
	}
	forget(here, ingest(here, message.New(message.User, "the first to be erased")))
	for _, e := range []*engine.Engine{here, there} {
		ingest(e, f.next())
	}
	f.reset()
	for range turns {
		ingest(here, f.next())
		ingest(there, f.next())
	}
	if n := f.store.read.Load(); n > 4*turns {
		t.Errorf("%d entries are read to take %d turns", n, 2*turns)
	}
	second := message.New(message.User, "the second to be erased")
	said := ingest(here, second)
	ingest(there, f.next())
	forget(here, said)
	again := ingest(there, second)
	got, err := f.store.Get(t.Context(), f.id.Scope(), again.IDs)
	if err != nil || got[0].Type != core.TypeErased {
		t.Errorf("what the other engine erased comes again: %+v, %v", got, err)
	}
}

// TestRecallReadsWhatItQuotes: what a retriever proposes is read once, when the block is made, and only what is quoted of it.
func TestRecallReadsWhatItQuotes(t *testing.T) {
	store, p := &countedStore{Store: memory.New()}, &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
		c.Recall.Share, parts.Store, parts.Retriever = 0.2, store, p
	})
	f.store = store.Store
	for i := range 100 {
		f.ingest(user(fmt.Sprintf("message %d %s", i, strings.Repeat("word ", 20))))
	}
	f.assemble(1000, full)
	f.everything(p, f.id.Agent)
	f.ingest(assistant("noted"), user("which was it?"))
	for turn := range 2 {
		store.reset()
		res := f.assemble(1000, full)
		if quoted := strings.Count(res.Messages[res.RecallAt].Text(), "> message"); turn == 0 && (quoted == 0 || store.gets.Load() != 1 || store.read.Load() != int64(quoted)) {
			t.Errorf("%d quotations, %d entries read in %d gets, want each once in one", quoted, store.read.Load(), store.gets.Load())
		}
		if turn > 0 && store.gets.Load() != 0 {
			t.Errorf("%d gets for a block that stays", store.gets.Load())
		}
	}
}

// TestShorteningStoresNoEntry: a compaction that only shortens what is shown changes the view, once, and stores nothing beside it.
func TestShorteningStoresNoEntry(t *testing.T) {
	store := &countedStore{Store: memory.New()}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Compactor = store, shortenAll{} })
	words := strings.Repeat(" word", 50)
	f.ingest(user("one"+words), assistant("two"+words), user("three"), assistant("four"))
	store.reset()
	if res := f.compact(1000); !res.Compacted {
		t.Fatalf("Compact = %+v", res)
	}
	if store.appends.Load() != 0 || store.swaps.Load() != 1 {
		t.Errorf("%d appends and %d swaps of views, want one swap alone", store.appends.Load(), store.swaps.Load())
	}
}

// TestTakingTurnsWithoutViews: where a store keeps no views, too, an engine that comes to a session reads it once, and after that what the other one stored
// alone.
func TestTakingTurnsWithoutViews(t *testing.T) {
	const said, turns = 1000, 20
	store, inner := newRemote(), &countedStore{Store: memory.New()}
	store.viewless = viewless{inner}
	share := func(_ *engine.Config, p *engine.Parts) { p.Store = store }
	here, there := newFixture(t, share), newFixture(t, share)
	batch := make([]message.Message, said)
	for i := range batch {
		batch[i] = user(fmt.Sprint("message ", i))
	}
	here.ingest(batch...)
	inner.reset()
	there.ingest(user("hello"))
	if n := inner.read.Load(); n > said*3/2 {
		t.Errorf("%d entries are read to come to a session of %d", n, said)
	}
	here.ingest(user("hello"))
	inner.reset()
	for i := range turns {
		here.ingest(user(fmt.Sprint("here ", i)))
		there.ingest(user(fmt.Sprint("there ", i)))
	}
	if n := inner.read.Load(); n > 6*turns {
		t.Errorf("%d entries are read to take %d turns", n, 2*turns)
	}
}

// TestForkReadsItsParentOnce: a fork in a store that keeps no views does not read all of its parent to find out whether it changed since the fork was made.
func TestForkReadsItsParentOnce(t *testing.T) {
	const said = 2000
	store, inner := newRemote(), &countedStore{Store: memory.New()}
	store.viewless = viewless{inner}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
	batch := make([]message.Message, said)
	for i := range batch {
		batch[i] = user(fmt.Sprint("message ", i))
	}
	f.ingest(batch...)
	child := core.SessionID{Agent: "helper", Session: "child"}
	grandchild := core.SessionID{Agent: "other", Session: "grandchild"}
	for _, pair := range [][2]core.SessionID{{f.id, child}, {child, grandchild}} {
		inner.reset()
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: pair[0], Child: pair[1], Mode: core.SpawnFork}); err != nil {
			t.Fatal(err)
		}
		f.say(pair[1], false, user("task"))
		f.assemble(200, func(r *core.AssembleRequest) { r.Session = pair[1] })
		if n := inner.read.Load(); n > said/2 {
			t.Errorf("%s: %d entries are read of a parent of %d", pair[1], n, said)
		}
	}
}
