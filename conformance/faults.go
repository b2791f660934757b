package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// faultPlace says which store calls a fault concerns.
type faultPlace int

const (
	faultNone faultPlace = iota
	faultAppend
	// faultAck stores the entries and then reports a failure, as a lost acknowledgement does.
	faultAck
	faultScan
	faultSwap
	// faultCancel ends the caller's context and lets the call go on.
	faultCancel
	faultPlaces
	// faultUpdate and faultDelete are armed by scripts.
	faultUpdate
	faultDelete
	// faultDown lets every call fail. It is armed by scripts.
	faultDown
)

func (p faultPlace) String() string {
	return [...]string{"none", "append", "ack", "scan", "swap", "cancel", "", "update", "delete", "every call"}[p%(faultDown+1)]
}

// errBroken is what a store says that is broken.
var errBroken = errors.New("injected: the store is broken")

// faults are shared by all stores of one case. At most one is armed at a time.
type faults struct {
	mu    sync.Mutex
	place faultPlace
	left  int
	hits  int
	// skip is how many calls succeed first.
	skip int
	// broken says that the error is none of core's: what fails so does not mend itself.
	broken bool
	cancel context.CancelFunc
	// sparse stores answer a scan with a page that holds nothing, and then with pages of half as much.
	sparse bool
	// held is the session whose appends wait; reached is closed when one does, released when they go on.
	held              core.SessionID
	reached, released chan struct{}
}

// hold lets the appends of a session wait until it is released.
func (f *faults) hold(id core.SessionID) (reached <-chan struct{}, release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, released := make(chan struct{}), make(chan struct{})
	f.held, f.reached, f.released = id, r, released
	return r, sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.held = core.SessionID{}
		close(released)
	})
}

// wait returns when the entries need no longer wait, or with the context.
func (f *faults) wait(ctx context.Context, entries []core.Entry) {
	f.mu.Lock()
	if !slices.ContainsFunc(entries, func(e core.Entry) bool { return f.held != core.SessionID{} && e.SessionID() == f.held }) {
		f.mu.Unlock()
		return
	}
	released := f.released
	select {
	case <-f.reached:
	default:
		close(f.reached)
	}
	f.mu.Unlock()
	select {
	case <-released:
	case <-ctx.Done():
	}
}

// arm lets the next n calls of a place fail.
func (f *faults) arm(p faultPlace, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.place, f.left, f.hits, f.skip, f.broken = p, n, 0, 0, false
}

// armAfter lets n calls of a place fail once some have succeeded.
func (f *faults) armAfter(p faultPlace, skip, n int) {
	f.arm(p, n)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skip = skip
}

// armBroken lets n calls of a place fail in a way that does not mend itself.
func (f *faults) armBroken(p faultPlace, n int) {
	f.arm(p, n)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = true
}

// disarm returns how often the fault struck.
func (f *faults) disarm() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.hits
	f.place, f.left, f.hits, f.cancel = faultNone, 0, 0, nil
	return n
}

// strike reports whether a call of this place fails now.
func (f *faults) strike(p faultPlace) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.place == faultCancel && f.left > 0 {
		if f.left--; f.left == 0 && f.cancel != nil {
			f.hits++
			f.cancel()
		}
		return nil
	}
	if f.place != p && f.place != faultDown || f.left <= 0 {
		return nil
	}
	if f.skip > 0 {
		f.skip--
		return nil
	}
	f.left--
	f.hits++
	if f.broken {
		return fmt.Errorf("conformance: %s: %w", p, errBroken)
	}
	return fmt.Errorf("conformance: %s: injected: %w", p, core.ErrUnavailable)
}

// faultStore fails on demand.
type faultStore struct {
	inner  core.Store
	faults *faults
}

var (
	_ core.Store     = (*faultStore)(nil)
	_ core.Unwrapper = (*faultStore)(nil)
	_ core.Pinger    = (*faultStore)(nil)
	_ core.ViewStore = (*faultViewStore)(nil)
)

func (s *faultStore) Unwrap() core.Store { return s.inner }

func (s *faultStore) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	s.faults.wait(ctx, entries)
	if err := s.faults.strike(faultAppend); err != nil {
		return core.AppendResult{}, err
	}
	res, err := s.inner.Append(ctx, entries)
	if err == nil {
		if err := s.faults.strike(faultAck); err != nil {
			return core.AppendResult{}, err
		}
	}
	return res, err
}

func (s *faultStore) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	if err := s.faults.strike(faultScan); err != nil {
		return nil, err
	}
	return s.inner.Get(ctx, scope, ids)
}

func (s *faultStore) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if err := s.faults.strike(faultScan); err != nil {
		return core.Page{}, err
	}
	if !s.faults.sparse {
		return s.inner.Scan(ctx, q)
	}
	const begun = "begun:"
	cursor, on := strings.CutPrefix(string(q.Cursor), begun)
	if !on && ctx.Err() == nil {
		return core.Page{Next: begun}, nil
	}
	q.Cursor, q.Limit = core.Cursor(cursor), (q.Limit+1)/2
	page, err := s.inner.Scan(ctx, q)
	if page.Next != "" {
		page.Next = begun + page.Next
	}
	return page, err
}

func (s *faultStore) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	if err := s.faults.strike(faultUpdate); err != nil {
		return err
	}
	return s.inner.Update(ctx, scope, id, c)
}

func (s *faultStore) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if err := s.faults.strike(faultDelete); err != nil {
		return 0, err
	}
	return s.inner.Delete(ctx, scope, ids)
}

func (s *faultStore) Close() error { return s.inner.Close() }

// Ping is the store's own, or says nothing where it has none.
func (s *faultStore) Ping(ctx context.Context) error {
	if err := s.faults.strike(faultDown); err != nil {
		return err
	}
	if p, ok := core.As[core.Pinger](s.inner); ok {
		return p.Ping(ctx)
	}
	return nil
}

// faultViewStore is a faultStore over a store that keeps views.
type faultViewStore struct {
	*faultStore
	views core.ViewStore
}

func (s *faultViewStore) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	if err := s.faults.strike(faultDown); err != nil {
		return core.View{}, err
	}
	return s.views.LoadView(ctx, id)
}

func (s *faultViewStore) SwapView(ctx context.Context, v core.View) error {
	if err := s.faults.strike(faultSwap); err != nil {
		return err
	}
	return s.views.SwapView(ctx, v)
}

func (s *faultViewStore) DeleteView(ctx context.Context, id core.SessionID) error {
	if err := s.faults.strike(faultDown); err != nil {
		return err
	}
	return s.views.DeleteView(ctx, id)
}

func (s *faultViewStore) ListViews(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
	if err := s.faults.strike(faultDown); err != nil {
		return nil, err
	}
	return s.views.ListViews(ctx, q)
}
