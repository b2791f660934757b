package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

type spanKey struct{}

// spans writes down operations as paths, such as "Assemble/retriever", each when it is over.
type spans struct {
	mu   sync.Mutex
	open int
	done []string
}

func (s *spans) Begin(ctx context.Context, op core.Operation) (context.Context, func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	path := op.Name
	if outer, ok := ctx.Value(spanKey{}).(string); ok {
		path = outer + "/" + path
	}
	return context.WithValue(ctx, spanKey{}, path), func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if err != nil {
			path += " failed"
		}
		s.done = append(s.done, path)
	}
}

// watched is a store that sees in what operation it is used.
type watched struct {
	*memory.Store
	seen map[string]bool
}

func (w *watched) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	op, _ := ctx.Value(spanKey{}).(string)
	w.seen[op] = true
	return w.Store.Append(ctx, entries)
}

func TestTelemetry(t *testing.T) {
	t.Parallel()
	var told spans
	store := &watched{Store: memory.New(), seen: make(map[string]bool)}
	e, err := engine.New(engine.Parts{Store: store, Retriever: &allEntries{}, Compactor: &halver{}, Counter: wordCounter}, engine.DefaultConfig(), engine.WithTelemetry(&told))
	if err != nil {
		t.Fatal(err)
	}
	id := core.SessionID{Agent: "ada", Session: "s"}
	for i := range 40 {
		text := fmt.Sprintf("chapter %d of the diary %s", i, strings.Repeat("harbour ", 20))
		if _, err := e.IngestBatch(t.Context(), core.IngestBatchRequest{Session: id, Messages: []message.Message{message.New(message.User, text), message.New(message.Assistant, "noted")}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 400, Prompt: "What does chapter 3 say?"}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Compact(t.Context(), core.CompactRequest{Session: id, Budget: 400, Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id}); err == nil {
		t.Fatal("a budget of nothing is accepted")
	}
	if told.open != 0 {
		t.Errorf("%d operations did not end", told.open)
	}
	for _, want := range []string{"IngestBatch", "Assemble/retriever", "Assemble", "Compact/compactor", "Compact", "Assemble failed"} {
		if !slices.Contains(told.done, want) {
			t.Errorf("%q was not told: %q", want, slices.Compact(told.done))
		}
	}
	if !store.seen["IngestBatch"] || store.seen[""] {
		t.Errorf("the store is used in %v", store.seen)
	}
}

// TestTelemetryOfEveryCall: every call that a host makes is told once, under its name, as soon as it is over, with whether it failed.
func TestTelemetryOfEveryCall(t *testing.T) {
	var told spans
	f := newFixture(t)
	e, err := engine.New(f.parts, f.cfg, engine.WithTelemetry(&told))
	if err != nil {
		t.Fatal(err)
	}
	f.engine = e
	f.ingest(user("a"), assistant("b"))
	ctx, none := t.Context(), core.SessionID{}
	spawn := func(child core.SessionID) error {
		return second(e.PrepareSubagentSpawn(ctx, core.SpawnRequest{Parent: f.id, Child: child}))
	}
	said := []message.Message{user("c")}
	for name, call := range map[string]func(core.SessionID) error{
		"Bootstrap": func(id core.SessionID) error { return second(e.Bootstrap(ctx, core.BootstrapRequest{Session: id})) },
		"IngestBatch": func(id core.SessionID) error {
			return second(e.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: said}))
		},
		"CommitTurn": func(id core.SessionID) error {
			return second(e.CommitTurn(ctx, core.CommitTurnRequest{Session: id, AdvancementKey: "k", Messages: said}))
		},
		"AfterTurn": func(id core.SessionID) error {
			return e.AfterTurn(ctx, core.AfterTurnRequest{Session: id, Messages: said})
		},
		"Assemble": func(id core.SessionID) error {
			return second(e.Assemble(ctx, core.AssembleRequest{Session: id, Budget: 100}))
		},
		"Compact":              func(id core.SessionID) error { return second(e.Compact(ctx, core.CompactRequest{Session: id})) },
		"Maintain":             func(id core.SessionID) error { return second(e.Maintain(ctx, core.MaintainRequest{Session: id})) },
		"PrepareSubagentSpawn": func(id core.SessionID) error { id.Session += "-child"; return spawn(id) },
		"OnSubagentEnded":      func(id core.SessionID) error { return e.OnSubagentEnded(ctx, core.SubagentEnded{Child: id}) },
		"Search": func(id core.SessionID) error {
			return second(e.Search(ctx, engine.SearchRequest{Session: id, Query: "a"}))
		},
		"Expand": func(id core.SessionID) error {
			return second(e.Expand(ctx, engine.ExpandRequest{Session: id, ID: "0"}))
		},
		"Describe": func(id core.SessionID) error { return second(e.Describe(ctx, engine.DescribeRequest{Session: id})) },
		"Forget": func(id core.SessionID) error {
			return second(e.Forget(ctx, engine.ForgetRequest{Scope: id.Scope(), From: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)}))
		},
	} {
		for _, id := range []core.SessionID{f.id, none} {
			told.done = nil
			want := name
			if err := call(id); err != nil {
				want += " failed"
			}
			if id == none != strings.HasSuffix(want, "failed") {
				t.Errorf("%s of %q: %s", name, id, want)
			}
			mine := slices.DeleteFunc(told.done, func(s string) bool { return strings.Contains(s, "/") })
			if !slices.Equal(mine, []string{want}) || told.open != 0 {
				t.Errorf("%s of %q is told as %q, %d are open", name, id, mine, told.open)
			}
		}
	}
}

// failures is telemetry that counts failures; a host would hand them on to its metrics.
type failures map[string]int

func (f failures) Begin(ctx context.Context, op core.Operation) (context.Context, func(error)) {
	return ctx, func(err error) {
		if err != nil {
			f[op.Name]++
		}
	}
}

func ExampleWithTelemetry() {
	failed := make(failures) // from one goroutine here: a real one locks
	e, err := engine.New(engine.Parts{Store: memory.New(), Compactor: &halver{}, Counter: wordCounter}, engine.DefaultConfig(), engine.WithTelemetry(failed))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = e.Assemble(context.Background(), core.AssembleRequest{Session: core.SessionID{Agent: "main", Session: "work"}})
	fmt.Println(err != nil, failed)
	// Output: true map[Assemble:1]
}
