package engine_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestOutcomesAreKept: outcomes are kept with the session's arm and a time, in the order they were first given; a later one of the same session, turn and name takes
// the place of the earlier; those of another agent are its own.
func TestOutcomesAreKept(t *testing.T) {
	host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 6_999_999, time.FixedZone("there", 3600))}
	now := time.Date(2026, 1, 2, 2, 4, 5, 6_000_000, time.UTC)
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = host })
	if arm, err := f.engine.Arm(t.Context(), f.id, func(string) string { return "b" }); err != nil || arm != "b" {
		t.Fatalf("Arm = %q, %v", arm, err)
	}
	given := time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC)
	other := core.SessionID{Agent: f.id.Agent, Session: "s1:2"}
	foreign := core.SessionID{Agent: "other", Session: f.id.Session}
	for _, o := range []engine.Outcome{
		{Session: f.id, Name: "solved", Value: 1}, {Session: f.id, Turn: 2, Name: "solved", Value: 0.5, Time: given}, {Session: other, Name: "solved", Value: 3},
		{Session: f.id, Name: "cost", Value: 9}, {Session: foreign, Name: "solved", Value: 7}, {Session: f.id, Turn: 2, Name: "solved", Value: 4, Arm: "made up"},
	} {
		if err := f.engine.Score(t.Context(), o); err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
	}
	want := map[string][]engine.Outcome{
		"main": {
			{Session: f.id, Name: "solved", Value: 1, Arm: "b", Time: now}, {Session: f.id, Turn: 2, Name: "solved", Value: 4, Arm: "b", Time: now},
			{Session: other, Name: "solved", Value: 3, Time: now}, {Session: f.id, Name: "cost", Value: 9, Arm: "b", Time: now},
		},
		"other": {{Session: foreign, Name: "solved", Value: 7, Time: now}}, "nobody": nil,
	}
	for range 2 {
		for agent, outcomes := range want {
			got, err := f.engine.Outcomes(t.Context(), agent)
			if diff := cmp.Diff(outcomes, got); err != nil || diff != "" {
				t.Errorf("of %s: %v (-want +got):\n%s", agent, err, diff)
			}
		}
		f.restart()
	}
	if err := f.engine.Score(t.Context(), engine.Outcome{Session: f.id, Name: "solved", Time: given}); err != nil {
		t.Error(err)
	}
	if got, err := f.engine.Outcomes(t.Context(), f.id.Agent); err != nil || len(got) != 4 || !got[0].Time.Equal(given) {
		t.Errorf("given with a time: %+v, %v", got, err)
	}
}

// TestOutcomesAreChecked: an outcome that says nothing that can be counted is refused and keeps nothing; what a store cannot do is an error.
func TestOutcomesAreChecked(t *testing.T) {
	broken := &failing{Store: memory.New()}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Failure, p.Store = engine.FailStrict, broken })
	good := engine.Outcome{Session: f.id, Name: "azAZ09-_.", Value: 1, Turn: 1}
	for says, change := range map[string]func(*engine.Outcome){
		"":        func(*engine.Outcome) {},
		"long":    func(o *engine.Outcome) { o.Name = strings.Repeat("n", 64) },
		"of all":  func(o *engine.Outcome) { o.Turn = 0 },
		"name":    func(o *engine.Outcome) { o.Name = "" },
		"name ":   func(o *engine.Outcome) { o.Name = strings.Repeat("n", 65) },
		"name  ":  func(o *engine.Outcome) { o.Name = "a b" },
		"name/":   func(o *engine.Outcome) { o.Name = "a/b" },
		"name@":   func(o *engine.Outcome) { o.Name = "@`[{:" },
		"nameé":   func(o *engine.Outcome) { o.Name = "é" },
		"value":   func(o *engine.Outcome) { o.Value = math.NaN() },
		"value+":  func(o *engine.Outcome) { o.Value = math.Inf(1) },
		"value-":  func(o *engine.Outcome) { o.Value = math.Inf(-1) },
		"turn":    func(o *engine.Outcome) { o.Turn = -1 },
		"agent":   func(o *engine.Outcome) { o.Session.Agent = "" },
		"session": func(o *engine.Outcome) { o.Session.Session = "" },
	} {
		o := good
		change(&o)
		err := f.engine.Score(t.Context(), o)
		field := strings.TrimRight(says, " /@é+-")
		refused := field != "" && field != "long" && field != "of all"
		if refused != errors.Is(err, core.ErrInvalid) || refused && !strings.Contains(err.Error(), field) || !refused && err != nil {
			t.Errorf("%q: %v", says, err)
		}
	}
	if got, err := f.engine.Outcomes(t.Context(), f.id.Agent); err != nil || len(got) != 3 {
		t.Errorf("%+v, %v are kept, want three", got, err)
	}
	broken.err = errors.New("disk on fire")
	if _, err := f.engine.Outcomes(t.Context(), f.id.Agent); !errors.Is(err, broken.err) {
		t.Errorf("reading: %v", err)
	}
	if err := f.engine.Score(t.Context(), good); !errors.Is(err, broken.err) {
		t.Errorf("keeping: %v", err)
	}
	f.restart()
	if _, err := f.engine.Arm(t.Context(), f.id, func(string) string { return "a" }); !errors.Is(err, broken.err) {
		t.Errorf("an arm: %v", err)
	}
}

// TestRefresh: an engine that a store tells nothing reads every session anew once it is told that somebody else changed the store.
func TestRefresh(t *testing.T) {
	store := viewless{memory.New()}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
	ids := []core.SessionID{f.id, {Agent: "other", Session: "s1"}}
	for _, id := range ids {
		f.say(id, false, user("one"), assistant("two"))
		f.assemble(1000, func(r *core.AssembleRequest) { r.Session = id })
		entry := core.Entry{ID: "x" + id.Agent, Key: "x", Agent: id.Agent, Session: id.Session, Seq: 2, Role: "user", Type: core.TypeMessage, Message: user("three"), Fingerprint: "x", Tokens: 5}
		if _, err := store.Append(t.Context(), []core.Entry{entry}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.engine.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if got := shown(f.assemble(1000, func(r *core.AssembleRequest) { r.Session = id })); got != "one | two | three" {
			t.Errorf("%s shows %q", id, got)
		}
	}
}
