package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestBehindAnOutputAlike: turns are alike to the ids of their calls, and in the loop the host goes on with what it was given. Where the window shows the question alone,
// the new call stands where another one stood in an earlier output.
func TestBehindAnOutputAlike(t *testing.T) {
	for _, names := range []string{"none", "answers", "id", "key"} {
		for _, commits := range []bool{false, true} {
			for _, budget := range []int{12, 20, 1000} {
				f := newFixture(t)
				var all []message.Message
				say := func(m message.Message) {
					switch {
					case names == "answers" && m.Role != message.User:
						m.ID = fmt.Sprint("h", len(all))
					case names == "id", names == "key":
						m = namedBy(names, len(all), m)
					}
					all = append(all, m)
				}
				for turn := range 4 {
					from := len(all)
					say(user("continue"))
					res := f.assemble(budget, transcript("", all...))
					id, at := fmt.Sprint("call", turn), len(all)
					say(callingFor(id, "a"))
					say(resulting(id, "ok"))
					req := core.AssembleRequest{
						Session: f.id, Budget: budget, PromptMode: core.PromptNone, Call: core.CallLoop, Transcript: &core.Transcript{Messages: join(res.Messages, all[at:])},
					}
					if _, err := f.engine.Assemble(t.Context(), req); err != nil && !errors.Is(err, core.ErrBudget) {
						t.Fatal(err)
					}
					if f.stored() != len(all) {
						t.Errorf("names %s, commits %v, budget %d, turn %d: %d stored, want %d; given %s", names, commits, budget, turn, f.stored(), len(all), shown(res))
						break
					}
					if say(assistant("done")); commits {
						f.accepts("commit", fmt.Sprint(turn), all[from:])
					}
				}
			}
		}
	}
}

// TestOwnListThatBeginsAsAnOutput: in a loop the host hands back what it was given, and in the next call its own list, which begins with the same words under other ids of
// calls.
func TestOwnListThatBeginsAsAnOutput(t *testing.T) {
	for _, names := range []string{"none", "time"} {
		for budget := 20; budget <= 60; budget += 10 {
			f, name := newFixture(t), func(m message.Message) message.Message { return m }
			if names == "time" {
				name = naming(names)
			}
			call := func(id string) []message.Message {
				return one(name(callingFor(id, "a")), name(resulting(id, "ok")))
			}
			all := join(one(name(user("continue"))), call("a1"), one(name(assistant("done")), name(user("thanks")), name(assistant("welcome")), name(user("continue"))))
			out := f.assemble(budget, transcript("", all...)).Messages
			more := call("a2")
			all = join(all, more)
			f.assemble(budget, transcript("", join(out, more)...), inLoop)
			all = join(all, call("a3"))
			if res := f.assemble(budget, transcript("", all...), inLoop); f.stored() != len(all) {
				t.Errorf("names %s, budget %d: %d stored, want %d; shown %s", names, budget, f.stored(), len(all), shown(res))
			}
		}
	}
}

// TestOutputAsTheHostsListInTurnsAlike: a host goes on with what it was given, in the next turns, too. Each message has a name of its own, the engine's note is merged with
// the question, and turns are alike.
func TestOutputAsTheHostsListInTurnsAlike(t *testing.T) {
	for _, provider := range []string{"", "anthropic", "openai", "google"} {
		for _, names := range []string{"id", "key", "time"} {
			for _, budget := range []int{24, 30, 40, 60, 1000} {
				f, name, want := newFixture(t), naming(names), 6
				found := "some words that were found in file number one and two"
				list := one(name(user("continue")), name(callingFor("c1", "a")), name(resulting("c1", found)), name(assistant("done")), name(user("something else")), name(assistant("well")))
				for turn := range 4 {
					list = append(list, name(user("continue")))
					want++
					res := f.assemble(budget, transcript("", list...), under(provider))
					if f.stored() != want {
						t.Errorf("provider %q, names %s, budget %d, turn %d: %d stored, want %d; shown %q", provider, names, budget, turn, f.stored(), want, shown(res))
						break
					}
					list = append(res.Messages, name(assistant("done")))
					want++
				}
			}
		}
	}
}

// TestSkippedOutputTwice: in a loop a host goes on with what it was given, and does not repeat it. The same call again is answered as the first time.
func TestSkippedOutputTwice(t *testing.T) {
	for _, provider := range []string{"", "anthropic"} {
		for _, budget := range []int{36, 1000} {
			for _, parallel := range []bool{false, true} {
				f := newFixture(t)
				list := f.assemble(budget, transcript("", user("do it")), under(provider)).Messages
				steps := 0
				for ; steps < 5; steps++ {
					a, b := fmt.Sprint("a", steps), fmt.Sprint("b", steps)
					call := callingFor(a, a)
					more := one(call, resulting(a, "found "+a))
					if parallel {
						call.Parts = append(call.Parts, callingFor(b, b).Parts...)
						more = one(call, resulting(a, "found "+a), resulting(b, "found "+b))
					}
					req := core.AssembleRequest{Session: f.id, Budget: budget, PromptMode: core.PromptNone, Call: core.CallLoop}
					req.Settings.Provider = provider
					req.Transcript = &core.Transcript{Skipped: len(list), Digest: message.DigestOf(list), Messages: more}
					first, err := f.engine.Assemble(t.Context(), req)
					if err != nil {
						break // its results are merged: the host sends all
					}
					again, err := f.engine.Assemble(t.Context(), req)
					if err != nil || shown(again) != shown(first) {
						t.Errorf("provider %q, budget %d, parallel %v, call %d: again: %q, %v, want %q", provider, budget, parallel, steps, shown(again), err, shown(first))
						break
					}
					list = first.Messages
				}
				if steps < 2 {
					t.Errorf("provider %q, budget %d, parallel %v: only %d calls were answered", provider, budget, parallel, steps)
				}
			}
		}
	}
}

// TestLineBetweenCallAndResult: a host cut its list between a call and its result, with a line of its own in front; the engine shows that line behind the result, and the
// host hands it back as it stands there.
func TestLineBetweenCallAndResult(t *testing.T) {
	for _, way := range []string{"subagent", "loop", "restart", "next turn"} {
		f := newFixture(t)
		all := one(user("one"), callingFor("a1", "a"), resulting("a1", "ok 1"), assistant("done 1"), user("two"))
		f.assemble(1000, transcript("", all...))
		all = append(all, assistant("done 2"), user("three"))
		out := f.assemble(1000, transcript("", join(one(user("(cut)")), all[2:])...)).Messages
		want, list := len(all)+3, join(out, one(callingFor("a2", "a"), resulting("a2", "ok 2")))
		change := inLoop
		switch way {
		case "subagent":
			f.handsBack("found")
			want++
		case "restart":
			f.restart()
		case "next turn":
			list, change = join(out, one(assistant("done 3"), user("four"))), func(*core.AssembleRequest) {}
		}
		for n := range 2 {
			if res := f.assemble(1000, transcript("", list...), change); f.stored() != want {
				t.Errorf("%s, call %d: %d stored, want %d: %s", way, n, f.stored(), want, shown(res))
			}
		}
	}
}

// handsBack lets a subagent hand back a result.
func (f *fixture) handsBack(result string) {
	f.t.Helper()
	child := core.SessionID{Agent: f.id.Agent, Session: "kid"}
	_, err := f.engine.PrepareSubagentSpawn(f.t.Context(), core.SpawnRequest{Parent: f.id, Child: child})
	if err == nil {
		err = f.engine.OnSubagentEnded(f.t.Context(), core.SubagentEnded{Parent: f.id, Child: child, Reason: "completed", Result: result})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestMergedResultsHandedBack: a provider's rules merge the results of parallel calls into one message; something else comes, the engine is started anew, and the host goes
// on with what it was given.
func TestMergedResultsHandedBack(t *testing.T) {
	for _, provider := range []string{"", "anthropic", "openai", "google", "mistral"} {
		for _, between := range []string{"nothing", "timer", "subagent"} {
			for _, restarts := range []bool{false, true} {
				f := newFixture(t)
				two := callingFor("c1", "a")
				two.Parts = append(two.Parts, callingFor("c2", "b").Parts...)
				list := one(user("ask 1"), two, resulting("c1", "it is fine"), resulting("c2", "it is good"))
				f.assemble(1000, transcript("", list[0]), under(provider))
				list = f.assemble(1000, transcript("", list...), under(provider), inLoop).Messages
				switch between {
				case "timer":
					if _, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("tick"), Heartbeat: true}); err != nil {
						t.Fatal(err)
					}
				case "subagent":
					f.handsBack("found")
				}
				if restarts {
					f.restart()
				}
				res := f.assemble(1000, transcript("", join(list, one(assistant("answer 1"), user("ask 2")))...), under(provider))
				if text := shown(res); strings.Contains(text, "no result was recorded") || !strings.Contains(text, "it is good") {
					t.Errorf("provider %q, between %s, restarts %v: %s", provider, between, restarts, text)
				}
			}
		}
	}
}
