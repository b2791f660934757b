package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
)

// endingPages is a store whose pages are short, and which ends a caller's time at one of them. Calls that were left alone may go on reading it.
type endingPages struct {
	core.Store
	most int
	plan atomic.Pointer[endsAtPage]
}

// endsAtPage says at which page a time ends: while that is read, or once it is handed over.
type endsAtPage struct {
	left   atomic.Int64
	end    func()
	within bool
}

func (s *endingPages) Unwrap() core.Store { return s.Store }

// Scan implements core.Store.
func (s *endingPages) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	q.Limit = min(q.Limit, s.most)
	at := s.plan.Load()
	now := at != nil && at.left.Add(-1) == 0
	if now && at.within {
		at.end()
		select {
		case <-ctx.Done():
			return core.Page{}, fmt.Errorf("conformance: ending page: %w", ctx.Err())
		case <-time.After(endsOwn): // a time of its own
		}
	}
	page, err := s.Store.Scan(ctx, q)
	if now && !at.within {
		at.end()
	}
	return page, err
}

const (
	// endsOwn is how long a page is held for one that reads in a time of its own.
	endsOwn = 20 * time.Millisecond
	// endsAfter is a deadline that passes while the store is read, and endsSoon one that passes while it fails.
	endsAfter, endsSoon = 5 * time.Millisecond, 30 * time.Millisecond
	// endedLate is how long a call may take over a store that fails at once, when its time is over.
	endedLate = 800 * time.Millisecond
)

// cancelFirst lets the first queries of a retriever end early: before the store is read, while it is read, and between two pages. Who asks after that finds all.
func (r *retrieverRun) cancelFirst() string {
	if _, ok := r.retriever.(core.Attacher); !ok {
		return ""
	}
	q := r.query(0, queries[0])
	q.Scope.Session, q.Limit = "", core.MaxPage
	anew, text := r.attached(r.store)
	if text != "" {
		return text
	}
	want, err := r.answer(anew, q)
	if err != nil {
		return fmt.Sprintf("Retrieve: error %v, want none", err)
	}
	for _, deadline := range []bool{false, true} {
		store := &endingPages{Store: r.store, most: 2}
		second, text := r.attached(store)
		if text != "" {
			return text
		}
		for _, at := range []struct {
			page   int64
			within bool
		}{{2, true}, {1, false}, {}} {
			if text := r.endsAt(second, q, store, deadline, at.page, at.within); text != "" {
				return text
			}
		}
		text = r.settled(func() string {
			got, err := r.retrieve(r.ctx(), second, q)
			if deadline && err != nil { // one that took its time may be left alone for a while
				return ""
			}
			if errors.Is(err, core.ErrPartial) {
				got, err = r.answer(second, q)
			}
			if err != nil {
				return fmt.Sprintf("error %v, want none", err)
			}
			return sameIDs(slices.Sorted(slices.Values(candidateIDs(got))), slices.Sorted(slices.Values(candidateIDs(want))))
		})
		if text != "" {
			return "Retrieve after the time of the first ones was over before all was read, against one that read all: " + text
		}
	}
	return ""
}

// endsAt asks with a time that is over at a page, or before where that is 0.
func (r *retrieverRun) endsAt(of core.Retriever, q core.Query, store *endingPages, deadline bool, page int64, within bool) string {
	ctx, end := cancellable(r.ctx())
	defer end()
	want := []error{context.Canceled}
	if deadline {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(r.ctx(), endsAfter)
		defer stop()
		// One that did not answer in time may be left alone for a while.
		end, want = func() { <-ctx.Done() }, []error{context.DeadlineExceeded, core.ErrUnavailable}
	}
	at := &endsAtPage{end: end, within: within}
	at.left.Store(page)
	store.plan.Store(at)
	if page == 0 {
		end()
	}
	_, err := r.retrieve(ctx, of, q)
	is := func(kind error) bool { return errors.Is(err, kind) }
	if err != nil && !slices.ContainsFunc(want, is) {
		return fmt.Sprintf("Retrieve whose time was over while the store was read: error %v, want none or %v", err, want[0])
	}
	return ""
}

// cancelFailing ends the time of a query over a store that fails, before a retriever has read it and after: whoever tries again heeds the time.
func (r *retrieverRun) cancelFailing() string {
	if _, ok := r.retriever.(core.Attacher); !ok {
		return ""
	}
	for _, warm := range []bool{true, false} {
		faults := &faults{}
		second, text := r.attached(Env{faults: faults}.Wrap(r.store))
		if text != "" {
			return text
		}
		q := r.query(0, queries[0])
		if warm {
			if _, err := r.answer(second, q); err != nil {
				return fmt.Sprintf("Retrieve: error %v, want none", err)
			}
		}
		faults.arm(faultScan, 1<<30)
		ctx, cancel := context.WithTimeout(r.ctx(), endsSoon)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = guard(func() string { _, _ = r.retrieve(ctx, second, q); return "" })
		}()
		in := back(done, endsSoon+endedLate)
		cancel()
		if !in {
			r.watch.late.Store(true) // each smaller case would wait as long
			return fmt.Sprintf("Retrieve over a store that fails has not returned %s after its context ended", endedLate)
		}
	}
	return ""
}
