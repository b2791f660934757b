package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// swapping is a store that refuses one of the views.
type swapping struct {
	*memory.Store
	refused, swaps int
}

func (s *swapping) SwapView(ctx context.Context, v core.View) error {
	if s.swaps++; s.swaps == s.refused {
		return errors.New("no room")
	}
	return s.Store.SwapView(ctx, v)
}

// TestSupersededThoughAViewIsRefused: a whole list that has another beginning takes the old one out of force, whichever of the views the store refuses meanwhile.
func TestSupersededThoughAViewIsRefused(t *testing.T) {
	for refused := 1; refused < 8; refused++ {
		store := &swapping{Store: memory.New()}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
		f.store = store.Store
		whole := func(messages ...message.Message) func(*core.AssembleRequest) {
			return func(r *core.AssembleRequest) { r.Transcript = &core.Transcript{Messages: messages, Whole: true} }
		}
		f.assemble(1000, whole(user("one"), user("two")))
		store.swaps, store.refused = 0, refused
		for range 2 {
			_, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, Transcript: &core.Transcript{Messages: []message.Message{user("another"), user("two")}, Whole: true}})
			if err != nil && store.swaps < refused {
				t.Fatal(err)
			}
		}
		for range 2 {
			if got := shown(f.assemble(1000, whole(user("another"), user("two")))); got != "another | two" {
				t.Errorf("view %d refused: shown %q", refused, got)
			}
			f.restart()
		}
	}
}

// TestSupersededButShownElsewhere: a whole list that has another beginning shows what it took from the old one, and takes it out of force nowhere.
func TestSupersededButShownElsewhere(t *testing.T) {
	for _, viewed := range []bool{true, false} {
		for _, lists := range [][]string{
			{"u1 a2", "u3 a2 u1", "u3 a4 u1"},
			{"u1 a2", "u3 a2 u1", "u3 u3 a2"},
			{"u1 a2", "u3 a2", "u3 a4", "u3 u5 a4"},
			{"u2 a1", "u8 a1", "u8 a1 a1", "u8 a13 a1"},
		} {
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
				if !viewed {
					p.Store = viewless{p.Store}
				}
			})
			for i, list := range lists {
				last := i == len(lists)-1
				for range 2 {
					got := shown(f.assemble(1000, transcript("now", called("id", list)...), func(r *core.AssembleRequest) { r.Transcript.Whole = last }))
					if last && got != strings.Join(strings.Fields(list), " | ") {
						t.Errorf("views kept %t: the host shows %q, the window is %q", viewed, lists, got)
					}
					f.sound()
				}
			}
		}
	}
}

// TestKeyOfAnotherText: a transcript has what it says, also where the host calls it by the key of a message that said something else.
func TestKeyOfAnotherText(t *testing.T) {
	list := called("key", "u1 a2 u3")
	for at, name := range []string{"first", "in the middle", "last", "all of them"} {
		for _, whole := range []bool{true, false} {
			if at%3 == 0 && !whole {
				continue // what stands in front of what is known is only not shown
			}
			t.Run(fmt.Sprintf("%s, whole %t", name, whole), func(t *testing.T) {
				f := newFixture(t)
				for _, text := range []string{"", "edited", "edited again", "edited"} {
					said := slices.Clone(list)
					for i, m := range list {
						if text != "" && (i == at || at == len(list)) {
							said[i] = message.New(m.Role, fmt.Sprint(text, " ", i))
							said[i].Key = m.Key
						}
					}
					for range 2 {
						got := shown(f.assemble(1000, transcript("", said...), func(r *core.AssembleRequest) { r.Transcript.Whole = whole }))
						if want := strings.Join(textsOf(said), " | "); got != want {
							t.Errorf("the host shows %q, the window is %q", want, got)
						}
						f.sound()
						f.restart()
					}
				}
				want := 5
				if at == len(list) {
					want = 9
				}
				if n := f.stored(); n != want {
					t.Errorf("%d entries are stored, want %d", n, want)
				}
			})
		}
	}
}

// TestNameOfAnErasedText: what a host calls by the name of a message that was erased is stored and shown, unless it says what that one said.
func TestNameOfAnErasedText(t *testing.T) {
	for _, by := range []string{"", "id", "key", "time"} {
		for _, whole := range []bool{true, false} {
			f := newFixture(t)
			list := called(by, "u1 a2 u3")
			show := func(want ...string) {
				t.Helper()
				for range 2 {
					got := shown(f.assemble(1000, transcript("", list...), func(r *core.AssembleRequest) { r.Transcript.Whole = whole }))
					if want := strings.Join(want, " | "); got != want {
						t.Errorf("by %q, whole %t: shown %q, want %q", by, whole, got, want)
					}
					f.sound()
					f.restart()
				}
			}
			edit := func(text string) {
				m := message.New(list[2].Role, text)
				m.ID, m.Key, m.Time = list[2].ID, list[2].Key, list[2].Time
				list = append(slices.Clone(list[:2]), m)
			}
			erase := func(text string) {
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(text).ID}})
			}
			show("u1", "a2", "u3")
			erase("u3")
			show("u1", "a2")
			edit("another")
			show("u1", "a2", "another")
			erase("another")
			show("u1", "a2")
			edit("a third one")
			show("u1", "a2", "a third one")
			edit("u3")
			show("u1", "a2")
		}
	}
}

// TestWholeListBehindWhatWasErased: what a whole list has in place of an erased beginning, and what it deletes behind that, is followed as anywhere.
func TestWholeListBehindWhatWasErased(t *testing.T) {
	for _, by := range []string{"", "id", "key", "time"} {
		f := newFixture(t)
		for i, list := range []string{"u1 a2 u3", "u8 a2 u3", "u8 u3 a9"} {
			got := shown(f.assemble(1000, transcript("", called(by, list)...), func(r *core.AssembleRequest) { r.Transcript.Whole = true }))
			if want := strings.Join(strings.Fields(list), " | "); got != want {
				t.Errorf("by %q: the host shows %q, the window is %q", by, want, got)
			}
			if i == 0 {
				if _, err := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: f.ids("u1")}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
