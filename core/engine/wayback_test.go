package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// identified gives messages ids of the host's, or keys.
func identified(keys bool, messages ...message.Message) []message.Message {
	out := join(messages)
	for i := range out {
		if id := fmt.Sprintf("host's %.40s", out[i].Text()); keys {
			out[i].Key = id
		} else {
			out[i].ID = id
		}
	}
	return out
}

// sayings are the ways in which messages come to a session.
var sayings = map[string]func(f *fixture, before, more []message.Message){
	"transcript": func(f *fixture, before, more []message.Message) {
		f.assemble(1000, transcript("now", join(before, more)...))
	},
	"messages": func(f *fixture, _, more []message.Message) {
		for _, m := range more {
			f.ingest(m)
		}
	},
	"batch": func(f *fixture, _, more []message.Message) { f.ingest(more...) },
	"turn": func(f *fixture, _, more []message.Message) {
		f.commit(fmt.Sprintf("turn %d", f.stored()), more...)
	},
	"after turn": func(f *fixture, before, more []message.Message) {
		if err := f.engine.AfterTurn(f.t.Context(), core.AfterTurnRequest{Session: f.id, Messages: join(before, more), PrePrompt: len(before)}); err != nil {
			f.t.Fatal(err)
		}
	},
}

func (f *fixture) commit(key string, messages ...message.Message) core.CommitTurnResult {
	f.t.Helper()
	res, err := f.engine.CommitTurn(f.t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: key, Messages: messages})
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

// TestTurnCommittedAgain: a turn that was taken back and is accepted once more is in force again, and committed; what is in force already is a duplicate of itself.
func TestTurnCommittedAgain(t *testing.T) {
	f := newFixture(t)
	base := identified(false, turns(2)...)
	f.commit("first", base[:2]...)
	first := f.commit("second", base[2:]...)
	f.assemble(1000, transcript("now", base[:2]...))
	again := f.commit("third", base[2:]...)
	if again.Status != core.Committed || !slices.Equal(again.IDs, first.IDs) {
		t.Errorf("committed again: %+v, want %+v", again, first)
	}
	if got, want := shown(f.assemble(1000)), shown(core.AssembleResult{Messages: base}); got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
	if res := f.commit("third", base[2:]...); res.Status != core.Duplicate {
		t.Errorf("the same turn: %+v, want a duplicate", res)
	}
}

// TestWayBack: what was taken back and is said again, with more behind it or between, stands where the host has it and is stored once, however it came the first time
// and however it comes the second.
func TestWayBack(t *testing.T) {
	for _, keys := range []bool{false, true} {
		base := identified(keys, turns(3)...)
		more := identified(keys, user("and more"), assistant("well"))
		for name, again := range map[string][]message.Message{
			"with more behind": join(base[2:], more),
			"with more before": join(more, base[2:]),
			"with more within": join(base[2:4], more, base[4:]),
			"in another order": join(base[4:], base[2:4], more),
			"in part":          join(base[4:], more),
			"only":             base[2:],
		} {
			for first, say := range sayings {
				for second, sayAgain := range sayings {
					t.Run(fmt.Sprintf("%s/keys %t/%s/%s", name, keys, first, second), func(t *testing.T) {
						f := newFixture(t)
						say(f, nil, base[:2])
						say(f, base[:2], base[2:])
						other := f.second()
						other.assemble(1000)
						f.assemble(1000, transcript("now", base[:2]...))
						sayAgain(other, base[:2], again)
						want := shown(core.AssembleResult{Messages: join(base[:2], again)})
						for n := range 3 {
							if got := shown(f.assemble(1000)); got != want {
								t.Errorf("call %d shows %q, want %q", n, got, want)
							}
							f = f.second()
						}
						if got := shown(f.assemble(1000, transcript("now", join(base[:2], again)...))); got != want {
							t.Errorf("handed over, shown: %q, want %q", got, want)
						}
						stored := len(base)
						if name != "only" {
							stored += len(more)
						}
						if n := f.stored(); n != stored {
							t.Errorf("%d entries are stored, want %d", n, stored)
						}
					})
				}
			}
		}
	}
}
