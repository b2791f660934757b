package conformance

import (
	"cmp"
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leanovate/gopter"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/core/vector"
)

// TestStore holds a store to the contracts of core.Store and of the companions core.As finds in it. open returns an empty
// store, another one each time, and registers its clean-up with tb; it is called for every generated case, twice where the folders beside two stores, or the marks of their feeds, are compared.
func TestStore(t *testing.T, open func(tb testing.TB) core.Store, opts ...Option) {
	t.Helper()
	o := resolve(t, fewer(25), opts)
	t.Logf("conformance seed %d", o.seed)
	defer func() { o.close(t, t.Failed()) }()
	have := storeHas(t, open, o)
	for _, c := range storeSuite() {
		t.Run(c.ID, func(t *testing.T) {
			runCheck(t, c, have, o, func() (Finding, bool) { return examineStore(t, c, open, o) })
		})
	}
}

// ExamineStore is TestStore for tools: it returns what it finds instead of failing a test.
func ExamineStore(tb testing.TB, open func(tb testing.TB) core.Store, opts ...Option) []Finding {
	tb.Helper()
	o := resolve(tb, fewer(25), opts)
	have := storeHas(tb, open, o)
	var out []Finding
	for _, c := range storeSuite() {
		if len(missing(c, have)) > 0 || o.claims != nil && !matches(c, o.claims) {
			continue
		}
		if f, found := examineStore(tb, c, open, o); found {
			out = append(out, f)
			if o.first {
				break
			}
		}
	}
	return out
}

func storeSuite() []Check {
	return slices.Concat(storeChecks(), oddChecks(), movingChecks(), wholeChecks(), typeChecks(), companionChecks(), feedChecks(), helperChecks(), sharedChecks(), longChecks(), searchChecks(), viewChecks(), sequenceChecks())
}

// storeHas says what a store offers beyond core.Store.
func storeHas(tb testing.TB, open func(testing.TB) core.Store, o options) map[Need]bool {
	tb.Helper()
	c := &caseTB{TB: tb}
	defer c.end()
	s := open(c)
	_, search := core.As[core.Searcher](s)
	_, view := core.As[core.ViewStore](s)
	_, tail := core.As[core.Tailer](s)
	_, feed := core.As[core.ChangeFeed](s)
	_, vectors := core.As[vector.Store](s)
	_, stats := core.As[upkeep.Statter](s)
	return map[Need]bool{
		NeedChangeFeed: feed, NeedVectorStore: vectors, NeedStatter: stats, NeedSearcher: search, NeedViewStore: view, NeedNoViews: !view, NeedTailer: tail,
		NeedVectorSearcher: vectors && offers[vector.Searcher](s), NeedBeside: offers[core.Beside](s), NeedScrubber: offers[upkeep.Scrubber](s),
		NeedSessionEraser: offers[core.SessionEraser](s), NeedRecogniser: offers[core.Recogniser](s), NeedDrainer: offers[upkeep.Drainer](s),
		NeedLateSearcher: search && offers[core.LateSearcher](s), NeedRepairer: offers[upkeep.Repairer](s), NeedReopen: o.reopen != nil, NeedAnother: o.another != nil, NeedMedia: o.media != nil,
	}
}

// offers reports whether a store has a companion.
func offers[T any](s core.Store) bool {
	_, ok := core.As[T](s)
	return ok
}

// runCheck runs one check in its own subtest and holds it against what the implementation claims.
func runCheck(t *testing.T, c Check, have map[Need]bool, o options, examine func() (Finding, bool)) {
	t.Helper()
	if m := missing(c, have); len(m) > 0 {
		o.watch.tally.left(c, m)
		t.Skipf("not run: needs %v", m)
	}
	if o.claims != nil && !matches(c, o.claims) {
		o.watch.tally.left(c, nil)
		t.Skip("not run: not claimed")
	}
	f, found := examine()
	link, known := o.known[c.ID]
	switch {
	case known && found:
		t.Skipf("known to fail, see %s:\n%s", link, f)
	case known:
		t.Errorf("%s passes now: remove Known(%q, %q)", c.ID, c.ID, link)
	case found:
		report(t, f)
	}
}

func examineStore(tb testing.TB, c Check, open func(testing.TB) core.Store, o options) (Finding, bool) {
	tb.Helper()
	defer o.watch.tally.during(c, o.watch)()
	seed, cases := seedFor(o.seed, c.ID), o.cases
	if c.dear && !o.exact {
		cases = max(cases/5, 1)
	}
	if c.once {
		cases = 1
	}
	w := watched{watch: o.watch}
	text, steps, found := forAll(seed, cases, o.shrink && !c.plain, genBatches, batchShrinker(), func(steps []batch) string {
		tb := &caseTB{TB: tb}
		defer w.finish(tb)
		return w.run(tb, func() string {
			r := &storeRun{tb: tb, watch: w.watch, open: open, store: open(tb), steps: steps, bound: o.bound, reopen: o.reopen, another: o.another, media: o.media}
			return c.store(r)
		})
	})
	if !found {
		return Finding{}, false
	}
	text = cmp.Or(w.hung, text)
	lines := make([]string, len(steps))
	for i, s := range steps {
		lines[i] = s.String()
	}
	return Finding{Check: c, Text: text, Case: strings.Join(lines, "\n"), Seed: o.seed}, true
}

// batch is one generated append: plain data, legal after every other batch.
type batch struct {
	Entries []entrySpec
}

func (b batch) String() string {
	parts := make([]string, len(b.Entries))
	for i, e := range b.Entries {
		parts[i] = e.String()
	}
	return "append [" + strings.Join(parts, ", ") + "]"
}

func genBatches(r *rand.Rand) []batch {
	out := make([]batch, 1+r.Intn(6))
	for i := range out {
		out[i].Entries = make([]entrySpec, 1+r.Intn(4))
		for j := range out[i].Entries {
			out[i].Entries[j] = genEntry(r)
		}
	}
	return out
}

func batchShrinker() gopter.Shrinker {
	return sliceShrinker(func(b batch) []batch {
		var out []batch
		for i := range b.Entries {
			out = append(out, batch{Entries: slices.Delete(slices.Clone(b.Entries), i, i+1)})
		}
		for i, e := range b.Entries {
			if plain := (entrySpec{Who: e.Who}); plain != e {
				smaller := slices.Clone(b.Entries)
				smaller[i] = plain
				out = append(out, batch{Entries: smaller})
			}
		}
		return out
	})
}

// storeRun is one case of one check.
type storeRun struct {
	tb     testing.TB
	watch  *watch
	open   func(testing.TB) core.Store
	store  core.Store
	steps  []batch
	bound  time.Duration
	reopen func(testing.TB, core.Store) core.Store
	// another opens the data once more, see WithAnother.
	another func(testing.TB, core.Store) core.Store
	// media is where the store writes, see WithMedia.
	media func(testing.TB, core.Store) string
	// entries holds what was stored, by session, in order.
	entries map[core.SessionID][]core.Entry
	all     []core.Entry
	next    map[core.SessionID]int64
	made    int
	// gentle leaves alone what the feed returned: one that gives out again what it gave out before shows only there.
	gentle bool
	// untimely says that the oldest and the newest entry need not stand at the end of a session, where alone a store may look for them.
	untimely bool
}

// ctx is the context of the next call.
func (r *storeRun) ctx() context.Context { return r.watch.calling(r.tb.Context()) }

// fill appends all steps and remembers what must be there now.
func (r *storeRun) fill() string {
	for _, b := range r.steps {
		batch := r.make(b)
		if len(batch) == 0 {
			continue
		}
		if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); err != nil {
			return fmt.Sprintf("Append of %d valid entries: error %v, want none", len(batch), err)
		}
		r.remember(batch)
	}
	return ""
}

// make completes the entries of a batch: ids, keys and positions.
func (r *storeRun) make(b batch) []core.Entry {
	if r.next == nil {
		r.next = map[core.SessionID]int64{}
	}
	out := make([]core.Entry, 0, len(b.Entries))
	for _, spec := range b.Entries {
		id := spec.session()
		out = append(out, spec.entry(r.made, r.next[id]))
		r.next[id]++
		r.made++
	}
	return out
}

func (r *storeRun) remember(batch []core.Entry) {
	if r.entries == nil {
		r.entries = map[core.SessionID][]core.Entry{}
	}
	for _, e := range batch {
		r.entries[e.SessionID()] = append(r.entries[e.SessionID()], e)
		r.all = append(r.all, e)
	}
}

// settled repeats f until it holds or the bound of an eventually consistent store has passed.
func (r *storeRun) settled(f func() string) string {
	deadline := time.Now().Add(r.bound)
	for pause := 5 * time.Millisecond; ; pause *= 2 {
		text := f()
		if text == "" || !time.Now().Before(deadline) {
			return text
		}
		time.Sleep(min(pause, 500*time.Millisecond))
	}
}

// scan returns a scope's entries by pages of limit.
func (r *storeRun) scan(q core.ScanQuery) ([]core.Entry, string) {
	var out []core.Entry
	for range 10 + 4*len(r.all) {
		page, err := r.store.Scan(r.ctx(), q)
		if err != nil {
			return nil, fmt.Sprintf("Scan(%+v): error %v, want none", q, err)
		}
		if len(page.Entries) > q.Limit {
			return nil, fmt.Sprintf("Scan(%+v) returned %d entries, more than its limit", q, len(page.Entries))
		}
		out = append(out, page.Entries...)
		if page.Next == "" {
			return out, ""
		}
		q.Cursor = page.Next
	}
	return nil, fmt.Sprintf("Scan(%+v) does not end: Next is never empty", q)
}
