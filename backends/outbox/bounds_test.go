package outbox_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := outbox.DefaultConfig().Validate(); err != nil {
		t.Errorf("the default configuration: %v", err)
	}
	if err := (outbox.Config{}).Validate(); err != nil {
		t.Errorf("the zero configuration: %v", err)
	}
	for field, change := range map[string]func(*outbox.Config){
		"path":           func(c *outbox.Config) { c.Path = "a\x00b" },
		"volatile":       func(c *outbox.Config) { c.Volatile, c.Path = true, "a" },
		"durability":     func(c *outbox.Config) { c.Durability = "none" },
		"recover":        func(c *outbox.Config) { c.Recover = "maybe" },
		"maxEntries":     func(c *outbox.Config) { c.MaxEntries = -1 },
		"maxBytes":       func(c *outbox.Config) { c.MaxBytes = 3 },
		"maxAge":         func(c *outbox.Config) { c.MaxAge = time.Millisecond },
		"full":           func(c *outbox.Config) { c.Full = "drop" },
		"batchEntries":   func(c *outbox.Config) { c.BatchEntries = 1001 },
		"batchBytes":     func(c *outbox.Config) { c.BatchBytes = 1 },
		"maxAttempts":    func(c *outbox.Config) { c.MaxAttempts = -1 },
		"attemptTimeout": func(c *outbox.Config) { c.AttemptTimeout = 2 * time.Hour },
		"minBackoff":     func(c *outbox.Config) { c.MinBackoff = 1 },
		"maxBackoff":     func(c *outbox.Config) { c.MinBackoff, c.MaxBackoff = time.Hour, time.Minute },
		"closeTimeout":   func(c *outbox.Config) { c.CloseTimeout = -1 },
		"poll":           func(c *outbox.Config) { c.Poll = 1 },
		"searchWait":     func(c *outbox.Config) { c.SearchWait = time.Hour },
	} {
		cfg := outbox.DefaultConfig()
		change(&cfg)
		err := cfg.Validate()
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "config: "+field+":") {
			t.Errorf("%s: error %v, want ErrInvalid that names it", field, err)
		}
	}
	_, err := outbox.Open(t.Context(), outbox.DefaultConfig(), memory.New(), memory.New())
	if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "config: path:") {
		t.Errorf("a local store without a file: error %v, want ErrInvalid that names the path", err)
	}
	_, err = outbox.Open(t.Context(), volatile(), nil, memory.New())
	is(t, "no local store", err, core.ErrInvalid)
	file := filepath.Join(t.TempDir(), "store.db")
	s := open(t, outbox.Config{}, openFile(t, file), memory.New())
	if got := status(t, s).Journal; got != file+"-outbox" {
		t.Errorf("the journal is %q, want it beside the file", got)
	}
}

// stuck opens an outbox whose remote is down until up is called.
func stuck(t *testing.T, cfg outbox.Config) (s *outbox.Store, far *remote, up func()) {
	t.Helper()
	var down atomic.Bool
	down.Store(true)
	far = newRemote()
	far.fail = func(string, []string, bool) error {
		if down.Load() {
			return errDown
		}
		return nil
	}
	cfg.CloseTimeout = 10 * time.Millisecond
	return open(t, cfg, memory.New(), far), far, func() { down.Store(false) }
}

func TestFull(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*outbox.Config){
		"maxEntries": func(c *outbox.Config) { c.MaxEntries = 4 },
		"maxBytes":   func(c *outbox.Config) { c.MaxBytes = 1024 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, far, up := stuck(t, volatile(change))
			n := 0
			var err error
			for ; n < 100 && err == nil; n++ {
				_, err = s.Append(t.Context(), []core.Entry{entry(ann, n)})
			}
			n--
			if !errors.Is(err, outbox.ErrFull) || !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), name) {
				t.Fatalf("Append at the bound: error %v, want ErrFull that names %s", err, name)
			}
			if n < 2 {
				t.Fatalf("the outbox was full after %d entries", n)
			}
			if st := status(t, s); st.Waiting != n || (name == "maxEntries") != (st.Full != "") {
				t.Errorf("Status = %+v", st)
			}
			if name == "maxEntries" {
				is(t, "Ping at the bound", s.Ping(t.Context()), outbox.ErrFull)
			}
			holds(t, "local", s, ann, entries(ann, 0, n))
			_, err = s.Append(t.Context(), entries(ann, 0, 101))
			if name == "maxEntries" {
				is(t, "more than the bound at once", err, core.ErrInvalid)
			}
			// Erasure needs no room.
			if err := s.Update(t.Context(), ann.Scope(), entry(ann, 0).ID, erased("0")); err != nil {
				t.Errorf("Update at the bound: %v", err)
			}
			if _, err := s.Delete(t.Context(), ann.Scope(), []string{entry(ann, 1).ID}); err != nil {
				t.Errorf("Delete at the bound: %v", err)
			}
			up()
			mustDrain(t, s)
			mustAppend(t, s, entry(ann, n))
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("Ping: %v", err)
			}
			mustDrain(t, s)
			holds(t, "remote", far.Store, ann, all(t, s, ann.Scope()))
		})
	}
}

func TestMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, up := stuck(t, volatile(func(c *outbox.Config) { c.MaxAge, c.MinBackoff, c.MaxBackoff = time.Hour, time.Second, time.Minute }))
		mustAppend(t, s, entry(ann, 0))
		time.Sleep(59 * time.Minute)
		mustAppend(t, s, entry(ann, 1))
		time.Sleep(2 * time.Minute)
		_, err := s.Append(t.Context(), entries(ann, 2, 3))
		if !errors.Is(err, outbox.ErrFull) || !strings.Contains(err.Error(), "maxAge") {
			t.Errorf("Append behind an old change: error %v, want ErrFull that names maxAge", err)
		}
		up()
		mustDrain(t, s)
		mustAppend(t, s, entry(ann, 2))
	})
}

func TestFullBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, far, up := stuck(t, volatile(func(c *outbox.Config) {
			c.MaxEntries, c.Full, c.MinBackoff, c.MaxBackoff = 2, outbox.FullBlock, time.Second, time.Minute
		}))
		mustAppend(t, s, entries(ann, 0, 2)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := s.Append(ctx, entries(ann, 2, 3))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, outbox.ErrFull) {
			t.Errorf("Append until the context ends: error %v, want both why it waited and why it stopped", err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := s.Append(t.Context(), entries(ann, 2, 3))
			done <- err
		}()
		time.Sleep(time.Hour)
		up()
		if err := <-done; err != nil {
			t.Errorf("Append when there is room again: %v", err)
		}
		mustDrain(t, s)
		holds(t, "remote", far.Store, ann, entries(ann, 0, 3))
	})
}

// TestFullBlocksUntilClose: Close does not wait for calls that wait for room.
func TestFullBlocksUntilClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := stuck(t, volatile(func(c *outbox.Config) { c.MaxEntries, c.Full = 2, outbox.FullBlock }))
		mustAppend(t, s, entries(ann, 0, 2)...)
		done := make(chan error, 1)
		go func() {
			_, err := s.Append(t.Context(), entries(ann, 2, 3))
			done <- err
		}()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		is(t, "the waiting Append", <-done, core.ErrClosed)
	})
}

// TestOffline: without the remote everything works but delivery, from the first moment on.
func TestOffline(t *testing.T) {
	t.Parallel()
	s, far, up := stuck(t, volatile())
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	mustAppend(t, s, entries(ann, 0, 3)...)
	got, err := s.Get(t.Context(), ann.Scope(), ids(entries(ann, 1, 3)))
	if diff := cmp.Diff(entries(ann, 1, 3), got); err != nil || diff != "" {
		t.Errorf("Get: %v (-want +got):\n%s", err, diff)
	}
	v, ok := core.As[core.ViewStore](s)
	if !ok {
		t.Fatal("the views of the local store are not found")
	}
	if err := v.SwapView(t.Context(), core.View{Session: ann, Version: 1}); err != nil {
		t.Errorf("SwapView: %v", err)
	}
	if _, ok := core.As[core.Searcher](s); ok {
		t.Error("neither store can search, and the outbox says it can")
	}
	up()
	mustDrain(t, s)
	holds(t, "remote", far.Store, ann, entries(ann, 0, 3))
}
