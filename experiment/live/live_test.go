package live_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment/live"
	"github.com/contextengine/contextengine/strategies/archive"
)

func engine(t *testing.T, store core.Store) *core.Engine {
	t.Helper()
	c, err := archive.New(archive.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	e, err := core.New(core.Parts{Store: store, Compactor: c, Counter: func(text string) int { return len(strings.Fields(text)) }}, core.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestStatus(t *testing.T) {
	store := memory.New()
	e := engine(t, store)
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
		for _, o := range []core.Outcome{
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

func TestStoreWithoutViews(t *testing.T) {
	_, err := live.Read(t.Context(), live.Source{Stores: []core.Store{bare{memory.New()}}})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// bare hides what only some stores can.
type bare struct{ core.Store }
