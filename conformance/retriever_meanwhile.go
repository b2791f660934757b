package conformance

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func meanwhileChecks() []Check {
	return []Check{
		{ID: "retrieve.meanwhile", Promise: 2, Suite: SuiteRetriever, retriever: retrieveMeanwhile, once: true, Needs: []Need{NeedAttacher, NeedObserver},
			Rule: "word that comes while a retriever reads the store for the first time is not lost: what was erased then does not come back, what was changed is as it is now, and what was added is found"},
	}
}

// heldPages is a store whose pages are short, and of which one is read and not handed over before it is let.
type heldPages struct {
	core.Store
	most int
	// at is the number of the page that is held, counted from 0.
	at   int64
	read atomic.Int64
	held chan struct{}
	let  chan struct{}
	once sync.Once
}

func newHeldPages(s core.Store, most int, at int64) *heldPages {
	return &heldPages{Store: s, most: most, at: at, held: make(chan struct{}), let: make(chan struct{})}
}

// release hands the page over; it may be called again.
func (s *heldPages) release() { s.once.Do(func() { close(s.let) }) }

// Scan implements core.Store.
func (s *heldPages) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	q.Limit = min(q.Limit, s.most)
	page, err := s.Store.Scan(ctx, q)
	if s.read.Add(1)-1 != s.at {
		return page, err
	}
	close(s.held)
	select {
	case <-s.let:
		return page, err
	case <-ctx.Done():
		return core.Page{}, fmt.Errorf("conformance: held page: %w", ctx.Err())
	}
}

// hears is how long a page is held for a retriever that takes in no word while it reads.
const hears = 60 * time.Millisecond

// retrieveMeanwhile holds the first reading of a store at a page, changes what that holds and what comes before and behind it, and tells of it.
func retrieveMeanwhile(r *retrieverRun) string {
	for _, t := range []struct {
		at       int64
		wide, up bool
	}{{at: 0, wide: true}, {at: 2, wide: true}, {at: 0}, {at: 1, wide: true, up: true}} {
		r.steps = []batch{ordinary(24)}
		if text := r.meanwhile(t.at, t.wide, t.up); text != "" {
			what := ""
			if t.up {
				what = ", and that reading was given up"
			}
			return fmt.Sprintf("told while page %d of the first reading was under way%s: %s", t.at+1, what, text)
		}
	}
	return ""
}

// meanwhile asks one that has read nothing yet, in one session or in all of its agent's; up says that its caller gives up while the page is held.
func (r *retrieverRun) meanwhile(at int64, wide, up bool) string {
	all := r.make(ordinary(24))
	if _, err := r.store.Append(r.ctx(), cloneEntries(all)); err != nil {
		return fmt.Sprintf("Append of %d valid entries: error %v, want none", len(all), err)
	}
	r.remember(all)
	store := newHeldPages(r.store, 4, at)
	defer store.release()
	asked, text := r.attached(store)
	if text != "" {
		return text
	}
	ctx, cancel := cancellable(r.ctx())
	defer cancel()
	q := r.query(0, queries[0])
	if wide {
		q.Scope.Session = ""
	}
	answered := make(chan string, 1)
	go func() {
		answered <- guard(func() string {
			if _, err := asked.Retrieve(ctx, q); err != nil && !up {
				return fmt.Sprintf("Retrieve while it is told: error %v, want none", err)
			}
			return ""
		})
	}()
	select {
	case <-store.held:
	case text := <-answered: // it has read fewer pages
		return text
	}
	told := make(chan string, 1)
	var changed []core.Entry
	changes, text := r.changeAll(all)
	if text != "" {
		return text
	}
	for _, c := range changes {
		changed = append(changed, c.was)
	}
	o, _ := asked.(core.Observer)
	go func() { told <- guard(func() string { return r.tellAll(o, changes) }) }()
	if up {
		cancel()
	}
	select {
	case text = <-told:
		told <- text
	case <-time.After(hears):
	}
	store.release()
	if text := inTurn(func() string { return <-told }, func() string { return <-answered }); text != "" {
		return text
	}
	anew, text := r.attached(r.store)
	if text != "" {
		return text
	}
	return r.by(anew, func() string {
		const what = "that was told while it read"
		return inTurn(func() string { return r.like(asked, what) }, func() string { return r.likeMarks(asked, what, changed) })
	})
}

// change is what became of an entry: now is nil where it was erased.
type change struct {
	was core.Entry
	now *core.Entry
	// again says that it was erased, and that its id was used again.
	again bool
}

// changeAll erases, changes, empties and stores again entries of one batch, each in turn, and adds some.
func (r *retrieverRun) changeAll(all []core.Entry) ([]change, string) {
	var out []change
	for i, e := range all {
		scope := e.SessionID().Scope()
		said := message.New(e.Role, fmt.Sprintf("%s the budget report moved again to friday", markOf(9, r.made+i)))
		c := change{was: e}
		switch i / 3 % 4 {
		case 0, 3:
			if _, err := r.store.Delete(r.ctx(), scope, []string{e.ID}); err != nil {
				return nil, fmt.Sprintf("Delete(%q): error %v, want none", e.ID, err)
			}
			if c.again = i/3%4 == 3; c.again {
				again := cloneEntries([]core.Entry{e})[0]
				again.Message, again.Fingerprint = said, message.Fingerprint(said)
				if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{again})); err != nil {
					return nil, fmt.Sprintf("Append of %q, which was erased: error %v, want none", e.ID, err)
				}
				c.now = &again
			}
		default:
			change := core.Change{Message: &said, Tokens: 14, Fingerprint: message.Fingerprint(said)}
			if i/3%4 == 2 {
				empty := message.New(e.Role, "")
				change = core.Change{Message: &empty, Fingerprint: "x" + e.ID, Type: core.TypeErased, Key: "x:" + e.ID}
			}
			if err := r.store.Update(r.ctx(), scope, e.ID, change); err != nil {
				return nil, fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
			}
			got, err := r.store.Get(r.ctx(), scope, []string{e.ID})
			if err != nil {
				return nil, fmt.Sprintf("Get(%q): error %v, want none", e.ID, err)
			}
			c.now = &got[0]
		}
		out = append(out, c)
	}
	for _, e := range r.make(ordinary(3)) {
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return nil, fmt.Sprintf("Append of %q: error %v, want none", e.ID, err)
		}
		out = append(out, change{was: e, now: &e, again: true})
	}
	return out, ""
}

// tellAll tells of changes, in their order.
func (r *retrieverRun) tellAll(o core.Observer, changes []change) string {
	for n, c := range changes {
		scope := c.was.SessionID().Scope()
		if n%2 == 0 {
			scope.Session = ""
		}
		var err error
		if c.now == nil || c.again {
			err = o.Deleted(r.ctx(), scope, []string{c.was.ID})
		}
		switch {
		case err != nil || c.now == nil:
		case c.again:
			err = o.Appended(r.ctx(), cloneEntries([]core.Entry{*c.now}))
		default:
			err = o.Updated(r.ctx(), c.now.Clone())
		}
		if err != nil {
			return fmt.Sprintf("told what became of %q: error %v, want none", c.was.ID, err)
		}
	}
	return ""
}

// cancelBeside ends the time of a query while another call, which has time, reads the store or waits for a searcher.
func (r *retrieverRun) cancelBeside() string {
	second, _ := r.open(r.tb)
	if a, ok := second.(core.Attacher); ok {
		store := newHeldPages(r.store, core.MaxPage, 0)
		defer store.release()
		if err := a.Attach(store); err != nil {
			return fmt.Sprintf("Attach: error %v, want none", err)
		}
		if text := r.goesBeside(second, store.held, store.release); text != "" {
			return "while another call reads the store: " + text
		}
	}
	if r.over == nil {
		return ""
	}
	held := &heldSearcher{troubled: troubled{store: r.store}, held: make(chan struct{}), let: make(chan struct{})}
	release := sync.OnceFunc(func() { close(held.let) })
	defer release()
	if text := r.goesBeside(r.over(r.tb, map[string]core.Searcher{"held": held}), held.held, release); text != "" {
		return "while another call waits for a searcher: " + text
	}
	return ""
}

// heldSearcher holds the first who asks it.
type heldSearcher struct {
	troubled
	asked     atomic.Bool
	held, let chan struct{}
}

func (s *heldSearcher) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if !s.asked.Swap(true) {
		close(s.held)
		select {
		case <-s.let:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.troubled.Search(ctx, q)
}

// besideLate is how long a call may take whose context has ended, beside one that is held.
const besideLate = 2 * time.Second

// goesBeside asks once, and while that is held once more in each scope, with a context that ends.
func (r *retrieverRun) goesBeside(retriever core.Retriever, held <-chan struct{}, release func()) string {
	first := make(chan struct{})
	go func() {
		defer close(first)
		_ = guard(func() string { _, _ = retriever.Retrieve(r.ctx(), r.query(0, queries[0])); return "" })
	}()
	defer func() { release(); <-first }()
	select {
	case <-held:
	case <-first:
		return ""
	}
	for who := range 3 {
		ctx, cancel := cancellable(r.ctx())
		second := make(chan struct{})
		go func() {
			defer close(second)
			_ = guard(func() string { _, _ = retriever.Retrieve(ctx, r.query(who, queries[0])); return "" })
		}()
		select {
		case <-second:
		case <-time.After(time.Millisecond): // it waits
		}
		cancel()
		if !back(second, besideLate) {
			r.watch.late.Store(true) // each smaller case would wait as long
			return fmt.Sprintf("Retrieve in %+v has not returned %s after its context ended", r.query(who, "").Scope, besideLate)
		}
	}
	return ""
}

// back reports whether a call is back in time. What the machine itself takes away is not counted: a ticker drops what nobody fetches.
func back(done <-chan struct{}, in time.Duration) bool {
	const tick = 10 * time.Millisecond
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for left := in; left > 0; left -= tick {
		select {
		case <-done:
			return true
		case <-ticks.C:
		}
	}
	return false
}
