package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestToldInsideATurn: what a transcript showed of a turn is not stored again when the turn is accepted, also where the host has no names for its messages; what
// another turn says in the same words is.
func TestToldInsideATurn(t *testing.T) {
	turn := func() []message.Message {
		return one(user("ok"), calling("c1"), resulting("c1", "found"), assistant("done"))
	}
	for name, c := range map[string]struct {
		prompt string // appended by the host; in the transcript where it is empty
		loops  []int  // how much of the turn each further call shows
		own    bool   // the host goes on with what the engine returned
	}{
		"no further call":               {"ok", nil, false},
		"no further call, prompt shown": {"", nil, false},
		"the prompt alone":              {"ok", []int{1}, false},
		"a call":                        {"ok", []int{3}, false},
		"a call, prompt shown":          {"", []int{3}, false},
		"calls":                         {"ok", []int{1, 3, 3}, false},
		"the engine's own list":         {"ok", []int{3}, true},
		"the whole turn":                {"ok", []int{3, 4}, false},
	} {
		for _, after := range []bool{false, true} {
			for _, failed := range []bool{false, true} {
				for _, restarts := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, afterTurn %t, failed before %t, restarts %t", name, after, failed, restarts), func(t *testing.T) {
						f := newFixture(t)
						var host []message.Message
						if failed {
							host = one(user("ok"))
						}
						for n := range 3 {
							before := slices.Clone(host)
							begin := host
							if c.prompt == "" {
								begin = append(slices.Clone(host), turn()[:1]...)
							}
							sent := f.assemble(1000, transcript(c.prompt, begin...)).Messages
							if c.prompt != "" {
								sent = append(sent, turn()[0])
							}
							for _, shows := range c.loops {
								list := append(slices.Clone(before), turn()[:shows]...)
								if c.own {
									list = append(slices.Clone(sent), turn()[1:shows]...)
								}
								f.assemble(1000, transcript("", list...), func(r *core.AssembleRequest) { r.Call = core.CallLoop })
								if restarts {
									f.restart()
								}
							}
							host = append(host, turn()...)
							if after {
								if err := f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: host, PrePrompt: len(before)}); err != nil {
									t.Fatal(err)
								}
							} else {
								for range 2 {
									res, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: fmt.Sprint("turn ", n), Messages: turn()})
									if err != nil || res.Status == core.Committed && (len(res.IDs) != 4 || slices.Contains(res.IDs, "")) {
										t.Fatalf("CommitTurn = %+v, %v", res, err)
									}
								}
							}
							if n := f.stored(); n != len(host) {
								t.Fatalf("%d entries are stored for %d messages", n, len(host))
							}
						}
						f.sound()
						if got, want := len(f.assemble(1000, transcript("next", host...)).Messages), len(host); got != want {
							t.Errorf("the window shows %d messages of %d", got, want)
						}
						if n := f.stored(); n != len(host) {
							t.Errorf("%d entries are stored for %d messages", n, len(host))
						}
					})
				}
			}
		}
	}
}

// TestToldByAnotherProcess: the turn is accepted by another process than the one that was called inside it, when much of it has left the window, with what
// a subagent found behind it, and with a message that was erased meanwhile.
func TestToldByAnotherProcess(t *testing.T) {
	f := newFixture(t)
	host := one(user("look it up"))
	for n := range 8 {
		id := fmt.Sprint("c", n)
		host = append(host, calling(id), resulting(id, fmt.Sprintf("found %d of them, in a place of many words, as many as that", n)))
	}
	f.assemble(90, transcript("look it up"))
	for n := 3; n <= len(host); n += 2 {
		f.assemble(90, transcript("", host[:n]...), func(r *core.AssembleRequest) { r.Call = core.CallLoop })
	}
	child := core.SessionID{Agent: "main", Session: "child"}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child}); err != nil {
		t.Fatal(err)
	}
	if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: child, Result: "nothing"}); err != nil {
		t.Fatal(err)
	}
	page, err := f.parts.Store.Scan(t.Context(), core.ScanQuery{Scope: f.id.Scope(), Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{page.Entries[2].ID}}); err != nil {
		t.Fatal(err)
	}
	f.restart()
	stored := f.stored()
	if _, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "turn", Messages: append(slices.Clone(host), assistant("done"))}); err != nil {
		t.Fatal(err)
	}
	if n := f.stored(); n != stored+1 {
		t.Errorf("%d entries are stored more for one message that is new", n-stored)
	}
	f.sound()
}

// TestTurnThatIsNotShown: a further call to whose transcript the host appends all of the turn itself shows nothing of that turn, whatever a failed one left there; nor
// does one that shows the turn take what stands in front of it for a part of it.
func TestTurnThatIsNotShown(t *testing.T) {
	turn := one(user("and now"), assistant("done"), assistant("all of it"))
	for name, c := range map[string]struct {
		prompt string
		left   []message.Message
		shown  int
	}{
		"an answer was left":  {"and now", turn[1:], 0},
		"a prompt was left":   {"and now", turn[:1], 0},
		"all of it was left":  {"and now", turn, 0},
		"left, and shown":     {"", turn[1:], 1},
		"left, and all shown": {"", turn[1:], 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			host := append(one(user("first")), c.left...)
			if _, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "1", Messages: host[:1]}); err != nil {
				t.Fatal(err)
			}
			f.assemble(1000, transcript(c.prompt, append(slices.Clone(host), turn[:c.shown]...)...), func(r *core.AssembleRequest) { r.Call = core.CallLoop })
			if _, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "2", Messages: turn}); err != nil {
				t.Fatal(err)
			}
			host = append(host, turn...)
			if got := f.assemble(1000, transcript("", host...)); len(got.Messages) != len(host) {
				t.Errorf("the window shows %q", shown(got))
			}
			if n := f.stored(); n != len(host) {
				t.Errorf("%d entries are stored for %d messages", n, len(host))
			}
		})
	}
}

// TestToldBehindWhatNoTranscriptShows: what stands behind a prompt and is not the host's does not hide that a transcript showed the prompt.
func TestToldBehindWhatNoTranscriptShows(t *testing.T) {
	clock := func(n int) message.Message { return message.New(message.System, fmt.Sprintf("it is %d o'clock", n)) }
	for name, c := range map[string]struct {
		system bool // each turn has another system message
		again  bool // the prompt is asked for once more, behind what comes in between
		comes  func(t *testing.T, f *fixture, n int)
	}{
		"a system message that changes":                  {true, false, nil},
		"a system message that changes, asked for again": {true, true, nil},
		"a system message that changes, and a restart":   {true, true, func(_ *testing.T, f *fixture, _ int) { f.restart() }},
		"what a timer caused":                            {false, true, func(t *testing.T, f *fixture, n int) { t.Helper(); f.say(f.id, true, user(fmt.Sprint("tick ", n))) }},
		"a system message, and what a timer caused":      {true, true, func(t *testing.T, f *fixture, n int) { t.Helper(); f.say(f.id, true, user(fmt.Sprint("tick ", n))) }},
		"what a subagent handed back": {false, true, func(t *testing.T, f *fixture, n int) {
			t.Helper()
			child := core.SessionID{Agent: "main", Session: fmt.Sprint("child ", n)}
			if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child}); err != nil {
				t.Fatal(err)
			}
			if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: child, Result: fmt.Sprint("found ", n)}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for _, after := range []bool{false, true} {
			for _, loop := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, afterTurn %t, loop %t", name, after, loop), func(t *testing.T) {
					f := newFixture(t)
					var host []message.Message
					for n := range 4 {
						list := func(turn []message.Message, shows int) func(*core.AssembleRequest) {
							var all []message.Message
							if c.system {
								all = one(clock(n))
							}
							return transcript("", slices.Concat(all, host, turn[:shows])...)
						}
						turn := one(user(fmt.Sprint("question ", n)), calling(fmt.Sprint("c", n)), resulting(fmt.Sprint("c", n), "found"), assistant(fmt.Sprint("answer ", n)))
						f.assemble(2000, list(turn, 1))
						if c.comes != nil {
							c.comes(t, f, n)
						}
						if c.again {
							f.assemble(2000, list(turn, 1))
						}
						if loop {
							f.assemble(2000, list(turn, 3), func(r *core.AssembleRequest) { r.Call = core.CallLoop })
						}
						var err error
						if after {
							err = f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: slices.Concat(host, turn), PrePrompt: len(host)})
						} else {
							_, err = f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: fmt.Sprint(n), Messages: turn})
						}
						if err != nil {
							t.Fatal(err)
						}
						host = append(host, turn...)
					}
					f.sound()
					counts := make(map[string]int)
					for _, entry := range entriesOf(f) {
						counts[string(entry.Role)+entry.Text()]++
					}
					for _, m := range host {
						if n := counts[string(m.Role)+m.Text()]; n != 1 && m.Role != message.Tool && m.Text() != "" {
							t.Errorf("%q is stored %d times", m.Text(), n)
						}
					}
				})
			}
		}
	}
}

// TestToldOfAFailedTurn: a turn that says in the end what one before it said, which failed and stands in the transcript, is stored whole, also where no transcript
// came between the two.
func TestToldOfAFailedTurn(t *testing.T) {
	for name, prompt := range map[string]string{"asked": "", "loop": "now"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, afterTurn %t", name, after), func(t *testing.T) {
				f := newFixture(t)
				failed, turn := one(user("one"), assistant("ok")), one(user("two"), assistant("ok"))
				if prompt == "" {
					f.assemble(1000, transcript("", failed...))
				} else {
					f.assemble(1000, transcript("one"))
					f.assemble(1000, transcript("", failed...), inLoop)
				}
				all := join(failed, turn)
				var err error
				if after {
					err = f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: all, PrePrompt: 2})
				} else {
					_, err = f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "turn", Messages: turn})
				}
				if err != nil || f.stored() != 4 {
					t.Fatalf("%d stored, error %v, want all four", f.stored(), err)
				}
				for range 2 {
					if got := shown(f.assemble(1000, transcript("", all...))); got != "one | ok | two | ok" || f.stored() != 4 {
						t.Errorf("window = %q, %d stored, want all four", got, f.stored())
					}
				}
			})
		}
	}
}

// TestAcceptedIsNoPartOfTheNextTurn: what was accepted, and stands at the end of a transcript because nobody answered it, is not what the next turn says in the same words.
func TestAcceptedIsNoPartOfTheNextTurn(t *testing.T) {
	for _, after := range []bool{false, true} {
		for name, asks := range map[string]int{"no call": 0, "a call": 1, "calls": 2} {
			t.Run(fmt.Sprintf("%s, afterTurn %t", name, after), func(t *testing.T) {
				f := newFixture(t)
				var host []message.Message
				accept := func(n int, turn ...message.Message) {
					host = append(host, turn...)
					var err error
					if after {
						err = f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: host, PrePrompt: len(host) - len(turn)})
					} else {
						_, err = f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: fmt.Sprint("turn ", n), Messages: turn})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				accept(1, user("ok"))
				accept(2, user("and"))
				for range asks {
					f.assemble(1000, transcript("", host...))
				}
				accept(3, user("ok"), calling("c1"), resulting("c1", "found"), assistant("well"))
				if n := f.stored(); n != len(host) {
					t.Errorf("%d stored, want %d", n, len(host))
				}
				for range 2 {
					if got := shown(f.assemble(1000, transcript("", host...))); got != "ok | and | ok |  | found | well" || f.stored() != len(host) {
						t.Errorf("window = %q, %d stored, want all six", got, f.stored())
					}
				}
			})
		}
	}
}

// TestAnswerMadeAgain: the host takes the newest answer back and has it made again, with what the user said as it stood: that is stored and shown once.
func TestAnswerMadeAgain(t *testing.T) {
	for _, named := range []bool{false, true} {
		for _, whole := range []bool{false, true} {
			for _, commits := range []bool{false, true} {
				f := newFixture(t)
				name := func(id int, m message.Message) message.Message {
					if named {
						m.ID = fmt.Sprint("m", id)
					}
					return m
				}
				turns := 0
				play := func(base []message.Message, asked, answer message.Message) {
					f.assemble(1000, transcript("", join(base, one(asked))...), func(r *core.AssembleRequest) { r.Transcript.Whole = whole })
					turns++
					var err error
					if commits {
						_, err = f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: fmt.Sprint("t", turns), Messages: one(asked, answer)})
					} else {
						err = f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: join(base, one(asked, answer)), PrePrompt: len(base)})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				base, joke := one(name(1, user("q1")), name(2, assistant("a1"))), name(3, user("tell me a joke"))
				play(nil, base[0], base[1])
				play(base, joke, name(4, assistant("first joke")))
				play(base, joke, name(5, assistant("second joke")))
				if got, want := shown(f.assemble(1000)), "q1 | a1 | tell me a joke | second joke"; got != want || f.stored() != 5 {
					t.Errorf("named %t, whole %t, commits %t: shown %q, want %q; %d stored, want 5", named, whole, commits, got, want, f.stored())
				}
				f.sound()
			}
		}
	}
}
