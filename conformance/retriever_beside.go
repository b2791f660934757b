package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
)

// heldPages is a store whose pages are short, and of which one reading is done and not handed over before it is let.
type heldPages struct {
	core.Store
	most int
	mu   sync.Mutex
	// before is how many readings come before the one that is held; below 0 none is.
	before    int
	held, let chan struct{}
}

func newHeldPages(s core.Store, most int) *heldPages {
	return &heldPages{Store: s, most: most, before: -1}
}

// atEnd stands for as many readings as come before the last page.
const atEnd = 1 << 30

// hold lets the reading wait that comes after some others. release hands it over; it may be called again, and where nobody waits nobody will.
func (s *heldPages) hold(before int) (held <-chan struct{}, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	let := make(chan struct{})
	s.before, s.held, s.let = before, make(chan struct{}), let
	return s.held, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.before = -1
		close(let)
	})
}

// wait holds what was read; last says that no page comes behind it.
func (s *heldPages) wait(ctx context.Context, last bool) error {
	s.mu.Lock()
	held, let := s.held, s.let
	waits := s.before == 0 || s.before > atEnd/2 && last
	if s.before--; waits || s.before < 0 {
		s.before = -1
	}
	s.mu.Unlock()
	if !waits {
		return nil
	}
	close(held)
	select {
	case <-let:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("conformance: held page: %w", ctx.Err())
	}
}

// Get implements core.Store.
func (s *heldPages) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	got, err := s.Store.Get(ctx, scope, ids)
	if failed := s.wait(ctx, false); failed != nil {
		return nil, failed
	}
	return got, err
}

// Scan implements core.Store.
func (s *heldPages) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	q.Limit = min(q.Limit, s.most)
	page, err := s.Store.Scan(ctx, q)
	if failed := s.wait(ctx, page.Next == ""); failed != nil {
		return core.Page{}, failed
	}
	return page, err
}

// cancelBeside ends the time of a query while another call, which has time, reads the store or waits for a searcher.
func (r *retrieverRun) cancelBeside() string {
	if text := r.cancelReading(); text != "" || r.over == nil {
		return text
	}
	held := &heldSearcher{troubled: troubled{store: r.store}, held: make(chan struct{}), let: make(chan struct{})}
	release := sync.OnceFunc(func() { close(held.let) })
	defer release()
	if text := r.goesBeside(r.over(r.tb, map[string]core.Searcher{"held": held}), held.held, release); text != "" {
		return "while another call waits for a searcher: " + text
	}
	return ""
}

// cancelReading holds the first reading of the store, and the one that word of each kind of change makes necessary, if any.
func (r *retrieverRun) cancelReading() string {
	second, _ := r.open(r.tb)
	a, ok := second.(core.Attacher)
	if !ok {
		return ""
	}
	own := r.make(batch{Entries: make([]entrySpec, kinds)})
	if _, err := r.store.Append(r.ctx(), cloneEntries(own)); err != nil {
		return fmt.Sprintf("Append of %d valid entries: error %v, want none", len(own), err)
	}
	store := newHeldPages(r.store, core.MaxPage)
	if err := a.Attach(store); err != nil {
		return fmt.Sprintf("Attach: error %v, want none", err)
	}
	held, release := store.hold(0)
	if text := r.goesBeside(second, held, release); text != "" {
		return "while another call reads the store: " + text
	}
	o, ok := second.(core.Observer)
	if !ok {
		return ""
	}
	for k := range kinds {
		changes, text := r.changeAll(own[k:k+1], k)
		if text == "" {
			text = r.tellAll(o, changes)
		}
		if text != "" {
			return text
		}
		held, release := store.hold(0)
		if text := r.goesBeside(second, held, release); text != "" {
			return fmt.Sprintf("while another call reads the store, the first since word came that something was %s: %s", k, text)
		}
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
		_ = guard(func() string { _, _ = r.retrieve(r.ctx(), retriever, r.query(0, queries[0])); return "" })
	}()
	defer func() { release(); <-first }()
	select {
	case <-held:
	case <-first:
		return ""
	}
	for who := range 3 {
		text := r.comesBack(fmt.Sprintf("Retrieve in %+v", r.query(who, "").Scope), func(ctx context.Context) error {
			_, _ = r.retrieve(ctx, retriever, r.query(who, queries[0]))
			return nil
		})
		if text != "" {
			return text
		}
	}
	if o, ok := retriever.(core.Observer); ok {
		return r.tellsBeside(o)
	}
	return ""
}

// tellsBeside tells of an entry that comes, changes and goes, each time with a context that ends: whoever is told may wait until then for its turn.
func (r *retrieverRun) tellsBeside(o core.Observer) string {
	own := r.make(ordinary(1))
	if text := r.tell(own); text != "" {
		return text
	}
	text := r.comesBack("Appended", func(ctx context.Context) error { return o.Appended(ctx, cloneEntries(own)) })
	if text != "" {
		return text
	}
	c, text := r.changeOne(own[0], rewritten, markOf(9, r.made))
	if text == "" {
		text = r.comesBack("Updated", func(ctx context.Context) error { return o.Updated(ctx, c.now.Clone()) })
	}
	if text != "" {
		return text
	}
	if _, text = r.changeOne(own[0], deleted, ""); text != "" {
		return text
	}
	return r.comesBack("Deleted", func(ctx context.Context) error {
		return o.Deleted(ctx, own[0].SessionID().Scope(), []string{own[0].ID})
	})
}

// comesBack makes a call whose context ends once it waits, and looks whether it comes back then, with no error or the context's.
func (r *retrieverRun) comesBack(what string, call func(ctx context.Context) error) string {
	ctx, cancel := cancellable(r.ctx())
	defer cancel()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = guard(func() string { err = call(ctx); return "" })
	}()
	select {
	case <-done:
	case <-time.After(time.Millisecond): // it waits
	}
	cancel()
	if !back(done, besideLate) {
		r.watch.late.Store(true) // each smaller case would wait as long
		return fmt.Sprintf("%s has not returned %s after its context ended", what, besideLate)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("%s whose context has ended: error %v, want none or context.Canceled", what, err)
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
