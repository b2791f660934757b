package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// beside is a message of Anthropic's API with a tool's result, and text beside it.
func beside(t *testing.T, id, text string) message.Message {
	t.Helper()
	m, err := decoded(message.FormatAnthropic, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"stopped"},{"type":"text","text":%q}]}`, id, text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTypedBesideAResult: a client says what the user typed while a tool ran in the message that carries the result. It is what the user asked last, and stays as
// long as its turn lasts; what clients put there by themselves is not.
func TestTypedBesideAResult(t *testing.T) {
	const second, reminder = "second question: do this instead", "<system-reminder>\nbe brief\n</system-reminder>"
	for _, provider := range []string{"", "anthropic", "openai", "gemini"} {
		for _, compacts := range []bool{false, true} {
			for text, want := range map[string]string{second: second, reminder + "\n" + second: second, reminder: "first question"} {
				f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.History.Provider = provider })
				f.ingest(user("first question"), calling("c1"), beside(t, "c1", text))
				for n := 2; n < 9; n++ {
					f.ingest(calling(fmt.Sprint("c", n)), resulting(fmt.Sprint("c", n), "found"+strings.Repeat(" word", 30)))
					if compacts && n == 6 {
						f.forceCompact(150)
					}
					what := fmt.Sprintf("%q, compacts %v, %q, step %d", provider, compacts, text, n)
					got := shown(f.assemble(150))
					if !strings.Contains(got, want) {
						t.Errorf("%s: shown: %q, want %q", what, got, want)
					}
					f.restart()
					if again := shown(f.assemble(150)); again != got {
						t.Errorf("%s: after a restart: %q, before: %q", what, again, got)
					}
				}
				f.ingest(assistant("done"), user("third question"))
				if got := shown(f.assemble(150)); !strings.Contains(got, "third question") {
					t.Errorf("%q: shown: %q, want the third question", provider, got)
				}
				f.sound()
			}
		}
	}
}

// TestTypedBesideALargeResult: what was typed beside a result stays where the result has no room.
func TestTypedBesideALargeResult(t *testing.T) {
	m := beside(t, "c1", "second question")
	m.Parts[0].Text = "found" + strings.Repeat(" word", 500)
	m.Raw, m.Parts[0].Raw = nil, nil
	f := newFixture(t)
	f.ingest(user("first question"), calling("c1"), m)
	for n := 2; n < 9; n++ {
		f.ingest(calling(fmt.Sprint("c", n)), resulting(fmt.Sprint("c", n), "found"+strings.Repeat(" word", 30)))
		if got := shown(f.assemble(200)); !strings.Contains(got, "second question") {
			t.Errorf("step %d: shown: %q", n, got)
		}
	}
	f.sound()
}
