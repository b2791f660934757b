package engine_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestTurnLongerThanItsWindow: a turn whose beginning left the window while its tools were called is the same turn when it is committed, or over.
func TestTurnLongerThanItsWindow(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, calls := range []int{2, 8, 40} {
		for _, commit := range []bool{true, false} {
			t.Run(strconv.Itoa(calls)+" "+strconv.FormatBool(commit), func(t *testing.T) {
				f := newFixture(t)
				turn := []message.Message{user("the prompt")}
				for i := range calls {
					call, result := assistant("step "+strconv.Itoa(i)), message.New(message.Tool, "")
					call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: "c" + strconv.Itoa(i), Name: "f", Args: "{}"})
					result.Parts = []message.Part{{Kind: message.ToolResult, CallID: "c" + strconv.Itoa(i), Name: "f", Text: strings.Repeat("word ", 30) + strconv.Itoa(i)}}
					turn = append(turn, call, result)
				}
				for i := range turn {
					turn[i].Time = at.Add(time.Duration(i) * time.Second)
				}
				f.assemble(300, func(r *core.AssembleRequest) {
					r.Call, r.Transcript = core.CallLoop, &core.Transcript{Messages: turn, Whole: true}
				})
				answer := assistant("done")
				answer.Time = at.Add(time.Hour)
				turn = append(turn, answer)
				if commit {
					if _, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: turn}); err != nil {
						t.Fatal(err)
					}
				} else if err := f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: turn}); err != nil {
					t.Fatal(err)
				}
				if n := f.stored(); n != len(turn) {
					t.Errorf("%d entries are stored, %d messages were said", n, len(turn))
				}
			})
		}
	}
}

// TestPromptFarInFrontOfTheWindow: a session that is seen for the first time in the midst of a very long turn shows the prompt of that turn, however far in front
// of the window it stands.
func TestPromptFarInFrontOfTheWindow(t *testing.T) {
	f := newFixture(t)
	said := []message.Message{user("the prompt")}
	for i := range 600 {
		id := "c" + strconv.Itoa(i)
		said = append(said, calling(id), resulting(id, strings.Repeat("word ", 30)))
	}
	f.ingest(said...)
	if got := shown(f.assemble(1000)); !strings.Contains(got, "the prompt | [") || strings.Count(got, "word ") < 100 {
		t.Errorf("shown: %q", got)
	}
}

// TestTurnBehindARewind: a turn that was imported, and is over when the host has gone back to it, is not stored again, although nobody asked for a window.
func TestTurnBehindARewind(t *testing.T) {
	f := newFixture(t)
	host := []message.Message{user("q1"), assistant("a1"), user("q2"), assistant("a2")}
	for i := range host {
		host[i].Time = time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
	}
	for _, n := range []int{4, 2} {
		if _, err := f.engine.Bootstrap(t.Context(), core.BootstrapRequest{Session: f.id, Transcript: &core.Transcript{Messages: host[:n]}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: host[:2]}); err != nil {
		t.Fatal(err)
	}
	if n := f.stored(); n != len(host) {
		t.Errorf("%d entries are stored, %d messages were said", n, len(host))
	}
	if got := shown(f.assemble(1000)); got != "q1 | a1" {
		t.Errorf("shown: %q", got)
	}
}
