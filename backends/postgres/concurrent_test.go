package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
)

// TestWritersAndReaders lets four writers and four readers loose on one agent, each with a store of its own.
func TestWritersAndReaders(t *testing.T) {
	t.Parallel()
	const writers, readers, batches = 4, 4, 40
	cfg := fresh(t)
	cfg.MaxConns = 2
	var done atomic.Bool
	var work, watch sync.WaitGroup
	for r := range readers {
		s := open(t, cfg)
		watch.Go(func() {
			seen := 0
			for !done.Load() {
				n := 0
				last := map[string]int64{}
				for e, err := range core.All(t.Context(), s, core.Scope{Agent: "ann"}, false) {
					if err != nil {
						t.Errorf("reader %d: %v", r, err)
						return
					}
					if before, ok := last[e.Session]; ok && e.Seq != before+1 {
						t.Errorf("reader %d: session %s goes from %d to %d", r, e.Session, before, e.Seq)
					}
					last[e.Session] = e.Seq
					n++
				}
				if n < seen {
					t.Errorf("reader %d: saw %d entries, then %d", r, seen, n)
				}
				seen = n
			}
		})
	}
	for w := range writers {
		s := open(t, cfg)
		work.Go(func() {
			id := core.SessionID{Agent: "ann", Session: fmt.Sprint("s", w)}
			for n := range batches {
				if _, err := s.Append(t.Context(), entries(id, n*3, n*3+3)); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	work.Wait()
	done.Store(true)
	watch.Wait()
	if got := all(t, open(t, cfg), core.Scope{Agent: "ann"}); len(got) != writers*batches*3 {
		t.Errorf("%d entries are stored, want %d", len(got), writers*batches*3)
	}
}

// TestCrash stops the server without warning while four writers append. What was acknowledged is there once, and nothing is there twice.
func TestCrash(t *testing.T) {
	t.Parallel()
	server := servers.Own(t)
	cfg := postgres.DefaultConfig()
	cfg.DSN, cfg.Timeout, cfg.MaxRetries = server.Database(t), time.Minute, 20
	s := open(t, cfg)
	acknowledged := make(chan []string, 100_000)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			id := core.SessionID{Agent: fmt.Sprint("agent", w%2), Session: fmt.Sprint("s", w)}
			for n := 0; !stop.Load(); n++ {
				res, err := s.Append(t.Context(), entries(id, n*3, n*3+3))
				if err != nil {
					// The store gave up: the caller repeats the same call.
					if !errors.Is(err, core.ErrUnavailable) {
						t.Errorf("Append: %v, want none or ErrUnavailable", err)
					}
					n--
					continue
				}
				acknowledged <- res.IDs
			}
		})
	}
	const crashes = 3
	for range crashes {
		before := len(acknowledged)
		for len(acknowledged) < before+20 && !t.Failed() {
			time.Sleep(5 * time.Millisecond)
		}
		server.Restart(t)
	}
	before := len(acknowledged)
	for len(acknowledged) < before+20 && !t.Failed() {
		time.Sleep(5 * time.Millisecond)
	}
	stop.Store(true)
	wg.Wait()
	close(acknowledged)
	count := map[string]int{}
	for w := range 4 {
		id := core.SessionID{Agent: fmt.Sprint("agent", w%2), Session: fmt.Sprint("s", w)}
		for i, e := range all(t, s, id.Scope()) {
			count[e.ID]++
			if e.Seq != int64(i) {
				t.Errorf("session %s holds seq %d at place %d", id, e.Seq, i)
			}
		}
	}
	n := 0
	for ids := range acknowledged {
		for _, id := range ids {
			n++
			if count[id] != 1 {
				t.Errorf("acknowledged entry %q is stored %d times", id, count[id])
			}
		}
	}
	t.Logf("%d crashes, %d entries acknowledged, %d stored", crashes, n, len(count))
}

func TestMigratingAtOnce(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	cfg.Partitions = 3
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := postgres.Open(context.WithoutCancel(t.Context()), cfg)
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			if err := errors.Join(s.Ping(t.Context()), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// locked holds a lock on the entries until release is called.
func locked(t *testing.T, cfg postgres.Config) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), cfg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE "+cfg.Schema+".entries IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	return func() { _ = conn.Close(context.WithoutCancel(t.Context())) }
}

// TestCancelled ends the context of calls that the server is busy with.
func TestCancelled(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 0, 3)...)
	release := locked(t, cfg)
	for name, call := range map[string]func(ctx context.Context) error{
		"append": func(ctx context.Context) error { _, err := s.Append(ctx, entries(ann, 3, 4)); return err },
		"get":    func(ctx context.Context) error { _, err := s.Get(ctx, ann.Scope(), []string{"ann-one-0"}); return err },
		"scan": func(ctx context.Context) error {
			_, err := s.Scan(ctx, core.ScanQuery{Scope: ann.Scope(), Limit: 3})
			return err
		},
		"search": func(ctx context.Context) error {
			_, err := s.Search(ctx, core.SearchQuery{Scope: ann.Scope(), Text: "text", Limit: 3})
			return err
		},
		"update": func(ctx context.Context) error {
			return s.Update(ctx, ann.Scope(), "ann-one-0", core.Change{Meta: map[string]string{}})
		},
		"delete": func(ctx context.Context) error {
			_, err := s.Delete(ctx, ann.Scope(), []string{"ann-one-0"})
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- call(ctx) }()
		time.Sleep(30 * time.Millisecond)
		cancel()
		select {
		case err := <-result:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want context.Canceled", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s did not return", name)
		}
	}
	release()
	if got := all(t, s, ann.Scope()); len(got) != 3 {
		t.Errorf("%d entries after cancelled calls, want the 3 of before", len(got))
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	cfg.Timeout = 2 * time.Second
	s := open(t, cfg)
	defer locked(t, cfg)()
	_, err := s.Scan(t.Context(), core.ScanQuery{Scope: ann.Scope(), Limit: 3})
	if !errors.Is(err, core.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Scan of locked entries: %v, want ErrUnavailable and no error of the caller's context", err)
	}
}

// TestSwapRace lets two stores swap the same versions of a view.
func TestSwapRace(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	stores := []*postgres.Store{open(t, cfg), open(t, cfg)}
	for version := uint64(1); version <= 20; version++ {
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				err := stores[i%2].SwapView(t.Context(), core.View{Session: ann, Version: version, Pinned: fmt.Sprint(i)})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, core.ErrConflict):
					t.Errorf("SwapView: %v, want none or ErrConflict", err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("version %d was stored %d times", version, won.Load())
		}
	}
}
