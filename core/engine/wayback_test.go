package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
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

// TestTurnCommittedLongAgo: a turn that is committed once more is a duplicate, however many came since, and whatever of it the window still shows. One that a tool loop
// brought is committed once.
func TestTurnCommittedLongAgo(t *testing.T) {
	for _, ids := range []bool{true, false} {
		f := newFixture(t)
		all := turns(100)
		if ids {
			all = identified(false, all...)
		}
		for i := 0; i < len(all); i += 2 {
			f.commit(fmt.Sprint("turn ", i), all[i:i+2]...)
		}
		for i := 0; i < len(all)-2; i += 2 {
			if res := f.commit(fmt.Sprint("turn ", i), all[i:i+2]...); res.Status != core.Duplicate {
				t.Fatalf("ids %v: turn %d again: %s, want duplicate", ids, i, res.Status)
			}
		}
		if n := f.stored(); n != len(all) {
			t.Errorf("ids %v: %d entries are stored, want %d", ids, n, len(all))
		}
	}
	f := newFixture(t)
	turn := identified(false, turns(2)...)
	f.ingest(turn...)
	if res := f.commit("new", turn[2:]...); res.Status != core.Committed {
		t.Errorf("a turn whose messages were ingested: %s, want committed", res.Status)
	}
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

// TestSystemMessageComesBack: a system message that stands in front again, or in the midst where it stood in front before, is shown once, where the host has it, and stored
// once, whatever became of the conversation meanwhile.
func TestSystemMessageComesBack(t *testing.T) {
	brief, other := identified(false, system("be brief")), identified(false, system("be kind"))
	base, side := identified(false, turns(3)...), identified(false, user("aside"), assistant("yes"))
	for name, lists := range map[string][][]message.Message{
		"behind another conversation":                 {join(brief, base[:2]), side, join(brief, base[:3])},
		"behind another conversation, which stays":    {join(brief, base[:2]), side, join(brief, side, base[4:])},
		"behind another message in front":             {join(brief, base[:2]), join(other, side), join(brief, base[:3])},
		"behind another one, twice":                   {join(brief, base[:2]), side, join(brief, base[:3]), side, join(brief, base)},
		"with another one":                            {join(brief, base[:2]), side, join(other, brief, base[:3])},
		"behind a conversation that it did not begin": {base[:2], join(brief, base[:2]), side, join(brief, base[:3])},
		"from the midst":                              {join(base[:2], brief, base[2:4]), base[:2], join(brief, base[:3])},
		"from the midst of what was left":             {join(base[:2], brief, base[2:4]), side, join(brief, base[:3])},
		"to the midst of what it began":               {join(brief, base[:2]), side, join(base[:2], brief, base[2:3])},
	} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, whole %t", name, whole), func(t *testing.T) {
				f := newFixture(t)
				tell := func(list []message.Message) string {
					return shown(f.assemble(1000, transcript("now", list...), func(r *core.AssembleRequest) { r.Transcript.Whole = whole }))
				}
				said := make(map[string]bool)
				for _, list := range lists {
					for range 2 {
						if got, want := tell(list), shown(core.AssembleResult{Messages: list}); got != want {
							t.Errorf("shown: %q, want %q", got, want)
						}
						f = f.second()
					}
					for _, m := range list {
						said[m.ID] = true
					}
				}
				if n := f.stored(); n != len(said) {
					t.Errorf("%d entries are stored, want %d", n, len(said))
				}
				last := join(lists[len(lists)-1], identified(false, user("at last")))
				if got, want := tell(last), shown(core.AssembleResult{Messages: last}); got != want {
					t.Errorf("with more behind, shown: %q, want %q", got, want)
				}
			})
		}
	}
}

// TestSystemMessageComesBackOverACompaction: what a summary stands for is the same behind a system message that came back.
func TestSystemMessageComesBackOverACompaction(t *testing.T) {
	brief := identified(false, system("be brief"))
	first, side := identified(false, user("begin")), identified(false, turns(6)...)
	f := newFixture(t)
	f.assemble(1000, transcript("now", join(brief, first)...))
	f.assemble(1000, transcript("now", side[:10]...))
	if res := f.compact(1000); !res.Compacted {
		t.Fatalf("Compact = %+v", res)
	}
	before := f.assemble(1000, transcript("now", side[:10]...))
	expand := func() int {
		v, err := f.store.LoadView(t.Context(), f.id)
		if err != nil || len(v.Summaries) == 0 {
			t.Fatalf("view %+v: %v", v, err)
		}
		found, total := f.pages(engine.ExpandRequest{Session: f.id, ID: v.Summaries[0].ID})
		if len(found) != total {
			t.Errorf("%d of %d entries are found", len(found), total)
		}
		return total
	}
	total := expand()
	want := "be brief | " + shown(before) + " | " + side[10].Text()
	for n := range 3 {
		if got := shown(f.assemble(1000, transcript("now", join(brief, side[:11])...))); got != want {
			t.Errorf("call %d shows %q, want %q", n, got, want)
		}
		if n := expand(); n != total {
			t.Errorf("the summary stands for %d entries, before for %d", n, total)
		}
		f = f.second()
	}
	f.assemble(1000, transcript("now", join(brief, side)...))
	if res := f.compact(1000); !res.Compacted {
		t.Errorf("Compact = %+v", res)
	}
	if got := shown(f.assemble(1000, transcript("now", join(brief, side)...))); !strings.HasPrefix(got, "be brief | summary number ") || strings.Count(got, "be brief") != 1 {
		t.Errorf("after another compaction, shown: %q", got)
	}
}
