package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func calling(id string) message.Message {
	return message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: id, Name: "read", Args: `{}`}}}
}

func resulting(id, text string) message.Message {
	return message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: id, Name: "read", Text: text}}}
}

// A turn that failed stands in the transcript; the next one calls the same, or another, and gets the same. Its result is another one.
func TestSameResultAsInATurnThatFailed(t *testing.T) {
	for name, call := range map[string]message.Message{"the same call": calling("c2"), "another call": calling("c2")} {
		if name == "another call" {
			call.Parts[0].Args = `{"path":"b"}`
		}
		f := newFixture(t)
		f.assemble(1000, transcript("", user("q"), calling("c1"), resulting("c1", "ok")))
		asked := user("q2")
		asked.ID = "h2"
		_, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "turn", Messages: []message.Message{asked, call, resulting("c2", "ok")}})
		if err != nil {
			t.Fatal(err)
		}
		if n := f.stored(); n != 6 {
			t.Errorf("%s: %d stored, want 6", name, n)
		}
		f.sound()
	}
}

func inLoop(r *core.AssembleRequest) { r.Call = core.CallLoop }

// Two calls that give the same have two results, also where the engine shortened the first.
func TestSameResultTwice(t *testing.T) {
	text := strings.Repeat("all is well ", 300)
	begin := one(user("q"), calling("c1"), resulting("c1", text), assistant("done"), user("q2"))
	for _, budget := range []int{200, 5000} {
		for from := range 2 { // with and without the first message of the output
			f := newFixture(t)
			first := f.assemble(budget, transcript("now", begin...))
			more := one(calling("c2"), resulting("c2", text), assistant("done too"))
			f.assemble(budget, transcript("now", join(first.Messages[from:], more)...), inLoop)
			if n := f.stored(); n != len(begin)+len(more) {
				t.Errorf("budget %d, output from %d on: %d stored, want %d", budget, from, n, len(begin)+len(more))
			}
		}
	}
}

// What came behind the engine's own output is not new when the host shows it behind its own history.
func TestTurnSeenInTheLoopFirst(t *testing.T) {
	f := newFixture(t)
	begin := one(user("q"), calling("c1"))
	more := one(resulting("c1", "well"), assistant("done"))
	first := f.assemble(1000, transcript("now", begin...))
	f.assemble(1000, transcript("now", join(first.Messages, more)...), inLoop)
	f.assemble(1000, transcript("now", join(begin, more)...))
	if n := f.stored(); n != 4 {
		t.Errorf("%d stored, want 4", n)
	}
}

// A host that deletes just what the engine does not show has deleted it all the same.
func TestDeletionThatLeavesTheOutput(t *testing.T) {
	f := newFixture(t)
	all := one(user("q0"), assistant("a0"), user("q1"), resulting("gone", "nobody asked for this"), assistant("a1"), user("q2"), assistant("a2"))
	first := f.assemble(1000, transcript("now", all...))
	left := slices.Delete(slices.Clone(all), 3, 4)
	if got, want := shown(first), "q0 | a0 | q1 | a1 | q2 | a2"; got != want {
		t.Fatalf("window = %q, want %q: nothing is tested", got, want)
	}
	f.assemble(1000, transcript("now", left...))
	if n := f.known(); n != 6 || f.finds("nobody") {
		t.Errorf("%d known, found %t", n, f.finds("nobody"))
	}
}

func TestNegativeSkipped(t *testing.T) {
	f := newFixture(t)
	bad := &core.Transcript{Skipped: -1, Messages: one(user("q"))}
	_, assembled := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 100, Transcript: bad})
	_, bootstrapped := f.engine.Bootstrap(t.Context(), core.BootstrapRequest{Session: f.id, Transcript: bad})
	_, compacted := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Transcript: bad})
	for i, err := range []error{assembled, bootstrapped, compacted} {
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "transcript.skipped") {
			t.Errorf("call %d: %v, want ErrInvalid that names the field", i, err)
		}
	}
	if n := f.stored(); n != 0 {
		t.Errorf("%d stored", n)
	}
}
