package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestCallsAfterDispose: an engine that was disposed says so, whatever it is called for, and stores and erases nothing any more. To dispose of it again is no error.
func TestCallsAfterDispose(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("hello"), assistant("hi"))
	for range 2 {
		if err := f.engine.Dispose(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, e, child := t.Context(), f.engine, core.SessionID{Agent: f.id.Agent, Session: "child"}
	for name, call := range map[string]func() error{
		"Bootstrap": func() error { return second(e.Bootstrap(ctx, core.BootstrapRequest{Session: f.id})) },
		"Ingest":    func() error { return second(e.Ingest(ctx, core.IngestRequest{Session: f.id, Message: user("more")})) },
		"CommitTurn": func() error {
			return second(e.CommitTurn(ctx, core.CommitTurnRequest{Session: f.id, AdvancementKey: "1", Messages: one(user("more"))}))
		},
		"AfterTurn": func() error {
			return e.AfterTurn(ctx, core.AfterTurnRequest{Session: f.id, Messages: one(user("more"))})
		},
		"Assemble": func() error { return second(e.Assemble(ctx, core.AssembleRequest{Session: f.id, Budget: 1000})) },
		"Compact": func() error {
			return second(e.Compact(ctx, core.CompactRequest{Session: f.id, Budget: 1000, Force: true}))
		},
		"Maintain": func() error { return second(e.Maintain(ctx, core.MaintainRequest{Session: f.id})) },
		"PrepareSubagentSpawn": func() error {
			return second(e.PrepareSubagentSpawn(ctx, core.SpawnRequest{Parent: f.id, Child: child}))
		},
		"OnSubagentEnded": func() error {
			return e.OnSubagentEnded(ctx, core.SubagentEnded{Parent: f.id, Child: child, Result: "found it"})
		},
		"Search":   func() error { return second(e.Search(ctx, engine.SearchRequest{Session: f.id, Query: "hello"})) },
		"Expand":   func() error { return second(e.Expand(ctx, engine.ExpandRequest{Session: f.id, ID: "0"})) },
		"Describe": func() error { return second(e.Describe(ctx, engine.DescribeRequest{Session: f.id})) },
		"Forget":   func() error { return second(e.Forget(ctx, engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})) },
		"Receipts": func() error { return second(e.Receipts(ctx, f.id.Agent)) },
		"Arm":      func() error { return second(e.Arm(ctx, f.id, func(string) string { return "b" })) },
		"Score":    func() error { return e.Score(ctx, engine.Outcome{Session: f.id, Name: "ok", Value: 1}) },
		"Outcomes": func() error { return second(e.Outcomes(ctx, f.id.Agent)) },
		"Mend":     func() error { return second(e.Mend(ctx, f.id)) },
		"Refresh":  func() error { return e.Refresh(ctx) },
	} {
		if err := call(); !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s: error %v, want core.ErrClosed", name, err)
		}
	}
	n := 0
	for entry, err := range core.All(ctx, f.store, core.Scope{Agent: f.id.Agent}, false) {
		n++
		if err != nil || entry.Text() != "hello" && entry.Text() != "hi" {
			t.Errorf("stored: %+v, %v", entry, err)
		}
	}
	if n != 2 {
		t.Errorf("%d entries are stored, want two", n)
	}
}

// tardy is a store whose Append waits, and that says when it is closed.
type tardy struct {
	core.Store
	reached, release, closed chan struct{}
}

func (s tardy) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	close(s.reached)
	<-s.release
	return s.Store.Append(ctx, entries)
}

func (s tardy) Close() error {
	close(s.closed)
	return nil
}

// TestDisposeThatCannotWait: a store that the engine owns is closed in any case, behind the work that Dispose had no time to wait for.
func TestDisposeThatCannotWait(t *testing.T) {
	store := tardy{memory.New(), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.OwnStore = store, true })
	stored := make(chan error)
	go func() {
		stored <- second(f.engine.Ingest(context.WithoutCancel(t.Context()), core.IngestRequest{Session: f.id, Message: user("hello")}))
	}()
	<-store.reached
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.engine.Dispose(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Dispose while a call is under way: error %v, want the context's", err)
	}
	select {
	case <-store.closed:
		t.Error("the store was closed under a call")
	default:
	}
	close(store.release)
	if err := <-stored; err != nil {
		t.Errorf("Ingest under way: error %v", err)
	}
	<-store.closed
}
