package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestListThatGoesOnWithNothing: an output does not show a message that says nothing; a host that hands its own list over inside the turn, which begins as the output does and
// goes on with that message, has said it once.
func TestListThatGoesOnWithNothing(t *testing.T) {
	f := newFixture(t)
	host := []message.Message{user("first"), assistant("one"), user("second"), user("")}
	f.ingest(host...)
	for _, call := range []core.Call{core.CallPrompt, core.CallLoop, core.CallLoop} {
		f.assemble(1000, func(r *core.AssembleRequest) {
			r.Call, r.Prompt = call, "and now"
			r.Settings.Provider = "google"
			if call == core.CallLoop {
				r.Transcript = &core.Transcript{Messages: host}
			}
		})
	}
	if n := len(f.ids("")); n != 1 {
		t.Errorf("what says nothing is stored %d times", n)
	}
}

// TestListBehindItsSystemMessage: where the window holds nothing but the system message, the host's own list begins like what it was given. Whatever stands behind that, a
// line of its own first perhaps, is stored once.
func TestListBehindItsSystemMessage(t *testing.T) {
	long := strings.Repeat("of the budget report ", 40)
	host := []message.Message{system("rules"), user("first " + long), user("second " + long), calling("c1"), resulting("c1", "found "+long), user("")}
	for name, next := range map[string][]message.Message{
		"the list":            host,
		"without its opening": append(host[:1:1], host[2:]...),
		"cut by a line":       append([]message.Message{host[0], user("(earlier messages were cut)")}, host[2:]...),
		"cut by two":          append([]message.Message{host[0], user("(earlier messages were cut)"), assistant("(I see)")}, host[3:]...),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			rules := func(r *core.AssembleRequest) { r.Settings.Provider = "anthropic" }
			f.ingest(host[1], user("")) // the list takes that back, and the window is sought anew
			given := f.assemble(60, transcript("and now", host...), rules)
			if len(given.Messages) != 1 || given.Messages[0].Role != message.System {
				t.Fatalf("shown: %q: nothing is tested", shown(given))
			}
			for range 2 {
				f.assemble(1000, transcript("and now", next...), inLoop, rules)
			}
			got := shown(f.assemble(100_000, rules))
			for _, text := range []string{"first", "second", "found"} {
				if n := strings.Count(got, text); n != 1 {
					t.Errorf("%q is shown %d times: %.2000q", text, n, got)
				}
			}
			if strings.Count(got, "(earlier") > 1 || strings.Count(got, "(I see") > 1 {
				t.Errorf("a line of the host's is shown twice: %.2000q", got)
			}
			f.sound()
		})
	}
}

// TestWhatSaysNothingIsNoAnchor: of a list that a host cut, what says nothing does not tell how much was cut.
func TestWhatSaysNothingIsNoAnchor(t *testing.T) {
	for _, names := range []string{"none", "id", "key", "time"} {
		f, say := newFixture(t), naming(names)
		first, two, unheard, three := []message.Message{say(user("one")), say(assistant(""))}, say(assistant("two")), say(assistant("")), say(user("three"))
		f.assemble(1000, transcript("", append(first, two, three)...))
		for range 3 {
			got := shown(f.assemble(1000, transcript("", user("(earlier messages were cut)"), unheard, three)))
			if strings.Count(got, "one") != 1 || strings.Count(got, "two") != 1 || strings.Count(got, "three") != 1 {
				t.Errorf("names %s: shown: %q", names, got)
			}
			f.sound()
		}
	}
}

// TestAnswersBesideABlock: what is recalled in a turn stands behind an answer where nothing else does. Another answer of that turn is no part of the one in front: what was sent
// stays as it was, also where the provider merges the assistant's messages.
func TestAnswersBesideABlock(t *testing.T) {
	for _, provider := range []string{"anthropic", "google", "openai"} {
		k := newQuoting(t, nil, user("what it was"))
		k.propose([]float64{1}, 0)
		k.id.Session = "of answers alone"
		ask := func(call core.Call) core.AssembleResult {
			return k.assemble(1000, full, func(r *core.AssembleRequest) { r.Call, r.Prompt, r.Settings.Provider = call, "what was it?", provider })
		}
		typed := user("of the host's own kind")
		typed.Type = "apart"
		k.ingest(typed, assistant("one"))
		before := ask(core.CallPrompt)
		if before.RecallLen != 1 || before.RecallAt != len(before.Messages)-1 {
			t.Fatalf("%s: shown: %q: nothing is tested", provider, shown(before))
		}
		k.ingest(user(""))
		for _, answer := range []string{"two", "three"} {
			k.ingest(assistant(answer))
			got := ask(core.CallLoop)
			n := len(before.Messages)
			if len(got.Messages) <= n || shown(core.AssembleResult{Messages: got.Messages[:n]}) != shown(before) || !strings.Contains(shown(got), answer) || !strings.Contains(shown(got), typed.Text()) {
				t.Errorf("%s: before %q, now %q", provider, shown(before), shown(got))
			}
		}
		k.sound()
	}
}
