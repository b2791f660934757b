package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
)

func TestDeliversInOrder(t *testing.T) {
	t.Parallel()
	far := newRemote()
	var mu sync.Mutex
	var sent []string
	far.fail = func(op string, ids []string, after bool) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "append" && after {
			sent = append(sent, ids...)
		}
		return nil
	}
	s := open(t, volatile(func(c *outbox.Config) { c.BatchEntries = 7 }), memory.New(), far)
	for n := range 40 {
		mustAppend(t, s, entry(ann, 2*n), entry(two, n), entry(ann, 2*n+1))
	}
	mustDrain(t, s)
	for id, count := range map[core.SessionID]int{ann: 80, two: 40} {
		holds(t, "remote", far.Store, id, entries(id, 0, count))
		mu.Lock()
		got := slices.DeleteFunc(slices.Clone(sent), func(e string) bool { return !strings.HasPrefix(e, "ann-"+id.Session) })
		mu.Unlock()
		if diff := cmp.Diff(ids(entries(id, 0, count)), got); diff != "" {
			t.Errorf("order of session %s (-want +got):\n%s", id, diff)
		}
	}
	if st := status(t, s); st.Waiting != 0 || st.Delivered != 120 || st.WaitingBytes != 0 || st.LastError != "" {
		t.Errorf("Status = %+v", st)
	}
}

// TestBackoff: waits grow, up to the bound, with some chance in them, and nobody's try comes in between.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newRemote()
		var tries []time.Time
		far.fail = func(op string, _ []string, after bool) error {
			if op == "append" && !after {
				tries = append(tries, time.Now())
				return errDown
			}
			return nil
		}
		cfg := volatile(func(c *outbox.Config) {
			c.MinBackoff, c.MaxBackoff, c.CloseTimeout = time.Second, 16*time.Second, time.Millisecond
		})
		s := open(t, cfg, memory.New(), far)
		mustAppend(t, s, entry(ann, 0), entry(two, 0))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(tries) < 8 {
			t.Fatalf("%d tries in two minutes", len(tries))
		}
		for i := 1; i < len(tries); i++ {
			top := min(time.Second<<(i-1), 16*time.Second)
			if d := tries[i].Sub(tries[i-1]); d < top/2 || d > top {
				t.Errorf("wait %d is %v, want %v to %v", i, d, top/2, top)
			}
		}
		st := status(t, s)
		if st.Waiting != 2 || st.Failing != len(tries) || st.RetryAt.IsZero() || !strings.Contains(st.LastError, "connection refused") || st.Age < time.Minute {
			t.Errorf("Status = %+v", st)
		}
	})
}

// askedError is an error that says when to come back.
type askedError struct{ time.Duration }

func (askedError) Error() string               { return "too many requests" }
func (askedError) Unwrap() error               { return core.ErrUnavailable }
func (e askedError) RetryAfter() time.Duration { return e.Duration }

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newRemote()
		var tries []time.Time
		far.fail = func(op string, _ []string, after bool) error {
			if op != "append" || after {
				return nil
			}
			if tries = append(tries, time.Now()); len(tries) == 1 {
				return fmt.Errorf("remote: append: %w", askedError{7 * time.Minute})
			}
			return nil
		}
		s := open(t, volatile(), memory.New(), far)
		mustAppend(t, s, entry(ann, 0))
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(tries) != 2 || tries[1].Sub(tries[0]) != 7*time.Minute {
			t.Errorf("tries at %v, want the second 7m after the first", tries)
		}
		holds(t, "remote", far.Store, ann, entries(ann, 0, 1))
	})
}

// TestDrain: what waits for its next try is tried at once, and the deadline holds.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newRemote()
		var down atomic.Bool
		down.Store(true)
		far.fail = func(op string, _ []string, _ bool) error {
			if down.Load() {
				return errDown
			}
			return nil
		}
		s := open(t, volatile(func(c *outbox.Config) { c.MinBackoff, c.MaxBackoff = time.Hour, time.Hour }), memory.New(), far)
		mustAppend(t, s, entries(ann, 0, 3)...)
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		left, err := s.Drain(ctx)
		if left != 3 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, core.ErrUnavailable) || time.Since(start) != 10*time.Second {
			t.Errorf("Drain = %d, %v after %v", left, err, time.Since(start))
		}
		down.Store(false)
		start = time.Now()
		if left, err := s.Drain(t.Context()); left != 0 || err != nil || time.Since(start) > time.Second {
			t.Errorf("Drain = %d, %v after %v", left, err, time.Since(start))
		}
		holds(t, "remote", far.Store, ann, entries(ann, 0, 3))
	})
}

// TestCloseDrains: Close delivers what it can within its deadline, and the next Open the rest.
func TestCloseDrains(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		t.Run(fmt.Sprint("down=", down), func(t *testing.T) {
			t.Parallel()
			local, far := kept{memory.New()}, newRemote()
			stall := make(chan struct{})
			far.fail = func(string, []string, bool) error {
				if down {
					<-stall
					return errDown
				}
				return nil
			}
			cfg := durable(t, func(c *outbox.Config) { c.CloseTimeout = 50 * time.Millisecond })
			if !down {
				cfg.CloseTimeout = time.Minute
			}
			s, err := outbox.Open(t.Context(), cfg, local, far)
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, s, entries(ann, 0, 5)...)
			if down {
				// A remote that ignores its context cannot be waited for less than it takes.
				time.AfterFunc(200*time.Millisecond, func() { close(stall) })
			}
			if err := s.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
			far.fail = nil
			if !down {
				holds(t, "remote", far.Store, ann, entries(ann, 0, 5))
				return
			}
			holds(t, "remote", far.Store, ann, nil)
			again := open(t, cfg, local, far)
			mustDrain(t, again)
			holds(t, "remote", far.Store, ann, entries(ann, 0, 5))
		})
	}
}

// TestStuckSessionBlocksNoOther: a session whose requests always fail leaves the others alone.
func TestStuckSessionBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newRemote()
		far.fail = func(_ string, ids []string, _ bool) error {
			if slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, "ann-one") }) {
				return errDown
			}
			return nil
		}
		cfg := volatile(func(c *outbox.Config) {
			c.MinBackoff, c.MaxBackoff, c.CloseTimeout = time.Second, time.Minute, time.Millisecond
		})
		s := open(t, cfg, memory.New(), far)
		for n := range 100 {
			mustAppend(t, s, entry(ann, n), entry(two, n))
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		holds(t, "remote", far.Store, two, entries(two, 0, 100))
		holds(t, "remote", far.Store, ann, nil)
	})
}

// TestLostAcknowledgement: the remote did what it was asked to, and the answer was lost.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	far := newRemote()
	var lost atomic.Int64
	far.fail = func(_ string, _ []string, after bool) error {
		if after && lost.Add(1)%3 != 0 {
			return errDown
		}
		return nil
	}
	s := open(t, volatile(), memory.New(), far)
	mustAppend(t, s, entries(ann, 0, 10)...)
	if err := s.Update(t.Context(), ann.Scope(), entry(ann, 3).ID, erased("3")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), ann.Scope(), []string{entry(ann, 4).ID}); err != nil {
		t.Fatal(err)
	}
	mustDrain(t, s)
	holds(t, "remote", far.Store, ann, all(t, s, ann.Scope()))
}

// TestErasedAfterALostAcknowledgement: the remote has the entry under the key it had, and is not asked in vain more than once.
func TestErasedAfterALostAcknowledgement(t *testing.T) {
	t.Parallel()
	far := newRemote()
	lost, tries := make(chan struct{}), 0
	release := make(chan struct{})
	far.fail = func(op string, _ []string, after bool) error {
		if op != "append" {
			return nil
		}
		if !after {
			tries++
			return nil
		}
		if tries == 1 {
			close(lost)
			<-release
			return errDown
		}
		return nil
	}
	s := open(t, volatile(), memory.New(), far)
	mustAppend(t, s, entry(ann, 0))
	<-lost
	if err := s.Update(t.Context(), ann.Scope(), entry(ann, 0).ID, erased("0")); err != nil {
		t.Fatal(err)
	}
	close(release)
	mustDrain(t, s)
	holds(t, "remote", far.Store, ann, all(t, s, ann.Scope()))
	if tries != 2 {
		t.Errorf("the entry was appended %d times, want twice", tries)
	}
}

// TestNoGoroutineIsLeft: a bubble does not end before all its goroutines have.
func TestNoGoroutineIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := durable(t, hydrating)
		local, far := kept{memory.New()}, newRemote()
		for n := range 5 {
			s, err := outbox.Open(t.Context(), cfg, local, far)
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, s, entry(ann, n))
			holds(t, "local", s, ann, entries(ann, 0, n+1))
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("second Close: %v", err)
			}
			_, drainErr := s.Drain(t.Context())
			_, statusErr := s.Status(t.Context())
			_, deadErr := s.DeadLetters(t.Context())
			_, retryErr := s.Retry(t.Context())
			_, requeueErr := s.Requeue(t.Context(), ann.Scope())
			for _, err := range []error{drainErr, statusErr, deadErr, retryErr, requeueErr, s.Ping(t.Context()), s.CheckRemote(t.Context())} {
				is(t, "a call after Close", err, core.ErrClosed)
			}
		}
	})
	// An Open that fails leaves nothing either.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := outbox.Open(ctx, durable(t), memory.New(), memory.New())
		is(t, "Open with an ended context", err, context.Canceled)
	})
}
