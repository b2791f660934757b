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

// TestErasedBesideCallIDsAnew: a host makes the ids of calls anew with every list. One process, no restart: a result, or a call, is erased, the list grows.
func TestErasedBesideCallIDsAnew(t *testing.T) {
	for _, gone := range []int{0, 1, 2, 3} {
		f := newFixture(t)
		list := func(round int) []message.Message {
			id := fmt.Sprint("r", round, "c")
			return one(user("q0"), calling(id), resulting(id, "the secret"), assistant("done"), user("q1"))
		}
		f.assemble(1000, transcript("", user("q0")))
		f.assemble(1000, transcript("", list(1)...))
		f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entriesOf(f)[gone].ID}})
		f.assemble(1000, transcript("", join(list(2), one(assistant("well"), user("q2")))...))
		n, secret := 0, false
		for _, e := range entriesOf(f) {
			if e.Type == core.TypeMessage {
				n++
				secret = secret || strings.Contains(fmt.Sprint(e.Message.Parts), "the secret")
			}
		}
		if n != 6 || gone == 2 && secret {
			t.Errorf("erased message %d: %d messages stored, want 6; the erased result is back: %v", gone, n, gone == 2 && secret)
		}
	}
}

// TestErasedWhereIDsAreMadeAnew: a host makes the ids of its messages anew with every list, their times stay. The first message is erased; the next list keeps it and
// leaves out what is behind it.
func TestErasedWhereIDsAreMadeAnew(t *testing.T) {
	for _, erase := range []bool{false, true} {
		for cut := 1; cut < 5; cut++ {
			f, round := newFixture(t), 0
			two := callingFor("c1", "a")
			two.Parts = append(two.Parts, callingFor("c2", "a").Parts...)
			all := one(user("q1"), two, resulting("c1", "ok"), resulting("c2", "ok"), assistant("a1"), user("q2"), assistant("a2"), user("q3"))
			for i := range all {
				all[i].Time = time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
			}
			anew := func(list []message.Message) []message.Message {
				round++
				list = join(list)
				for i := range list {
					list[i].ID = fmt.Sprint(round, "-", i)
				}
				return list
			}
			f.assemble(1000, transcript("", anew(all[:6])...))
			want := 8
			if erase {
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entriesOf(f)[0].ID}})
				want--
			}
			f.assemble(1000, transcript("", anew(join(all[:1], all[cut:]))...))
			n := 0
			for _, e := range entriesOf(f) {
				if e.Type == core.TypeMessage {
					n++
				}
			}
			if n != want {
				t.Errorf("erased %v, %d left out: %d messages stored, want %d", erase, cut-1, n, want)
			}
		}
	}
}
