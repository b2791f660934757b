package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestNewestFiveOfTurnsAlike: a host that names its messages shows the newest five of turns that say the same; each list has three messages in common with the last one.
func TestNewestFiveOfTurnsAlike(t *testing.T) {
	secret := func(c *engine.Config, _ *engine.Parts) {
		c.Redact = []engine.RedactRule{{Name: "code", Pattern: `code [0-9]+`}}
	}
	for _, names := range []string{"key", "id", "time"} {
		for _, what := range []string{"", "skipped", "erased", "redacted"} {
			f, name, say := newFixture(t), naming(names), "continue"
			if what == "redacted" {
				f, say = newFixture(t, secret), "try code 17 again"
			}
			all := one(name(user(say)), name(assistant("done")), name(user(say)), name(assistant("done")), name(user(say)))
			f.assemble(1000, transcript("", all...))
			for range 3 {
				if entries := entriesOf(f); what == "erased" {
					f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entries[len(entries)-1].ID}})
				}
				all = append(all, name(assistant("done")), name(user(say)))
				list := all[len(all)-5:]
				req := core.AssembleRequest{Session: f.id, Budget: 1000, PromptMode: core.PromptNone, Transcript: &core.Transcript{Messages: list}}
				if what == "skipped" {
					req.Transcript = &core.Transcript{Messages: list[2:], Skipped: 2, Digest: message.DigestOf(list[:2])}
				}
				_, err := f.engine.Assemble(t.Context(), req)
				if errors.Is(err, core.ErrNeedTranscript) {
					req.Transcript = &core.Transcript{Messages: list}
					_, err = f.engine.Assemble(t.Context(), req)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if n := f.stored(); n != len(all) {
				t.Errorf("%s, %q: %d stored, want %d", names, what, n, len(all))
			}
		}
	}
}

// TestIDsMadeAnew: a host makes the ids of its messages anew with every list; their times, or the ids of their calls, stay. Turns are alike.
func TestIDsMadeAnew(t *testing.T) {
	for _, stays := range []string{"times", "calls", "both"} {
		for _, newest := range []int{9, 10, 11, 13, 1000} {
			f := newFixture(t)
			var all []message.Message
			add := func(m message.Message) {
				if stays != "calls" {
					m.Time = time.Date(2026, 1, 1, 0, 0, len(all), 0, time.UTC)
				}
				all = append(all, m)
			}
			for turn := range 8 {
				add(user("continue"))
				list := join(all[max(len(all)-newest, 0):])
				for i := range list {
					list[i].ID = fmt.Sprint("list", turn, "-", i)
				}
				res := f.assemble(1000, transcript("", list...))
				if f.stored() != len(all) {
					t.Errorf("stay %s, newest %d, turn %d: %d stored, want %d: %s", stays, newest, turn, f.stored(), len(all), shown(res))
					break
				}
				if id := fmt.Sprint("call", turn); stays == "times" {
					add(assistant("hm"))
					add(user("go on"))
				} else {
					add(calling(id))
					add(resulting(id, "ok"))
				}
				add(assistant("done"))
			}
		}
	}
}

// TestNewMessageThatSaysWhatWasErased: a message is erased; another one says the same, under a name of its own, wherever the host puts it.
func TestNewMessageThatSaysWhatWasErased(t *testing.T) {
	for _, names := range []string{"id", "key", "time"} {
		for _, whole := range []bool{true, false} {
			said := func(n int, m message.Message) message.Message { return namedBy(names, n, m) }
			base := one(said(1, user("q1")), said(2, assistant("yes")), said(3, user("q2")), said(4, assistant("a2")), said(5, user("q3")))
			grown := join(base, one(said(6, assistant("yes")), said(7, user("q4"))))
			more := one(said(8, user("q1b")), said(9, assistant("yes")))
			for what, list := range map[string][]message.Message{
				"grown": grown, "cut": grown[2:], "cut to it": grown[4:], "in front": join(more, base), "behind": join(base[:2], more, base[2:]),
			} {
				f := newFixture(t)
				is := func(r *core.AssembleRequest) { r.Transcript.Whole = whole }
				f.assemble(1000, transcript("", base...), is)
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entriesOf(f)[1].ID}})
				f.assemble(1000, transcript("", list...), is)
				n, places := 0, 0
				for _, entry := range entriesOf(f) {
					switch entry.Type {
					case core.TypeMessage:
						n++
					case core.TypeErased:
						places++
					}
				}
				if n != 6 || places != 1 {
					t.Errorf("%s, whole %v, %s: %d messages and %d erased, want 6 and 1", names, whole, what, n, places)
				}
			}
		}
	}
}

// TestNewestOfTurnsAlikeBehindASystemPrompt: as TestNewestFiveOfTurnsAlike, for a host that puts its system prompt, or a line, in front.
func TestNewestOfTurnsAlikeBehindASystemPrompt(t *testing.T) {
	for _, head := range []message.Message{message.New(message.System, "You help."), user("(cut)")} {
		for _, names := range []string{"id", "key", "time"} {
			for _, newest := range []int{3, 5, 9} {
				f, name := newFixture(t), naming(names)
				all := one(name(user("continue")))
				for step := range 12 {
					f.assemble(1000, transcript("", join(one(head), all[max(0, len(all)-newest):])...))
					n := 0
					for _, e := range entriesOf(f) {
						if e.Message.Text() != head.Text() {
							n++
						}
					}
					if n != len(all) {
						t.Errorf("%s %q, names %s, newest %d, step %d: %d stored, want %d", head.Role, head.Text(), names, newest, step, n, len(all))
						break
					}
					all = append(all, name(assistant("done")), name(user("continue")))
				}
			}
		}
	}
}
