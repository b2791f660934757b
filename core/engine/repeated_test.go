package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// called makes messages of words, of the role that their first letter says, which the host calls by the same name whenever it says the same.
func called(by, words string) []message.Message {
	var out []message.Message
	for w := range strings.FieldsSeq(words) {
		m := message.New(map[byte]message.Role{'u': message.User, 'a': message.Assistant, 's': message.System}[w[0]], w)
		if by == "key" {
			m.Key = w
		} else {
			m.ID = w
		}
		out = append(out, m)
	}
	return out
}

// sound fails the test when the session's view and the store's entries do not agree.
func (f *fixture) sound() {
	f.t.Helper()
	for flaw, err := range engine.Flaws(f.t.Context(), f.parts.Store) {
		f.t.Errorf("%v, error %v", flaw, err)
	}
}

// TestRepeatedMessages: a transcript that lists a message more than once, with all that its host knows it by, shows it as often, and is compacted like any other.
func TestRepeatedMessages(t *testing.T) {
	for name, lists := range map[string][]string{
		"in the midst":             {"u1 a2 u3 a4", "u1 a2 u1 u3 a4 u5 a6"},
		"at the end":               {"u1 a2 u3 a4", "u1 a2 u3 a4 u1"},
		"at the end, once more":    {"u1 a2 u3 a4", "u1 a2 u3 a4 u1", "u1 a2 u3 a4 u1 u1 a4"},
		"in front of what is new":  {"u1 a2", "u1 a2 u1 u3 a2 a4"},
		"in front":                 {"u1 a2 u3 a4", "u3 u1 a2 u3 a4"},
		"at once":                  {"u1 a2 u1 u1 a4 u5 a6"},
		"taken back, and again":    {"u1 a2 u1 u3 a4", "u1 a2", "u1 a2 u1 u3 a4"},
		"after a rewind":           {"u1 a2 u3 a4 u5 a6", "u1 a2", "u1 a2 u7 u3 a4 u1 a8"},
		"after a reset":            {"u1 a2 u1 a4", "u7 a8", "u7 u1 u1 u1 a2"},
		"a system message":         {"s0 u1 a2 u3", "s0 u1 a2 s0 u3 a4"},
		"a system message, later":  {"s0 u1 a2", "s0 u1 a2 u3 s0 u5"},
		"two new system messages":  {"u1 a2", "s0 s0 u1 a2 u3 a4 u5 a6"},
		"with another one changed": {"u1 a2 u3 a4", "u1 a2 u1 u7 a4 u5"},
	} {
		for _, by := range []string{"id", "key"} {
			for _, viewed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s by %s, views kept %t", name, by, viewed), func(t *testing.T) {
					f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
						if !viewed {
							p.Store = viewless{p.Store}
						}
					})
					for _, list := range lists {
						f.assemble(1000, transcript("now", called(by, list)...))
					}
					last := lists[len(lists)-1]
					stored := f.stored()
					for range 2 {
						if got := shown(f.assemble(1000, transcript("now", called(by, last)...))); got != strings.Join(strings.Fields(last), " | ") {
							t.Errorf("the host shows %q, the window is %q", last, got)
						}
						if n := f.stored(); n != stored {
							t.Errorf("the same list again stores %d more", n-stored)
						}
						f.sound()
						f.restart()
					}
					if res := f.compact(1000); !res.OK || !res.Compacted {
						t.Errorf("Compact = %+v", res)
					}
				})
			}
		}
	}
}

// TestRepeatedElsewhere: the same where the host repeats nothing of what it knows to be known.
func TestRepeatedElsewhere(t *testing.T) {
	f := newFixture(t)
	list := called("id", "u1 a2 u3 a4")
	d := message.DigestOf(list)
	f.assemble(1000, transcript("now", list...))
	all := called("id", "u1 a2 u3 a4 u1 u5 a6")
	_, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, Transcript: &core.Transcript{Skipped: 4, Digest: d, Messages: all[4:]}})
	if got := shown(f.assemble(1000, transcript("now", all...))); got != "u1 | a2 | u3 | a4 | u1 | u5 | a6" {
		t.Errorf("the window is %q, with what is new alone: %v", got, err)
	}
	f.sound()
}
