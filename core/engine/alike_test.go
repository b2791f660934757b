package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// callingFor makes a call of a file.
func callingFor(id, file string) message.Message {
	m := calling(id)
	m.Parts[0].Args = `{"path":"` + file + `"}`
	return m
}

// under has a call follow the rules of a provider.
func under(provider string) func(*core.AssembleRequest) {
	return func(r *core.AssembleRequest) { r.Settings.Provider = provider }
}

// eachOnce reports that calls and results are stored once each, and that those shown belong together.
func (f *fixture) eachOnce(res core.AssembleResult, want int) (wrong string) {
	f.t.Helper()
	seen := map[string]int{}
	for _, entry := range entriesOf(f) {
		for _, p := range entry.Message.Parts {
			if p.CallID != "" {
				seen[string(p.Kind)+" "+p.CallID]++
			}
		}
	}
	for what, n := range seen {
		if n != 1 {
			return fmt.Sprintf("%s is stored %d times", what, n)
		}
	}
	if len(seen) != want {
		return fmt.Sprintf("%d calls and results are stored, want %d", len(seen), want)
	}
	if text := shown(res); strings.Contains(text, "no result was recorded") {
		return "torn: " + text
	}
	return ""
}

// TestPollsAlike: hosts that show their newest messages, their first one or a line in front, and whose calls ask and give the same again and again, in parallel, too. Each
// is stored once, and the newest result is shown.
func TestPollsAlike(t *testing.T) {
	for _, asks := range []string{"the same", "another"} {
		for _, named := range []string{"", "id", "key", "time"} {
			for _, keeps := range []string{"nothing", "its first", "a line"} {
				for _, last := range []int{5, 8, 12} { // a step has four messages at the most
					name, f := naming(named), newFixture(t)
					var all []message.Message
					said := 0
					assemble := func(more ...func(*core.AssembleRequest)) {
						t.Helper()
						list := all
						if len(list) > last {
							head := map[string][]message.Message{"its first": all[:1], "a line": one(user("(cut)"))}[keeps]
							list = join(head, all[len(all)-last:])
						}
						res := f.assemble(100_000, append(more, transcript("", list...))...)
						wrong := f.eachOnce(res, said)
						if got := res.Messages[len(res.Messages)-1].Parts[0].CallID; wrong == "" && got != all[len(all)-1].Parts[0].CallID {
							wrong = fmt.Sprintf("the newest shown is of call %q", got)
						}
						if wrong != "" {
							t.Fatalf("asks %s, named %q, keeps %s, last %d, %d messages: %s", asks, named, keeps, last, len(all), wrong)
						}
					}
					for turn := range 4 {
						all = append(all, name(user(fmt.Sprint("question ", turn))))
						assemble()
						for step := range 3 {
							call := message.Message{Role: message.Assistant}
							var results []message.Message
							for i := range 1 + (turn+step)%3 {
								id, file := fmt.Sprintf("call-%d-%d-%d", turn, step, i), "a"
								if asks == "another" {
									file = id
								}
								call.Parts = append(call.Parts, callingFor(id, file).Parts...)
								results = append(results, resulting(id, "ok"))
								said += 2
							}
							all = append(all, name(call))
							for _, m := range results {
								all = append(all, name(m))
							}
							assemble(inLoop)
						}
						all = append(all, name(assistant(fmt.Sprint("answer ", turn))))
					}
				}
			}
		}
	}
}

// TestResultsAlikeBehindAnOutput: in a loop on what the engine returned, the calls of the turn give the same, and ask it, too.
func TestResultsAlikeBehindAnOutput(t *testing.T) {
	for _, provider := range []string{"", "anthropic", "openai", "google", "mistral"} {
		for _, asks := range []string{"the same", "another"} {
			for _, named := range []string{"", "id", "time"} {
				name, f := naming(named), newFixture(t)
				host := one(name(user("do it")))
				for i := range 6 {
					id := fmt.Sprint("before", i)
					host = join(host, one(name(callingFor(id, id)), name(resulting(id, "some words of file number "+id))))
				}
				list := f.assemble(60, transcript("", host...), under(provider)).Messages
				for i := range 4 {
					id, file := fmt.Sprint("behind", i), "a"
					if asks == "another" {
						file = id
					}
					list = join(list, one(name(callingFor(id, file)), name(resulting(id, "ok"))))
					if wrong := f.eachOnce(f.assemble(60, transcript("", list...), inLoop, under(provider)), 12+2*(i+1)); wrong != "" {
						t.Errorf("provider %q, asks %s, named %q, call %d: %s", provider, asks, named, i, wrong)
						break
					}
				}
			}
		}
	}
}

// TestAnsweredAlike: the host takes a turn back and has it made anew; another call gives the same, or two parallel ones give each other's.
func TestAnsweredAlike(t *testing.T) {
	two := func(a, b string) message.Message {
		m := callingFor(a, a)
		m.Parts = append(m.Parts, callingFor(b, b).Parts...)
		return m
	}
	begin := one(user("hi"), assistant("hello"), user("write it"))
	for name, turns := range map[string][2][]message.Message{
		"another question": {
			one(user("write a"), callingFor("c1", "a"), resulting("c1", "ok"), assistant("Done.")), one(user("write b"), callingFor("c2", "b"), resulting("c2", "ok"), assistant("Done.")),
		},
		"another call":     {one(callingFor("c1", "a"), resulting("c1", "ok")), one(callingFor("c2", "b"), resulting("c2", "ok"))},
		"the other's":      {one(two("c1", "c2"), resulting("c1", "ok"), resulting("c2", "failed")), one(two("d1", "d2"), resulting("d1", "failed"), resulting("d2", "ok"))},
		"a call more":      {one(callingFor("c1", "a"), resulting("c1", "ok")), one(callingFor("c2", "b"), resulting("c2", "ok"), callingFor("c3", "a"), resulting("c3", "ok"))},
		"and goes further": {one(callingFor("c1", "a"), resulting("c1", "ok")), one(callingFor("c2", "b"), resulting("c2", "ok"), assistant("Done."), user("thanks"))},
	} {
		for _, named := range []string{"", "id", "key", "time"} {
			for _, whole := range []bool{false, true} {
				if name == "a call more" && named == "" {
					continue // a host without names may give its calls other ids with every list
				}
				call, f := naming(named), newFixture(t)
				var lists [2][]message.Message
				base := one()
				for _, m := range begin {
					base = append(base, call(m))
				}
				ids := 0
				for i, turn := range turns {
					lists[i] = base
					for _, m := range turn {
						lists[i] = join(lists[i], one(call(m)))
						for _, p := range m.Parts {
							if p.CallID != "" {
								ids++
							}
						}
					}
				}
				is := func(r *core.AssembleRequest) { r.Transcript.Whole = whole }
				f.assemble(1000, transcript("", lists[0]...), is)
				if wrong := f.eachOnce(f.assemble(1000, transcript("", lists[1]...), is), ids); wrong != "" {
					t.Errorf("%s, named %q, whole %t: %s", name, named, whole, wrong)
				}
			}
		}
	}
}

// TestCallsThatNoPromptShows: in a loop on the engine's first output there is a call whose arguments are no JSON, or a result of no call. Prompts do not show it, so that the
// next output is as the first one was, and the list goes on with it nevertheless.
func TestCallsThatNoPromptShows(t *testing.T) {
	bad := callingFor("b1", "a")
	bad.Parts[0].Args = `{"path": "a`
	for what, unseen := range map[string][]message.Message{
		"a bad call": one(bad, resulting("b1", "error: the arguments are no JSON")), "a result of no call": one(resulting("of none", "found")),
	} {
		for _, provider := range []string{"", "anthropic", "openai"} {
			for _, named := range []string{"", "id", "key", "time"} {
				for _, before := range []bool{false, true} { // there was one in an earlier turn, too
					for _, restarts := range []bool{false, true} {
						name, f := naming(named), newFixture(t)
						host := one(name(user("before")))
						if before {
							old := callingFor("b0", "a")
							old.Parts[0].Args = `{`
							host = append(host, name(old), name(resulting("b0", "error")))
						}
						host = append(host, name(assistant("well")), name(user("do it")))
						list := f.assemble(1000, transcript("", host...), under(provider)).Messages
						want := len(host)
						for i, more := range [][]message.Message{unseen, one(callingFor("c3", "a"), resulting("c3", "fine")), one(callingFor("c4", "b"), resulting("c4", "fine"))} {
							for _, m := range more {
								list = join(list, one(name(m)))
							}
							if restarts {
								f.restart()
							}
							f.assemble(1000, transcript("", list...), inLoop, under(provider))
							if want += len(more); f.stored() != want {
								t.Errorf("%s, provider %q, named %q, before %t, restarts %t, call %d: %d stored, want %d", what, provider, named, before, restarts, i, f.stored(), want)
								break
							}
						}
					}
				}
			}
		}
	}
}

// TestErasedCallWhoseIDComesAgain: a call is erased whose id an earlier turn used, so that the host was given its result under another id; it goes on with what it was given.
func TestErasedCallWhoseIDComesAgain(t *testing.T) {
	for _, budget := range []int{25, 40, 1000} {
		for _, named := range []string{"", "id", "time"} {
			name, f := naming(named), newFixture(t)
			host := one(name(user("one")), name(callingFor("c0", "a")), name(resulting("c0", "first")), name(user("two")), name(callingFor("c0", "b")), name(resulting("c0", "second")))
			list := f.assemble(1000, transcript("three", host...), under("anthropic")).Messages
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entriesOf(f)[4].ID}})
			for i, id := range []string{"d1", "d2"} {
				if i == 0 {
					list = join(list, one(name(user("three"))))
				}
				list = join(list, one(name(callingFor(id, id)), name(resulting(id, "found by "+id))))
				f.assemble([]int{budget, 1000}[i], transcript("", list...), inLoop, under("anthropic"))
			}
			if f.stored() != 11 {
				t.Errorf("budget %d, named %q: %d stored, want 11", budget, named, f.stored())
			}
		}
	}
}

// TestCallsUnderOtherIDs: a host that makes the ids of its calls anew with every list, or all names of its messages, and shows the newest ones, cut anywhere, behind its first
// message or a line: nothing is stored again.
func TestCallsUnderOtherIDs(t *testing.T) {
	for _, renames := range []string{"calls", "id", "key", "calls of users with ids"} {
		for _, keeps := range []string{"nothing", "its first", "a line"} {
			for newest := 7; newest < 12; newest++ { // two of the last list's are among them: one alone under another name is another one
				f := newFixture(t)
				list := func(round, steps int) []message.Message {
					name, id := naming(""), func(n int) string { return fmt.Sprint("call", n) }
					switch renames {
					case "id", "key":
						name = func(m message.Message) message.Message { return namedBy(renames, 1000*round, m) }
					default:
						id = func(n int) string { return fmt.Sprint("round", round, "call", n) }
					}
					all := one(user("first"))
					for n := range steps {
						two := callingFor(id(2*n), fmt.Sprint("a", n))
						two.Parts = append(two.Parts, callingFor(id(2*n+1), fmt.Sprint("b", n)).Parts...)
						all = append(all, two, resulting(id(2*n), fmt.Sprint("found a", n)), resulting(id(2*n+1), fmt.Sprint("found b", n)), assistant(fmt.Sprint("answer ", n)), user(fmt.Sprint("more ", n)))
					}
					for i := range all {
						if all[i] = name(all[i]); renames == "calls of users with ids" && all[i].Role == message.User {
							all[i].ID = all[i].Text()
						} else if all[i].ID != "" || all[i].Key != "" {
							all[i] = namedBy(renames, 1000*round+i, all[i])
						}
					}
					return all
				}
				for round := range 6 {
					all := list(round, 1+round)
					if len(all) > newest+1 {
						head := map[string][]message.Message{"its first": all[:1], "a line": one(user("(cut)"))}[keeps]
						all = join(head, all[len(all)-newest:])
					}
					f.assemble(100_000, transcript("", all...))
					want := 1 + 5*(1+round)
					if keeps == "a line" && 1+5*(1+round) > newest+1 {
						want++
					}
					if f.stored() != want {
						t.Errorf("renames %s, keeps %s, newest %d, list %d: %d stored, want %d", renames, keeps, newest, round, f.stored(), want)
						break
					}
				}
			}
		}
	}
}

// TestOutputAsTheHostsList: a host goes on with what it was given, in the next turn, too. Rules that make other ids of those of calls make nothing new of it.
func TestOutputAsTheHostsList(t *testing.T) {
	id := func(n int) string {
		return fmt.Sprint("toolu_01A09q90qw90lq917835lq9|fc_00112233445566778899aabbccddeeff00112233", n)
	}
	turn := func(n int) []message.Message {
		return one(user(fmt.Sprint("ask ", n)), callingFor(id(n), fmt.Sprint(n)), resulting(id(n), fmt.Sprint("found it in ", n)), assistant(fmt.Sprint("answer ", n)))
	}
	for _, provider := range []string{"", "anthropic", "openai", "google", "mistral"} {
		for _, named := range []string{"", "id"} {
			for budget := 60; budget <= 160; budget += 10 {
				name, f, want := naming(named), newFixture(t), 0
				say := func(list []message.Message, more ...message.Message) []message.Message {
					for _, m := range more {
						list, want = append(list, name(m)), want+1
					}
					return list
				}
				list := say(nil, join(turn(1), turn(2)[:3], turn(3)[1:3], turn(4)[1:], one(user("ask 5")))...)
				list = f.assemble(budget, transcript("", list...), under(provider)).Messages
				list = say(list, turn(5)[1:3]...)
				f.assemble(1000, transcript("", list...), under(provider), inLoop)
				for n := 6; n < 9; n++ {
					list = say(list, turn(n - 1)[3], turn(n)[0])
					list = f.assemble(1000, transcript("", list...), under(provider)).Messages
					list = say(list, turn(n)[1:3]...)
					if f.assemble(1000, transcript("", list...), under(provider), inLoop); f.stored() != want {
						t.Errorf("provider %q, named %q, budget %d, turn %d: %d stored, want %d", provider, named, budget, n, f.stored(), want)
						break
					}
				}
			}
		}
	}
}

// TestTurnsAlikeThatSlide: a host that shows its newest messages when the user asks, whose turns are alike to the ids of their calls: as long as two lists have one call in
// common, nothing is lost.
func TestTurnsAlikeThatSlide(t *testing.T) {
	for _, newest := range []int{9, 10, 11, 13, 14, 15} { // where one message alone is cut off, and said again, the host has put it elsewhere
		for _, budget := range []int{1000, 12} { // the small one has no room for a call
			f := newFixture(t)
			var all []message.Message
			for turn := range 9 {
				all = append(all, user("continue"))
				res := f.assemble(budget, transcript("", all[max(len(all)-newest, 0):]...))
				wrong := ""
				if budget == 1000 {
					wrong = f.eachOnce(res, 2*turn)
				}
				if wrong != "" || f.stored() != len(all) {
					t.Fatalf("newest %d, budget %d, turn %d: %d stored, want %d; %s", newest, budget, turn, f.stored(), len(all), wrong)
				}
				call := fmt.Sprint("call", turn)
				all = append(all, calling(call), resulting(call, "ok"), assistant("done"))
			}
		}
	}
}

// TestParallelCallsAlike: the newest turn has fewer calls than the one before, which asked and gave the same.
func TestParallelCallsAlike(t *testing.T) {
	poll := func(ids ...string) []message.Message {
		var calls message.Message
		var results []message.Message
		for _, id := range ids {
			calls.Role, calls.Parts = message.Assistant, append(calls.Parts, calling(id).Parts...)
			results = append(results, resulting(id, "ok"))
		}
		return join(one(calls), results)
	}
	for newest := 7; newest < 10; newest++ { // something of the turn before is among them
		f := newFixture(t)
		all := join(one(user("begin")), poll("a1", "a2", "a3"), one(assistant("done"), user("continue")))
		f.assemble(1000, transcript("", all...))
		all = join(all, poll("b1", "b2"), one(assistant("done"), user("continue")))
		if wrong := f.eachOnce(f.assemble(1000, transcript("", all[len(all)-newest:]...)), 10); wrong != "" || f.stored() != len(all) {
			t.Errorf("newest %d: %d stored, want %d; %s", newest, f.stored(), len(all), wrong)
		}
	}
}
