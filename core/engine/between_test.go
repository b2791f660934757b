package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// naming returns what gives each message a name of its own, as hosts do: a "time", an "id", a "key", or "none".
func naming(by string) func(message.Message) message.Message {
	n := 0
	return func(m message.Message) message.Message {
		n++
		switch by {
		case "time":
			m.Time = time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)
		case "id":
			m.ID = fmt.Sprint("h", n)
		case "key":
			m.Key = fmt.Sprint("k", n)
		}
		return m
	}
}

// TestWhatComesInsideATurn: a turn that transcripts showed is stored once, whatever no transcript shows came between its messages, and by whatever the host knows them.
func TestWhatComesInsideATurn(t *testing.T) {
	const turns = 3
	for _, names := range []string{"none", "time", "id", "key"} {
		for _, way := range []string{"commit", "after turn"} {
			for _, between := range []string{"nothing", "timer", "timer's turn", "subagent", "clock", "restart", "timer, restart", "timer, subagent, clock"} {
				for _, loop := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %s, %s, loop %v", names, way, between, loop), func(t *testing.T) {
						f := newFixture(t)
						clock, say := 0, naming(names)
						var host []message.Message
						all := func() []message.Message {
							return append([]message.Message{message.New(message.System, fmt.Sprint("it is ", clock))}, host...)
						}
						ask := func(call core.Call) core.AssembleResult {
							return f.assemble(4000, func(req *core.AssembleRequest) {
								req.Call, req.Transcript = call, &core.Transcript{Messages: all()}
							})
						}
						comes := func(turn string) {
							for what := range strings.SplitSeq(between, ", ") {
								var err error
								tick := message.New(message.User, "tick "+turn)
								switch what {
								case "timer":
									_, err = f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: tick, Heartbeat: true})
								case "timer's turn":
									_, err = f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{
										Session: f.id, AdvancementKey: "timer " + turn, Messages: []message.Message{tick, assistant("tock")}, Heartbeat: true,
									})
								case "subagent":
									kid := core.SessionID{Agent: f.id.Agent, Session: "kid " + turn}
									if _, err = f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: kid}); err == nil {
										err = f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: kid, Reason: "completed", Result: "found " + turn})
									}
								case "clock":
									clock++
								case "restart":
									f.restart()
								}
								if err != nil {
									t.Fatal(err)
								}
							}
						}
						for turn := range turns {
							before := len(host)
							host = append(host, say(user(fmt.Sprint("question ", turn))))
							ask(core.CallPrompt)
							comes(fmt.Sprint(turn))
							if loop {
								id := fmt.Sprint("c", turn)
								host = append(host,
									say(message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: id, Name: "look", Args: `{"id": "` + id + `"}`}}}),
									say(message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: id, Name: "look", Text: fmt.Sprint("seen ", turn)}}}))
								ask(core.CallLoop)
								comes(fmt.Sprint(turn, " again"))
							}
							host = append(host, say(assistant(fmt.Sprint("answer ", turn))))
							if way == "commit" {
								res, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: fmt.Sprint(turn), Messages: host[before:]})
								if err != nil || res.Status != core.Committed {
									t.Fatalf("CommitTurn = %+v, %v", res, err)
								}
							} else if err := f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: all(), PrePrompt: before + 1}); err != nil {
								t.Fatal(err)
							}
						}
						stored := make(map[string]int)
						for entry, err := range core.All(t.Context(), f.store, f.id.Scope(), false) {
							if err != nil {
								t.Fatal(err)
							}
							stored[message.Fingerprint(entry.Message)]++
						}
						for _, m := range host {
							if n := stored[message.Fingerprint(m)]; n != 1 {
								t.Errorf("stored %d times: %+v", n, m)
							}
						}
						got := shown(ask(core.CallPrompt))
						for turn := range turns {
							for _, text := range []string{"question", "answer"} {
								if text = fmt.Sprint(text, " ", turn); strings.Count(got, text) != 1 {
									t.Errorf("%q is shown %d times: %s", text, strings.Count(got, text), got)
								}
							}
						}
					})
				}
			}
		}
	}
}

// TestSlidAndSaidAgain: a host that leaves its oldest messages out and says one of them anew, under a name of its own, has said another one.
func TestSlidAndSaidAgain(t *testing.T) {
	for _, names := range []string{"id", "key", "time"} {
		for _, whole := range []bool{false, true} {
			for cut := range 3 { // a list that says what the last one did is that one: what a host leaves out is told by its digest alone
				t.Run(fmt.Sprintf("%s, whole %v, cut %d", names, whole, cut), func(t *testing.T) {
					f := newFixture(t)
					say := naming(names)
					host := []message.Message{say(user("go on")), say(assistant("one")), say(user("more")), say(assistant("two"))}
					ask := func(messages []message.Message) core.AssembleResult {
						return f.assemble(1000, func(req *core.AssembleRequest) { req.Transcript = &core.Transcript{Messages: messages, Whole: whole} })
					}
					ask(host)
					for again := range 3 { // and it slides on
						host = append(host, say(user("go on")))
						want := "go on | one | more | two" + strings.Repeat(" | go on", again+1)
						if got := shown(ask(host[cut+again:])); got != want {
							t.Fatalf("shown: %q, want %q", got, want)
						}
					}
				})
			}
		}
	}
}

// TestSaidAgainBesideNothingKnown: what says the same as a known message, beside nothing that stood beside that one, under another name, is another message.
func TestSaidAgainBesideNothingKnown(t *testing.T) {
	sum := user("what was before")
	sum.Type = message.CompactionSummary
	for _, names := range []string{"id", "key", "time"} {
		for _, said := range []string{"yes", ""} {
			say := naming(names)
			known := []message.Message{say(user("one")), say(assistant(said))}
			for name, list := range map[string][]message.Message{
				"behind a summary": {sum, say(user("two")), say(assistant(said))},
				"a new beginning":  {say(user("two")), say(assistant(said))},
				"and more":         {sum, say(user("two")), say(assistant(said)), say(user("three"))},
			} {
				t.Run(fmt.Sprintf("%s, %q, %s", names, said, name), func(t *testing.T) {
					f := newFixture(t)
					for _, messages := range [][]message.Message{known, list, list} {
						f.assemble(1000, func(req *core.AssembleRequest) { req.Transcript = &core.Transcript{Messages: messages} })
						f.sound()
					}
					if n := len(f.ids(said)); n != 2 {
						t.Errorf("stored %d times, want 2", n)
					}
				})
			}
		}
	}
}

// TestCutToWhatHasOneName: messages that say the same and have one name are as many messages; a list that shows the newest of them alone, below a line of the host's, shows the end.
func TestCutToWhatHasOneName(t *testing.T) {
	again := user("go on")
	again.ID, again.Time = "7", time.Date(2026, 1, 1, 0, 0, 7, 0, time.UTC)
	f := newFixture(t)
	host := []message.Message{user("first"), again, assistant("one"), again, assistant("two")}
	for _, list := range [][]message.Message{host, append([]message.Message{user("a line")}, host[3:]...), append(host[3:len(host):len(host)], user("three"))} {
		f.assemble(1000, func(req *core.AssembleRequest) { req.Transcript = &core.Transcript{Messages: list} })
	}
	if got, want := shown(f.assemble(1000)), "first | go on | one | a line | go on | two | three"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
}
