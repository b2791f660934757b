package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
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
