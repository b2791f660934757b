package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// accepts hands over a turn in one of the ways that hosts have.
func (f *fixture) accepts(way, key string, turn []message.Message) {
	f.t.Helper()
	var err error
	if way == "commit" {
		_, err = f.engine.CommitTurn(f.t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: key, Messages: turn})
	} else {
		err = f.engine.AfterTurn(f.t.Context(), core.AfterTurnRequest{Session: f.id, Messages: turn})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestTurnShownUnderOtherNames: a transcript shows a turn, and its host makes names anew before it accepts the turn: the ids of calls, or those of messages.
func TestTurnShownUnderOtherNames(t *testing.T) {
	turn := func(anew string, round, n int) []message.Message {
		id := fmt.Sprint("c", n)
		if anew == "calls" {
			id = fmt.Sprint("r", round, "c", n)
		}
		list := one(user(fmt.Sprint("do ", n)), callingFor(id, "a"), resulting(id, "ok"), assistant("done"))
		for i := range list {
			if anew == "ids" {
				list[i].ID, list[i].Time = fmt.Sprint(round, "-", n, "-", i), time.Date(2026, 1, 1, 0, n, i, 0, time.UTC)
			}
		}
		return list
	}
	for _, way := range []string{"commit", "after turn"} {
		for _, anew := range []string{"calls", "ids"} {
			for _, before := range []bool{false, true} { // another turn under other names came before
				f, want, round := newFixture(t), 4, 0
				list := func(upTo int) []message.Message {
					round++
					if before {
						return join(turn(anew, round, 1), turn(anew, round, 2)[:upTo])
					}
					return turn(anew, round, 2)[:upTo]
				}
				if before {
					want = 8
				}
				f.assemble(1000, transcript("", list(1)...))
				f.assemble(1000, transcript("", list(3)...), inLoop)
				f.accepts(way, "t", turn(anew, 9, 2))
				if f.stored() != want {
					t.Errorf("%s, %s anew, before %v: %d stored, want %d: %s", way, anew, before, f.stored(), want, shown(f.assemble(1000)))
				}
			}
		}
	}
}

// TestTurnShownWhereSomeHaveATime: the host knows some messages of its turns by a time, and the others by nothing.
func TestTurnShownWhereSomeHaveATime(t *testing.T) {
	for _, way := range []string{"commit", "after turn"} {
		for timed := range 4 {
			f := newFixture(t)
			turn := one(user("do it"), calling("c1"), resulting("c1", "ok"), assistant("done"))
			turn[timed].Time = time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
			f.assemble(1000, transcript("", turn[0]))
			f.assemble(1000, transcript("", turn[:3]...), inLoop)
			if f.accepts(way, "t", turn); f.stored() != 4 {
				t.Errorf("%s, message %d has a time: %d stored, want 4: %s", way, timed, f.stored(), shown(f.assemble(1000)))
			}
		}
	}
}

// TestTurnAcceptedAsItWasGiven: rules rewrite the ids of calls for a provider; the host hands back the output, and accepts the turn under its own ids, or under those
// that it was given.
func TestTurnAcceptedAsItWasGiven(t *testing.T) {
	id := func(n int) string {
		return fmt.Sprint("toolu_01A09q90qw90lq917835lq9|fc_00112233445566778899aabbccddeeff00112233", n)
	}
	for _, provider := range []string{"", "anthropic", "openai", "google", "mistral"} {
		for _, given := range []bool{false, true} {
			for _, way := range []string{"commit", "after turn"} {
				f, want := newFixture(t), 0
				var all []message.Message
				for turn := range 3 {
					from, asked := len(all), fmt.Sprint("ask ", turn)
					all = append(all, user(asked))
					out := f.assemble(1000, transcript("", all...), under(provider)).Messages
					for step := range 2 {
						n := turn*10 + step
						more := one(callingFor(id(n), fmt.Sprint(n)), resulting(id(n), fmt.Sprint("found ", n)))
						all = append(all, more...)
						out = f.assemble(1000, transcript("", join(out, more)...), under(provider), inLoop).Messages
					}
					all = append(all, assistant(fmt.Sprint("answer ", turn)))
					want += 6
					accepted := all[from:]
					if given { // what it was given of the turn, and the answer
						for i, m := range out {
							if m.Role == message.User && m.Text() == asked {
								accepted = join(out[i:], all[len(all)-1:])
							}
						}
					}
					if f.accepts(way, fmt.Sprint("t", turn), accepted); f.stored() != want {
						t.Errorf("provider %q, given %v, %s, turn %d: %d stored, want %d", provider, given, way, turn, f.stored(), want)
						break
					}
				}
			}
		}
	}
}

// TestSecondCallOfATurnWhoseFirstHasAnID: a host gives a message its id once it is persisted. Its transcript shows the question, a call and its result; the turn that it
// accepts goes on with the same call again, which has no id of a message yet, and another id of the call.
func TestSecondCallOfATurnWhoseFirstHasAnID(t *testing.T) {
	for _, way := range []string{"commit", "after turn"} {
		for _, other := range []bool{false, true} { // the second call asks something else, and only the result is alike
			f := newFixture(t)
			u, c1, r1 := user("look"), namedBy("id", 2, callingFor("c1", "a")), namedBy("id", 3, resulting("c1", "ok"))
			f.assemble(1000, transcript("", u))
			f.assemble(1000, transcript("", u, c1, r1), inLoop)
			file := "a"
			if other {
				file = "b"
			}
			f.accepts(way, "t", one(u, c1, r1, callingFor("c2", file), resulting("c2", "ok"), assistant("done")))
			if f.stored() != 6 {
				t.Errorf("%s, other %v: %d stored, want 6: %s", way, other, f.stored(), shown(f.assemble(1000)))
			}
		}
	}
}

// TestParallelTurnAcceptedAsItWasGiven: as TestTurnAcceptedAsItWasGiven, with two calls at once, whose results a provider's rules merge, and one of them erased meanwhile.
func TestParallelTurnAcceptedAsItWasGiven(t *testing.T) {
	for _, provider := range []string{"", "anthropic", "openai", "google", "mistral"} {
		for _, way := range []string{"commit", "after turn"} {
			for _, gone := range []int{-1, 2, 3} {
				f, want := newFixture(t), 5
				two := callingFor("c1", "a")
				two.Parts = append(two.Parts, callingFor("c2", "b").Parts...)
				out := f.assemble(1000, transcript("", user("do it")), under(provider)).Messages
				out = f.assemble(1000, transcript("", join(out, one(two, resulting("c1", "fine one"), resulting("c2", "good two")))...), under(provider), inLoop).Messages
				if gone >= 0 {
					f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entriesOf(f)[gone].ID}})
					want--
				}
				f.accepts(way, "t", join(out, one(assistant("done"))))
				n := 0
				for _, e := range entriesOf(f) {
					if e.Type == core.TypeMessage {
						n++
					}
				}
				if n != want {
					t.Errorf("provider %q, %s, erased %d: %d messages stored, want %d: %q", provider, way, gone, n, want, shown(f.assemble(1000)))
				}
			}
		}
	}
}

// TestErasedInATurnShownUnderOtherNames: the ids of calls are made anew, and one message of the turn is erased before the turn is accepted.
func TestErasedInATurnShownUnderOtherNames(t *testing.T) {
	for _, way := range []string{"commit", "after turn"} {
		for gone := range 3 {
			f := newFixture(t)
			turn := func(round int) []message.Message {
				id := fmt.Sprint("r", round, "c")
				return one(user("do it"), callingFor(id, "a"), resulting(id, "the secret"), assistant("done"))
			}
			f.assemble(1000, transcript("", turn(1)[:1]...))
			f.assemble(1000, transcript("", turn(2)[:3]...), inLoop)
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entriesOf(f)[gone].ID}})
			f.accepts(way, "t", turn(3))
			n := 0
			for _, e := range entriesOf(f) {
				if e.Type == core.TypeMessage {
					n++
				}
			}
			if n != 3 {
				t.Errorf("%s, erased %d: %d messages stored, want 3: %s", way, gone, n, shown(f.assemble(1000)))
			}
		}
	}
}

// TestTurnShownUnderOtherIDs: ids are made anew and times stay; the engine is started anew before the turn is accepted, or saw one list of it.
func TestTurnShownUnderOtherIDs(t *testing.T) {
	for _, way := range []string{"commit", "after turn"} {
		for _, lists := range []int{1, 2} {
			for _, restarts := range []bool{false, true} {
				f := newFixture(t)
				turn := func(round int) []message.Message {
					list := one(user("do it"), calling("c1"), resulting("c1", "ok"), assistant("done"))
					for i := range list {
						list[i].ID, list[i].Time = fmt.Sprint(round, "-", i), time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
					}
					return list
				}
				f.assemble(1000, transcript("", turn(1)[:1]...))
				if lists > 1 {
					f.assemble(1000, transcript("", turn(2)[:3]...), inLoop)
				}
				if restarts {
					f.restart()
				}
				if f.accepts(way, "t", turn(9)); f.stored() != 4 {
					t.Errorf("%s, %d lists, restarts %v: %d stored, want 4", way, lists, restarts, f.stored())
				}
			}
		}
	}
}

// TestTurnNamedLater: a transcript shows messages that have no name yet; the host names them as it keeps them, and accepts the turn.
func TestTurnNamedLater(t *testing.T) {
	for _, way := range []string{"commit", "after turn"} {
		for _, by := range []string{"id", "key", "time"} {
			f := newFixture(t)
			turn := one(user("do it"), calling("c1"), resulting("c1", "ok"), assistant("done"))
			f.assemble(1000, transcript("", turn[0]))
			f.assemble(1000, transcript("", turn[:3]...), inLoop)
			for i := range turn {
				turn[i] = namedBy(by, i+1, turn[i])
			}
			if f.accepts(way, "t", turn); f.stored() != 4 {
				t.Errorf("%s, named by %s: %d stored, want 4", way, by, f.stored())
			}
		}
	}
}

// TestAnswerShownBeforeTheNextTurn: a timer spoke, and a transcript shows an answer that nobody asked for; the next turn ends in the same words.
func TestAnswerShownBeforeTheNextTurn(t *testing.T) {
	for _, way := range []string{"commit", "after turn"} {
		for _, beats := range []bool{false, true} {
			f, want := newFixture(t), 4
			f.accepts(way, "1", one(user("begin")))
			if beats {
				if _, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("tick"), Heartbeat: true}); err != nil {
					t.Fatal(err)
				}
				want++
			}
			f.assemble(1000, transcript("", user("begin")))
			f.assemble(1000, transcript("", user("begin"), assistant("all is well")))
			if f.accepts(way, "2", one(user("and now?"), assistant("all is well"))); f.stored() != want {
				t.Errorf("%s, a timer %v: %d stored, want %d: %s", way, beats, f.stored(), want, shown(f.assemble(1000)))
			}
		}
	}
}

// TestAnswerBehindANamedPrompt: a host knows what the user says by an id, and answers by nothing.
func TestAnswerBehindANamedPrompt(t *testing.T) {
	for _, way := range []string{"commit", "after turn"} {
		f := newFixture(t)
		turn := one(namedBy("id", 1, user("go on")), assistant("done"))
		f.assemble(1000, transcript("", turn[0]))
		f.assemble(1000, transcript("", turn...), inLoop)
		if f.accepts(way, "1", turn); f.stored() != 2 {
			t.Errorf("%s: %d stored, want 2: %s", way, f.stored(), shown(f.assemble(1000)))
		}
	}
}

// TestSaidAgainBehindATurnTakenBack: a turn was accepted, the user takes it back and says the same again, under another name. It is a message of its own, and the next turn
// is shown and stored once, in its order.
func TestSaidAgainBehindATurnTakenBack(t *testing.T) {
	for _, by := range []string{"id", "key", "time"} {
		for _, way := range []string{"commit", "after turn"} {
			for k := range 4 {
				loop, restart := k&1 > 0, k&2 > 0
				f := newFixture(t)
				base := one(namedBy(by, 1, user("q0")), namedBy(by, 2, assistant("a0")))
				first := one(namedBy(by, 3, user("go on")), namedBy(by, 4, assistant("badly")))
				again := one(namedBy(by, 6, user("go on")), namedBy(by, 7, calling("c1")), namedBy(by, 8, resulting("c1", "ok")), namedBy(by, 9, assistant("well")))
				f.assemble(1000, transcript("", join(base, first[:1])...))
				f.accepts(way, "t1", first)
				f.assemble(1000, transcript("", join(base, again[:1])...))
				if loop {
					f.assemble(1000, transcript("", join(base, again[:3])...), inLoop)
				}
				if restart {
					f.restart()
				}
				f.accepts(way, "t2", again)
				accepted := shown(f.assemble(1000))
				next := shown(f.assemble(1000, transcript("", join(base, again, one(namedBy(by, 10, user("q2"))))...)))
				want := "q0 | a0 | go on |  | ok | well"
				if accepted != want || next != want+" | q2" || f.stored() != 9 {
					t.Errorf("by %s, %s, loop %v, restart %v: %d stored, accepted %q, then %q", by, way, loop, restart, f.stored(), accepted, next)
				}
			}
		}
	}
}

// TestTurnAcceptedUnderOtherNamesThanShown: a host stamps messages as it shows them, and otherwise as it keeps them: an accepted turn has other names than what was shown
// of it.
func TestTurnAcceptedUnderOtherNamesThanShown(t *testing.T) {
	for _, by := range []string{"id", "key", "time"} {
		for _, who := range []message.Role{"", message.User, message.Assistant} { // "" is everybody
			for _, way := range []string{"commit", "after turn"} {
				for k := range 24 {
					seen, alike, restart, words := []int{1, 3, 5}[k%3], k/3&1 > 0, k/3&2 > 0, k/3&4 > 0
					f := newFixture(t)
					turn := func(round int) []message.Message {
						list := one(user("go on"), callingFor("c1", "a"), resulting("c1", "ok"), callingFor("c2", "b"), resulting("c2", "fine"), assistant("done"))
						if words { // an answer that the user steered behind
							list = one(user("go on"), user("now"), assistant("so"), user("go on"), assistant("then"), assistant("done"))
						}
						for i := range list {
							n := 10 + i
							if who == "" || who == list[i].Role {
								n += 10 * round
							}
							list[i] = namedBy(by, n, list[i])
						}
						return list
					}
					var before []message.Message
					if alike {
						before = one(namedBy(by, 1, user("go on")), namedBy(by, 2, assistant("done")))
					}
					for n := 1; n <= seen; n += 2 {
						f.assemble(1000, transcript("", join(before, turn(0)[:n])...), func(r *core.AssembleRequest) {
							if n > 1 {
								inLoop(r)
							}
						})
					}
					if restart {
						f.restart()
					}
					f.accepts(way, "t", turn(1))
					if n, want := f.stored(), len(before)+6; n != want {
						t.Errorf("by %s, of %q, %s, %d shown, alike before %v, restart %v, words %v: %d stored, want %d", by, who, way, seen, alike, restart, words, n, want)
					}
				}
			}
		}
	}
}

// TestSaidAgainInOneTurn: of two messages that say the same in front of a call a transcript showed one.
func TestSaidAgainInOneTurn(t *testing.T) {
	for _, by := range []string{"id", "key", "time"} {
		for _, way := range []string{"commit", "after turn"} {
			f := newFixture(t)
			turn := one(namedBy(by, 1, user("go on")), namedBy(by, 2, user("go on")), namedBy(by, 3, calling("c1")), namedBy(by, 4, resulting("c1", "ok")), namedBy(by, 5, assistant("well")))
			f.assemble(1000, transcript("", turn[0]))
			f.assemble(1000, transcript("", join(turn[:1], turn[2:4])...), inLoop)
			f.accepts(way, "t", turn)
			if n := f.stored(); n != len(turn) {
				t.Errorf("by %s, %s: %d stored, want %d", by, way, n, len(turn))
			}
		}
	}
}

// TestPromptShownAgainUnderAnotherName: a prompt to which nothing came yet is shown again, or a host makes all names anew: nothing was said twice.
func TestPromptShownAgainUnderAnotherName(t *testing.T) {
	for _, by := range []string{"id", "key", "time"} {
		f := newFixture(t)
		base := one(namedBy(by, 1, user("q0")), namedBy(by, 2, assistant("a0")))
		for n := range 3 {
			f.assemble(1000, transcript("", join(base, one(namedBy(by, 3+n, user("go on"))))...))
		}
		if n := f.stored(); n != 3 {
			t.Errorf("by %s, shown again: %d stored, want 3", by, n)
		}
		f = newFixture(t)
		list := func(round, n int) []message.Message {
			all := one(user("q0"), assistant("a0"), user("go on"), assistant("badly"))
			for i := range all {
				all[i] = namedBy(by, 1+round*len(all)+i, all[i])
			}
			return all[:n]
		}
		f.assemble(1000, transcript("", list(0, 3)...))
		f.accepts("commit", "t", list(1, 4)[2:])
		for round := range 3 {
			f.assemble(1000, transcript("", list(2+round, 3)...))
		}
		if n := f.stored(); n != 4 {
			t.Errorf("by %s, all anew: %d stored, want 4", by, n)
		}
	}
}

// TestSaidAgainUnderTheNameItHasSince: a message has another name once it is kept. Its answer is taken back, and the list ends with it under that name: nothing was said again.
func TestSaidAgainUnderTheNameItHasSince(t *testing.T) {
	for _, by := range []string{"id", "key", "time"} {
		for _, way := range []string{"commit", "after turn", ""} {
			for k := range 8 {
				later, restart, redact := k&1 > 0 || way == "", k&2 > 0, k&4 > 0
				f := newFixture(t, func(c *engine.Config, _ *engine.Parts) {
					if redact {
						c.Redact = []engine.RedactRule{{Name: "word", Pattern: "go"}}
					}
				})
				base := one(namedBy(by, 1, user("q0")), namedBy(by, 2, assistant("a0")))
				kept := namedBy(by, 4, user("go on"))
				f.assemble(1000, transcript("", join(base, one(namedBy(by, 3, user("go on"))))...))
				want := 4
				for try := range 3 {
					answer := namedBy(by, 10+try, assistant(fmt.Sprint("try ", try)))
					if way != "" {
						f.accepts(way, fmt.Sprint("t", try), one(kept, answer))
					}
					if later {
						f.assemble(1000, transcript("", join(base, one(kept, answer, namedBy(by, 20+try, user(fmt.Sprint("more ", try)))))...))
						want++
					}
					if restart {
						f.restart()
					}
					got := shown(f.assemble(1000, transcript("", join(base, one(kept))...)))
					if f.stored() != want || strings.Contains(got, "try") {
						t.Errorf("by %s, %q, later %v, restart %v, redact %v, try %d: %d stored, want %d; shown %s", by, way, later, restart, redact, try, f.stored(), want, got)
					}
					want++
				}
				f.assemble(1000, transcript("", join(base, one(kept, user("next")))...))
				v, err := f.store.LoadView(t.Context(), f.id)
				if err != nil || len(v.Called) != 1 {
					t.Errorf("by %s, %q: %+v are noted, %v, want one name", by, way, v.Called, err)
				}
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entriesOf(f)[2].ID}})
				if v, err = f.store.LoadView(t.Context(), f.id); err != nil || len(v.Called) > 0 {
					t.Errorf("by %s, %q: %+v are noted of what was erased, %v", by, way, v.Called, err)
				}
			}
		}
	}
}

// TestUserNamedAnewEachTime: answers keep their names, and what the user says has another one in every list. It is asked again, since a call failed or for another answer.
func TestUserNamedAnewEachTime(t *testing.T) {
	for _, by := range []string{"id", "key", "time"} {
		for k := range 4 {
			behind, restart := k&1 > 0, k&2 > 0
			f, n := newFixture(t), 10
			list := func(answers ...message.Message) []message.Message {
				n += 2
				return join(one(namedBy(by, n%28, user("q0")), namedBy(by, 2, assistant("a0")), namedBy(by, (n+1)%28, user("go on"))), answers)
			}
			for range 3 {
				f.assemble(1000, transcript("", list()...))
				if behind {
					f.assemble(1000, transcript("", list(calling("c1"), resulting("c1", "ok"))...), inLoop)
				}
				if restart {
					f.restart()
				}
			}
			asked := 0
			for _, e := range entriesOf(f) {
				if e.Role == message.User {
					asked++
				}
			}
			if asked != 2 {
				t.Errorf("by %s, calls behind it %v, restart %v: %d messages of the user are stored, want 2", by, behind, restart, asked)
			}
		}
	}
}

// TestAcceptedTwiceUnderOtherNames: a turn is accepted under other names than it was shown with, and handed over once more.
func TestAcceptedTwiceUnderOtherNames(t *testing.T) {
	for _, by := range []string{"id", "key", "time"} {
		for k := range 4 {
			loop, restart := k&1 > 0, k&2 > 0
			f := newFixture(t)
			turn := func(round int) []message.Message {
				list := one(user("do it"), calling("c1"), resulting("c1", "ok"), assistant("done"))
				for i := range list {
					list[i] = namedBy(by, 1+10*round+i, list[i])
				}
				return list
			}
			f.assemble(1000, transcript("", turn(0)[:1]...))
			if loop {
				f.assemble(1000, transcript("", turn(0)[:3]...), inLoop)
			}
			f.accepts("commit", "t", turn(1))
			if restart {
				f.restart()
			}
			f.accepts("after turn", "", turn(1))
			if f.stored() != 4 {
				t.Errorf("by %s, loop %v, restart %v: %d stored, want 4", by, loop, restart, f.stored())
			}
		}
	}
}

// TestErasedUnderAnotherName: messages have other names once they are kept, or are typed again. What was erased stays so, whichever name its host shows it by.
func TestErasedUnderAnotherName(t *testing.T) {
	for _, by := range []string{"id", "key", "time"} {
		for _, way := range []string{"commit", "after turn", ""} {
			for k := range 16 {
				base, restart, loop, first := k&1 > 0, k&2 > 0, k&4 > 0, k&8 > 0
				f, n := newFixture(t), 0
				say := func(m message.Message) message.Message { n++; return namedBy(by, n, m) }
				var list []message.Message
				if base {
					list = one(say(user("q0")), say(assistant("a0")))
				}
				erase := func() {
					var ids []string
					for _, e := range entriesOf(f) {
						if strings.HasPrefix(e.Message.Text(), "secret") {
							ids = append(ids, e.ID)
						}
					}
					if len(ids) > 0 {
						f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: ids})
					}
				}
				var shownBy []message.Message // under the names that they had before
				for i := range 2 {
					secret := fmt.Sprint("secret", i)
					shownBy = append(shownBy, say(user(secret)))
					f.assemble(1000, transcript("", join(list, shownBy[i:])...))
					if restart {
						f.restart()
					}
					turn := one(say(user(secret)), say(calling(fmt.Sprint("c", i))), say(resulting(fmt.Sprint("c", i), "ok")), say(assistant("noted")))
					f.assemble(1000, transcript("", join(list, turn[:1])...))
					if loop {
						f.assemble(1000, transcript("", join(list, turn[:3])...), inLoop)
					}
					if way != "" {
						f.accepts(way, fmt.Sprint("t", i), turn)
					}
					list = join(list, turn)
					if first {
						erase()
					}
				}
				erase()
				for _, last := range []message.Message{say(user("next")), shownBy[1]} {
					list = join(list, one(last, say(assistant("fine"))))
					res := shown(f.assemble(1000, transcript("", join(list, one(say(user("and"))))...)))
					if all := fmt.Sprint(entriesOf(f)); strings.Contains(res+all, "secret") {
						t.Errorf("by %s, %q, base %v, restart %v, loop %v, first %v: what was erased is there, shown %s", by, way, base, restart, loop, first, res)
					}
				}
			}
		}
	}
}

// TestForkKnowsTheNamesOfItsParent: a message has another name once it is kept, and the host copies the list to a fork. What is erased of it is erased there, too.
func TestForkKnowsTheNamesOfItsParent(t *testing.T) {
	for _, by := range []string{"id", "key", "time"} {
		for _, erase := range []bool{false, true} {
			f := newFixture(t)
			list := one(namedBy(by, 1, user("q0")), namedBy(by, 2, assistant("a0")), namedBy(by, 4, user("go on")), namedBy(by, 5, assistant("badly")))
			f.assemble(1000, transcript("", join(list[:2], one(namedBy(by, 3, user("go on"))))...))
			f.accepts("commit", "t", list[2:])
			child := core.SessionID{Agent: f.id.Agent, Session: "child"}
			if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
			want := "q0 | a0 | go on"
			if erase {
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("go on").ID}})
				want = "q0 | a0"
			}
			f.id = child
			if got := shown(f.assemble(1000, transcript("", list[:3]...))); got != want || f.stored() > 0 {
				t.Errorf("by %s, erased %v: %d stored in the fork, shown %s, want %s", by, erase, f.stored(), got, want)
			}
		}
	}
}

// TestErasedCallUnderAnotherID: a host makes the ids of calls anew when a turn is accepted, and its list has them as they were. What is erased of them stays so.
func TestErasedCallUnderAnotherID(t *testing.T) {
	for k := range 8 {
		failed, restart, timed := k&1 > 0, k&2 > 0, k&4 > 0
		f := newFixture(t)
		var list []message.Message
		for i := range 6 {
			turn := func(anew string) []message.Message {
				id := fmt.Sprint("c", i, anew)
				out := one(user(fmt.Sprint("do ", i)), calling(id), resulting(id, fmt.Sprint("secret", i)), assistant(fmt.Sprint("done ", i)))
				if timed {
					out[0] = namedBy("time", 1+i, out[0])
				}
				return out
			}
			f.assemble(1000, transcript("", join(list, turn("")[:1])...))
			if failed && (i == 1 || i == 2) { // shown in a loop alone: it keeps its ids
				f.assemble(1000, transcript("", join(list, turn(""))...), inLoop)
			} else {
				f.accepts([]string{"commit", "after turn"}[i%2], fmt.Sprint("t", i), turn("new"))
			}
			list = join(list, turn(""))
		}
		f.assemble(1000, transcript("and now", list...))
		for i := range 6 {
			if restart {
				f.restart()
			}
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(fmt.Sprint("secret", i)).ID}})
			res := shown(f.assemble(1000, transcript("and now", list...)))
			for _, e := range entriesOf(f) {
				res += fmt.Sprint(" | ", e.Message.Parts)
			}
			if gone := fmt.Sprint("secret", i); strings.Contains(res, gone) {
				t.Errorf("failed %v, restart %v, timed %v: %s is there: %s", failed, restart, timed, gone, res)
			}
		}
	}
}
