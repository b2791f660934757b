package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestOwnOutputWithMergedNotes: a provider's rule merges what the engine says of what is left out with the user's message. Handed back, such a message
// says as well as a note of its own that what is missing behind it is only not shown, whatever came in meanwhile.
func TestOwnOutputWithMergedNotes(t *testing.T) {
	for name, between := range map[string]func(f *fixture) error{
		"nothing": func(*fixture) error { return nil },
		"a subagent ended": func(f *fixture) error {
			return f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{
				Parent: f.id, Child: core.SessionID{Agent: "main", Session: "child"}, Result: "found", Reason: "completed",
			})
		},
		"a timer":   tick,
		"a restart": func(f *fixture) error { f.restart(); return nil },
		"a timer and a restart": func(f *fixture) error {
			defer f.restart()
			return tick(f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			anthropic := func(r *core.AssembleRequest) { r.Settings.Provider = "anthropic" }
			host := []message.Message{user("do it")}
			for i := range 30 {
				id := fmt.Sprint(i)
				host = append(host,
					message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: id, Name: "read", Args: `{"n":` + id + `}`}}},
					message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: id, Name: "read", Text: "some words of file number " + id}}})
			}
			first := f.assemble(150, transcript("next", host...), anthropic)
			if len(first.Messages) > 20 || first.Messages[0].Text() == "do it" {
				t.Fatalf("no note is merged with the prompt: %s", shown(first))
			}
			if err := between(f); err != nil {
				t.Fatal(err)
			}
			before := f.stored()
			f.assemble(150, transcript("next", first.Messages...), loopCall, anthropic)
			f.assemble(150, transcript("next", host...), anthropic)
			if n := f.stored(); n != before {
				t.Errorf("%d entries are stored, before %d were", n, before)
			}
		})
	}
}

// tick lets a timer speak.
func tick(f *fixture) error {
	_, err := f.engine.Ingest(f.t.Context(), core.IngestRequest{Session: f.id, Message: user("tick"), Heartbeat: true})
	return err
}

// TestOwnOutputAfterARestart: what a rule put into the output, of whatever provider, is known again by a process that did not send it.
func TestOwnOutputAfterARestart(t *testing.T) {
	for _, provider := range []string{"anthropic", "google", "openai", "bedrock", "mistral", "nobody"} {
		t.Run(provider, func(t *testing.T) {
			f := newFixture(t)
			to := func(r *core.AssembleRequest) { r.Settings.Provider = provider }
			var host []message.Message
			for i := range 30 {
				id := fmt.Sprint(i)
				host = append(host, calling(id), resulting(id, "some words of file number "+id))
			}
			f.assemble(150, transcript("next", host...), to)
			again := f.assemble(150, transcript("next", host...), to) // nothing to publish
			if len(again.Messages) > 20 {
				t.Fatalf("all is shown: %s", shown(again))
			}
			if err := tick(f); err != nil {
				t.Fatal(err)
			}
			before := f.stored()
			f.restart()
			looped := f.assemble(150, transcript("next", again.Messages...), loopCall, to)
			if n := f.stored(); n != before {
				t.Errorf("%d entries are stored, before %d were: %s", n, before, shown(looped))
			}
			if shown(looped) != shown(again) {
				t.Errorf("shown %s, before %s", shown(looped), shown(again))
			}
		})
	}
}

// TestEmptyOwnOutput: where all is erased or says nothing the engine shows nothing; that handed back is no reset.
func TestEmptyOwnOutput(t *testing.T) {
	f := newFixture(t)
	anthropic := func(r *core.AssembleRequest) { r.Settings.Provider = "anthropic" }
	host := []message.Message{user("one"), assistant("")}
	f.assemble(1000, transcript("next", host...), anthropic)
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("one").ID}})
	if out := f.assemble(1000, transcript("next", host...), anthropic); len(out.Messages) > 0 {
		t.Fatalf("shown: %s", shown(out))
	}
	f.assemble(1000, transcript("next"), loopCall, anthropic)
	v, err := f.store.LoadView(t.Context(), f.id)
	if err != nil || v.Len() != 2 {
		t.Errorf("%d entries are in force, want 2: %v", v.Len(), err)
	}
}

// TestEmptyOwnOutputAfterARestart: that the engine showed nothing is known to the next process too, which would show a summary. What the host goes on with behind it is no new beginning, and so
// what was erased is not stored again when the host hands over all it has.
func TestEmptyOwnOutputAfterARestart(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat(" some words", 30)
	host := one(user("one"), calling("a"), resulting("a", "done"+long), resulting("a", "and done"+long))
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: f.ingest(host...).IDs[:2]})
	if out := f.assemble(190, transcript("", host...), loopCall); len(out.Messages) > 0 {
		t.Fatalf("shown: %s", shown(out))
	}
	if res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 190, Force: true}); err != nil || !res.Compacted {
		t.Fatalf("%+v, %v: nothing is tested", res, err)
	}
	before := f.stored()
	f.restart()
	more := one(calling("b"), resulting("b", "done as well"))
	more[0].Parts[0].Args = `{"n":2}`
	f.assemble(190, transcript("", more...), loopCall)
	f.assemble(190, transcript("", join(host, more)...), loopCall)
	if n := f.stored(); n != before+len(more) {
		t.Errorf("%d entries are stored, want %d", n, before+len(more))
	}
}

// TestOwnOutputOfAnotherProcess: what the engine shortened is known again by the next process, also where something came in meanwhile, or was stored just before
// the first one died.
func TestOwnOutputOfAnotherProcess(t *testing.T) {
	for name, between := range map[string]func(f *fixture, disk *fullDisk){
		"a message": func(f *fixture, _ *fullDisk) { f.ingest(assistant("by the way")) },
		"a subagent's result that was stored and not published": func(f *fixture, disk *fullDisk) {
			disk.noViews = true
			req := core.SubagentEnded{Parent: f.id, Child: core.SessionID{Agent: "main", Session: "child"}, Result: "found", Reason: "completed"}
			if err := f.engine.OnSubagentEnded(t.Context(), req); err == nil {
				t.Error("nothing is tested")
			}
			disk.noViews = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &fullDisk{Store: memory.New()}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = disk })
			f.store = disk.Store
			first := f.assemble(1000, transcript("now", user("q"), calling("c1"), resulting("c1", strings.Repeat("word ", 3000))))
			between(f, disk)
			before := f.stored()
			f.restart()
			again := f.assemble(1000, transcript("now", first.Messages...), inLoop)
			if n := f.stored(); n != before {
				t.Errorf("%d stored, before %d", n, before)
			}
			if len(again.Messages) < len(first.Messages) {
				t.Errorf("shown: %s", shown(again))
			}
			v, err := f.store.LoadView(t.Context(), f.id)
			if err != nil || v.Len() < len(first.Messages) {
				t.Errorf("%d in force: %v", v.Len(), err)
			}
		})
	}
}

// TestOwnOutputThatGrew: a message that a rule made of several of a user's is known again, and by its digest alone, when more was merged into it
// than in the call before.
func TestOwnOutputThatGrew(t *testing.T) {
	f := newFixture(t)
	anthropic := func(r *core.AssembleRequest) { r.Settings.Provider = "anthropic" }
	for _, text := range []string{"one", "two", "three"} {
		f.ingest(user(text))
		sent := f.assemble(1000, anthropic)
		if len(sent.Messages) != 1 {
			t.Fatalf("shown: %q: nothing is tested", shown(sent))
		}
		f.assemble(1000, loopCall, anthropic, func(r *core.AssembleRequest) {
			r.Transcript = &core.Transcript{Skipped: 1, Digest: message.DigestOf(sent.Messages)}
		})
		f.assemble(1000, transcript("", sent.Messages...), loopCall, anthropic)
	}
	if n := f.stored(); n != 3 {
		t.Errorf("%d entries are stored, want 3", n)
	}
}

// TestOwnOutputOfTwoProcesses: the calls of a turn are answered by two processes, and history is compacted between two of them. What either of them has to say of
// what is left out is nobody's message for the other one, which sent something else itself before.
func TestOwnOutputOfTwoProcesses(t *testing.T) {
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = teller{} })
	other := f.second()
	host := one(user("do it"))
	for i := range 3 {
		id := fmt.Sprint(i)
		host = join(host, one(calling(id), resulting(id, "some words of file number "+id)))
	}
	sent := f.assemble(100, transcript("", host...), loopCall)
	if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil {
		t.Fatal(err)
	}
	before := f.stored()
	compacted := other.assemble(100, transcript("", host...), loopCall)
	if shown(compacted) == shown(sent) || !strings.Contains(shown(compacted), "earlier steps of this turn") {
		t.Fatalf("shown before: %q, then: %q: nothing is tested", shown(sent), shown(compacted))
	}
	f.assemble(100, transcript("", compacted.Messages...), loopCall)
	if n := f.stored(); n != before {
		t.Errorf("%d entries are stored, before %d were: handed back was %q", n, before, shown(compacted))
	}
}
