package live_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment/live"
	"github.com/contextengine/contextengine/experiment/stats"
	"github.com/contextengine/contextengine/strategies/archive"
)

func newEngine(t *testing.T, store core.Store) *engine.Engine {
	t.Helper()
	c, err := archive.New(archive.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Parts{Store: store, Compactor: c, Counter: func(text string) int { return len(strings.Fields(text)) }}, engine.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestStatus(t *testing.T) {
	store := memory.New()
	e := newEngine(t, store)
	for i := range 40 {
		id := core.SessionID{Agent: "main", Session: fmt.Sprint("s", i)}
		arm := []string{"old", "new"}[i%2]
		if _, err := e.Arm(t.Context(), id, func(string) string { return arm }); err != nil {
			t.Fatal(err)
		}
		for range 1 + i%5 {
			if _, err := e.IngestBatch(t.Context(), core.IngestBatchRequest{Session: id, Messages: []message.Message{
				message.New(message.User, "hello"), message.New(message.Assistant, "hi")}}); err != nil {
				t.Fatal(err)
			}
		}
		// The new arm is better by 2; a word on the session counts more than those on its turns.
		for _, o := range []engine.Outcome{
			{Session: id, Turn: 1, Name: "helpful", Value: 100},
			{Session: id, Name: "helpful", Value: float64(i%4) + 2*float64(i%2)},
			{Session: id, Turn: 1, Name: "speed", Value: 1}, {Session: id, Turn: 2, Name: "speed", Value: 3},
		} {
			if err := e.Score(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: core.SessionID{Agent: "main", Session: "before"}, Message: message.New(message.User, "x")}); err != nil {
		t.Fatal(err)
	}
	st, err := live.Read(t.Context(), live.Source{Stores: []core.Store{store}, Arms: []string{"old", "new", "empty"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Arms) != 3 || st.Unassigned != 1 || st.Arms[0].Name != "old" || st.Arms[0].Sessions != 20 || st.Arms[1].Turns != 60 || st.Arms[2].Sessions != 0 {
		t.Fatalf("%+v", st)
	}
	found := map[string]live.Difference{}
	for _, d := range st.Differences {
		found[d.Metric] = d
	}
	if d := found["helpful"]; !d.Interval.ExcludesZero() || d.Interval.Mean != 3 || !strings.HasPrefix(d.Verdict, "new higher by 3") {
		t.Errorf("helpful: %+v", d)
	}
	if d := found["speed"]; d.Interval.ExcludesZero() {
		t.Errorf("speed: %+v", d)
	}
	if d := found[live.MetricTurns]; d.Interval.ExcludesZero() || !strings.HasPrefix(d.Verdict, "no difference shown") {
		t.Errorf("turns: %+v", d)
	}
}

// What calls cost, how long they take, what came of recall and what failed is told for each arm, with intervals over sessions.
func TestCalls(t *testing.T) {
	store := memory.New()
	e := newEngine(t, store)
	for i := range 12 {
		id := core.SessionID{Agent: "main", Session: fmt.Sprint("s", i)}
		arm, words := "short", 5
		if i%2 == 1 {
			arm, words = "long", 50
		}
		if _, err := e.Arm(t.Context(), id, func(string) string { return arm }); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: message.New(message.User, strings.Repeat("word ", words+i))}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 4000}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: message.New(message.Assistant, "done")}); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			if _, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 1}); err == nil {
				t.Fatal("a prompt in one token")
			}
			if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: message.New(message.User, "more")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	st, err := live.Read(t.Context(), live.Source{Stores: []core.Store{store}, Arms: []string{"short", "long"}, CachePrice: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	for i, arm := range st.Arms {
		got := map[string]live.Metric{}
		for _, m := range arm.Metrics {
			got[m.Name] = m
		}
		for _, name := range []string{live.MetricTokens, live.MetricCost, live.MetricLatency, live.MetricRecalled, live.MetricDegraded, live.MetricErrors} {
			if got[name].N != 6 || got[name].Basis == "" {
				t.Errorf("%s, %s: %+v, want a mean over 6 sessions with an interval", arm.Name, name, got[name])
			}
		}
		if tokens, cost := got[live.MetricTokens].Mean, got[live.MetricCost].Mean; cost <= 0 || cost >= tokens {
			t.Errorf("%s: %v tokens cost %v, want less: a prompt begins with what was sent before", arm.Name, tokens, cost)
		}
		if errors := got[live.MetricErrors].Mean; (errors > 0) != (i == 0) {
			t.Errorf("%s: %v errors", arm.Name, errors)
		}
	}
	for _, d := range st.Differences {
		if d.Metric == live.MetricCost && d.Decision != stats.Worse {
			t.Errorf("cost: %+v, want the long arm worse", d)
		}
	}
}

func TestStoreWithoutViews(t *testing.T) {
	_, err := live.Read(t.Context(), live.Source{Stores: []core.Store{bare{memory.New()}}})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// bare hides what only some stores can.
type bare struct{ core.Store }
