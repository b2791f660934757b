package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// sick is a store that fails in some sessions, and can be asked whether it can be used.
type sick struct {
	*memory.Store
	fails func(id core.SessionID) error
	ping  func() error
}

func (s *sick) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	if err := s.fails(id); err != nil {
		return core.View{}, err
	}
	return s.Store.LoadView(ctx, id)
}

func (s *sick) Ping(context.Context) error { return s.ping() }

func newSick(t *testing.T) (*fixture, *sick) {
	t.Helper()
	store := &sick{Store: memory.New(), fails: func(id core.SessionID) error {
		if strings.HasPrefix(id.Session, "bad") {
			return errors.New("a row is damaged")
		}
		return nil
	}, ping: func() error { return nil }}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
	f.store = store.Store
	return f, store
}

// TestSessionsThatAreSetAsideAreBounded: an engine remembers a thousand sessions that are set aside, and not one more or fewer: where there is another one, some other is tried
// again.
func TestSessionsThatAreSetAsideAreBounded(t *testing.T) {
	const most = 1000
	f, _ := newSick(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	ingest := func(ctx context.Context, session string) error {
		_, err := f.engine.Ingest(ctx, core.IngestRequest{Session: core.SessionID{Agent: "main", Session: session}, Message: user("hi")})
		return err
	}
	for n := range most + 1 {
		for range 3 {
			if err := ingest(t.Context(), fmt.Sprint("bad", n)); err == nil || errors.Is(err, core.ErrQuarantined) {
				t.Fatalf("session %d: error %v, want that of the store", n, err)
			}
		}
		if err := ingest(t.Context(), "good"); err != nil { // so that it is not everybody's fault
			t.Fatal(err)
		}
		if n < most-1 {
			continue
		}
		aside := 0
		for i := range n + 1 {
			if errors.Is(ingest(ended, fmt.Sprint("bad", i)), core.ErrQuarantined) { // what ends so is no failure
				aside++
			}
		}
		if aside != most {
			t.Errorf("%d of %d sessions are set aside, want %d", aside, n+1, most)
		}
	}
}

// TestBootstrapAsksTheStore: a session is not begun in a store that says it cannot be used: that is the answer, and counts as a failure like any other.
func TestBootstrapAsksTheStore(t *testing.T) {
	f, store := newSick(t)
	away := errors.New("away")
	store.ping = func() error { return away }
	for n := range 4 {
		_, err := f.engine.Bootstrap(t.Context(), core.BootstrapRequest{Session: f.id})
		if n < 3 && !errors.Is(err, away) || n == 3 && !errors.Is(err, core.ErrQuarantined) {
			t.Errorf("call %d: error %v", n, err)
		}
	}
	if h := f.engine.Info().Health; len(h) != 1 || h[0].Part != "store" || h[0].Op != "bootstrap" || h[0].Count != 3 || !h[0].Quarantined {
		t.Errorf("health %+v", h)
	}
}

// TestSetAsideWhileASessionBegins: a session that begins takes nothing back of what sets the engine aside meanwhile.
func TestSetAsideWhileASessionBegins(t *testing.T) {
	f, store := newSick(t)
	store.ping = func() error {
		for n := range 3 {
			_, _ = f.engine.Ingest(t.Context(), core.IngestRequest{Session: core.SessionID{Agent: "main", Session: fmt.Sprint("bad", n)}, Message: user("hi")})
		}
		return nil
	}
	if _, err := f.engine.Bootstrap(t.Context(), core.BootstrapRequest{Session: f.id}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("hi")}); !errors.Is(err, core.ErrQuarantined) {
		t.Errorf("error %v, want that the engine is set aside", err)
	}
	if h := f.engine.Info().Health; len(h) != 1 || !h[0].Quarantined {
		t.Errorf("health %+v, want that legacy answers", h)
	}
}

// overdue is a compactor that goes on for a while when its time is over.
type overdue struct {
	halver
	late time.Duration
}

func (s *overdue) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	<-ctx.Done()
	time.Sleep(s.late)
	return s.halver.Compact(ctx, c)
}

// TestCompactorThatIsLate: what a compactor hands over within seconds of the end of its time is used; one that does not return even then is left behind.
func TestCompactorThatIsLate(t *testing.T) {
	for late, used := range map[time.Duration]bool{time.Second: true, 4 * time.Second: true, 6 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
				p.Compactor, c.Failure = &overdue{late: late}, engine.FailStrict
			})
			f.ingest(turns(20)...)
			began := time.Now()
			res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 300, Force: true})
			left := false
			for _, p := range f.engine.Info().Health {
				left = left || p.Part == "compactor" && strings.Contains(p.Text, "does not return")
			}
			if err != nil || !res.Compacted || left == used {
				t.Errorf("%v late: %+v, error %v, left behind: %t", late, res, err, left)
			}
			if got, want := time.Since(began), f.cfg.Compaction.Deadline+min(late, 5*time.Second); got != want {
				t.Errorf("%v late: it took %v, want %v", late, got, want)
			}
			if got := strings.Contains(shown(f.assemble(300)), "summary number"); got != used {
				t.Errorf("%v late: a summary is shown: %t", late, got)
			}
			if err := f.engine.Dispose(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCompactionAfterATurnThatFails: what fails in a compaction that a turn's end began is said by Info, and is no failure of the turn.
func TestCompactionAfterATurnThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
			p.Host, p.Compactor, c.Failure = afterwards{}, wrong{}, engine.FailStrict
		})
		for range 60 {
			if err := f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: turns(1)}); err != nil {
				t.Fatal(err)
			}
			f.assemble(200)
			synctest.Wait()
		}
		found := false
		for _, p := range f.engine.Info().Health {
			found = found || p.Op == "compact after turn" && strings.Contains(p.Text, "patch refused")
		}
		if !found {
			t.Errorf("health %+v, want what the compaction after a turn failed with", f.engine.Info().Health)
		}
	})
}

// wrong is a compactor whose patches are refused.
type wrong struct{}

func (wrong) OwnsCompaction() bool { return true }

func (wrong) Compact(context.Context, core.Compaction) (core.Patch, error) {
	return core.Patch{Replace: []core.Replacement{{Kind: "summary", Text: "x", Entries: []string{"nothing"}}}}, nil
}
