package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// compacts is a runtime that compacts itself.
type compacts struct {
	core.NoHost
	asked int
}

func (*compacts) Capabilities() []capability.Name { return []capability.Name{capability.DelegateHost} }
func (h *compacts) Compact(context.Context, core.CompactRequest) (core.CompactResult, error) {
	h.asked++
	return core.CompactResult{OK: true, Compacted: true, TokensBefore: 2, TokensAfter: 1}, nil
}

// operations are those whose failures in a row set the engine aside.
func operations(f *fixture) map[string]func() error {
	said := []message.Message{user("hi")}
	return map[string]func() error{
		"assemble": func() error {
			_, err := f.engine.Assemble(f.t.Context(), core.AssembleRequest{Session: f.id, Budget: 100})
			return err
		},
		"bootstrap": func() error {
			_, err := f.engine.Bootstrap(f.t.Context(), core.BootstrapRequest{Session: f.id})
			return err
		},
		"ingest": func() error {
			_, err := f.engine.Ingest(f.t.Context(), core.IngestRequest{Session: f.id, Message: said[0]})
			return err
		},
		"commit turn": func() error {
			_, err := f.engine.CommitTurn(f.t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: said})
			return err
		},
		"after turn": func() error {
			return f.engine.AfterTurn(f.t.Context(), core.AfterTurnRequest{Session: f.id, Messages: said})
		},
		"compact": func() error {
			_, err := f.engine.Compact(f.t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true})
			return err
		},
	}
}

// TestQuarantine: whatever fails three times in a row sets the engine aside until it is asked to try again; until then nothing of it is tried, legacy answers, and no turn is
// taken for stored.
func TestQuarantine(t *testing.T) {
	fault := errors.New("disk on fire")
	for op := range operations(&fixture{}) {
		t.Run(op, func(t *testing.T) {
			broken := &failing{Store: memory.New(), err: fault}
			host := &compacts{}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Host = broken, host })
			ops := operations(f)
			for range 2 {
				if err := ops[op](); !errors.Is(err, fault) {
					t.Fatalf("%v, want the store's error", err)
				}
			}
			broken.err = nil
			if err := ops[op](); err != nil {
				t.Fatalf("after two failures: %v", err)
			}
			broken.err = fault
			f.restart() // what was read is not read again
			ops = operations(f)
			for range 3 {
				if err := ops[op](); !errors.Is(err, fault) {
					t.Fatalf("%v, want the store's error", err)
				}
			}
			broken.err = nil // nobody asks
			stored := broken.count(t, f.id)
			for name, call := range ops {
				err := call()
				if name == "compact" && host.asked == 1 && err == nil {
					continue
				}
				if !errors.Is(err, core.ErrQuarantined) || !strings.Contains(err.Error(), op+" failed 3 times in a row: ") {
					t.Errorf("%s: %v", name, err)
				}
			}
			if host.asked != 1 {
				t.Errorf("the runtime was asked %d times to compact", host.asked)
			}
			res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 100, Transcript: &core.Transcript{Messages: []message.Message{user("hi")}}})
			if err != nil || shown(res) != "hi" || !strings.Contains(res.Degraded, "3 times in a row") {
				t.Errorf("%q, degraded %q, %v", shown(res), res.Degraded, err)
			}
			_, err = f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 100, Transcript: &core.Transcript{Skipped: 1, Digest: "d"}})
			if !errors.Is(err, core.ErrNeedTranscript) {
				t.Errorf("a transcript that is not whole: %v", err)
			}
			if h := f.engine.Info().Health; len(h) != 1 || !h[0].Quarantined {
				t.Errorf("health says %+v", h)
			}
			if n := broken.count(t, f.id); n != stored {
				t.Errorf("%d entries are stored, and %d were", n, stored)
			}
			f.engine.Retry()
			for _, name := range []string{"bootstrap", "ingest", "commit turn", "after turn", "assemble", "compact"} {
				if err := ops[name](); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, p := range f.engine.Info().Health {
				if p.Quarantined {
					t.Errorf("after it worked again: %+v", p)
				}
			}
		})
	}
}

// TestCompactionThatWorksEndsARow: failures of a compaction are in a row only as long as none works in between that had something to do.
func TestCompactionThatWorksEndsARow(t *testing.T) {
	fault := errors.New("disk on fire")
	broken := &failing{Store: memory.New()}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = broken })
	for range 2 {
		f.ingest(user("one"+strings.Repeat(" word", 90)), assistant("two"), user("three"), assistant("four"))
		broken.err = fault
		for range 2 {
			if err := operations(f)["compact"](); !errors.Is(err, fault) {
				t.Errorf("%v, want the store's error", err)
			}
		}
		broken.err = nil
		if res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil || !res.Compacted {
			t.Errorf("after two failures: %+v, %v", res, err)
		}
	}
}

// damaged is a store of which some sessions cannot be used.
type damaged struct {
	*memory.Store
	err  error
	rows map[string]bool
}

func (s *damaged) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	if s.rows[id.Session] {
		return core.View{}, s.err
	}
	return s.Store.LoadView(ctx, id)
}

// TestQuarantineOfASession: a fault that strikes one session over and over takes the engine from that one alone, whatever the operation, and whether others are used or not; where it strikes
// three sessions and works in none in between, it takes the engine from all of them.
func TestQuarantineOfASession(t *testing.T) {
	fault := errors.New("row 7 is damaged")
	for op := range operations(&fixture{}) {
		t.Run(op, func(t *testing.T) {
			broken := &damaged{Store: memory.New(), err: fault, rows: map[string]bool{"a": true, "b": true}}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Host = broken, &compacts{} })
			in := func(session string) error {
				f.id.Session = session
				return operations(f)[op]()
			}
			well := func(session string) {
				t.Helper()
				f.id.Session = session
				for name, call := range operations(f) {
					if err := call(); err != nil {
						t.Errorf("%s of session %s: %v", name, session, err)
					}
				}
			}
			for range 3 {
				if err := in("a"); !errors.Is(err, fault) {
					t.Fatalf("%v, want the store's error", err)
				}
			}
			well("c")
			host := []message.Message{user("hi")}
			shows := func(session string) string {
				t.Helper()
				id := core.SessionID{Agent: f.id.Agent, Session: session}
				res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 100, Transcript: &core.Transcript{Messages: host}})
				if err != nil || len(res.Messages) == 0 {
					t.Errorf("session %s: %v", session, err)
				}
				return res.Degraded
			}
			if got := shows("a"); !strings.Contains(got, "3 times in a row") {
				t.Errorf("the damaged session is served: %q", got)
			}
			if got := shows("c"); got != "" {
				t.Errorf("another one is not served: %q", got)
			}
			delete(broken.rows, "a") // nobody asks
			if err := in("a"); op != "compact" && !errors.Is(err, core.ErrQuarantined) {
				t.Errorf("%v, want that the session is set aside", err)
			}
			for range 3 {
				if err := in("b"); !errors.Is(err, fault) {
					t.Fatalf("%v, want the store's error", err)
				}
			}
			well("c")
			if h := f.engine.Info().Health; len(h) == 0 || !h[0].Quarantined {
				t.Errorf("health says %+v", h)
			}
			f.engine.Retry()
			well("a")
			if h := f.engine.Info().Health; len(h) == 0 || h[0].Quarantined {
				t.Errorf("health says %+v", h)
			}
			for _, name := range []string{"x", "y", "z"} {
				broken.rows[name] = true
				if err := in(name); !errors.Is(err, fault) {
					t.Fatalf("%v, want the store's error", err)
				}
			}
			if got := shows("c"); !strings.Contains(got, op+" failed in 3 sessions in a row") {
				t.Errorf("three sessions failed, and the engine goes on: %q", got)
			}
		})
	}
}

// TestRestOfASession: after a fault a session is left to legacy for a minute, or until it begins anew; others are served.
func TestRestOfASession(t *testing.T) {
	fault := errors.New("row 7 is damaged")
	broken := &damaged{Store: memory.New(), err: fault, rows: map[string]bool{"a": true}}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = broken })
	degraded := func(session string) string {
		t.Helper()
		res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{
			Session: core.SessionID{Agent: f.id.Agent, Session: session}, Budget: 100, Transcript: &core.Transcript{Messages: []message.Message{user("hi")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return res.Degraded
	}
	if degraded("a") == "" || degraded("b") != "" {
		t.Error("the damaged session is served, or another one is not")
	}
	delete(broken.rows, "a")
	if degraded("a") == "" {
		t.Error("it is tried again at once")
	}
	for _, session := range []string{"b", "a"} { // only its own beginning counts
		if _, err := f.engine.Bootstrap(t.Context(), core.BootstrapRequest{Session: core.SessionID{Agent: f.id.Agent, Session: session}}); err != nil {
			t.Fatal(err)
		}
		if got := degraded("a"); (got == "") != (session == "a") {
			t.Errorf("after %s began: %q", session, got)
		}
	}
}

// TestNoQuarantine: what cannot be reached is tried again by itself, and a strict engine always.
func TestNoQuarantine(t *testing.T) {
	for name, c := range map[string]struct {
		policy engine.FailurePolicy
		err    error
	}{
		"unavailable": {engine.FailDegrade, fmt.Errorf("the disk is full: %w", core.ErrUnavailable)},
		"strict":      {engine.FailStrict, errors.New("disk on fire")},
	} {
		t.Run(name, func(t *testing.T) {
			broken := &failing{Store: memory.New(), err: c.err}
			f := newFixture(t, func(cfg *engine.Config, p *engine.Parts) { cfg.Failure, p.Store = c.policy, broken })
			for op, call := range operations(f) {
				for range 5 {
					if err := call(); !errors.Is(err, c.err) {
						t.Errorf("%s: %v", op, err)
					}
				}
			}
			broken.err = nil
			for op, call := range operations(f) {
				if op == "compact" {
					continue // so little can hardly be compacted
				}
				if err := call(); err != nil {
					t.Errorf("%s: %v", op, err)
				}
			}
		})
	}
}

// count returns how much of a session is stored.
func (s *failing) count(t *testing.T, id core.SessionID) int {
	t.Helper()
	page, err := s.Store.Scan(t.Context(), core.ScanQuery{Scope: id.Scope(), Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Entries)
}
