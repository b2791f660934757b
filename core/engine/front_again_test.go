package engine_test

import (
	"fmt"
	"testing"

	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestCompactedListComparedAgain: a host compacted its list, and makes the ids of messages anew each time, so that the list is compared as a whole: it is the same, and so is
// the window. A system message that led before came in the midst of it.
func TestCompactedListComparedAgain(t *testing.T) {
	for _, erases := range []bool{false, true} {
		for _, budget := range []int{20, 26, 1000} {
			f, n := newFixture(t), 0
			anew := func(list ...message.Message) []message.Message {
				for i := range list {
					n++
					list[i].ID = fmt.Sprint("list ", n)
				}
				return list
			}
			sum := user("the host's summary")
			sum.Type = message.CompactionSummary
			system := func(text string) message.Message { return message.New(message.System, text) }
			f.accepts("commit", "0", anew(user("q1"), user("q2"), assistant("a2")))
			f.assemble(1000, transcript("q3", anew(system("first"), user("q1"), user("q2"), assistant("a2"))...))
			f.accepts("commit", "1", anew(user("q3"), assistant("a3")))
			if erases {
				entries := entriesOf(f)
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entries[len(entries)-1].ID}})
			}
			compacted := func() []message.Message {
				return anew(system("third"), sum, user("q2"), assistant("a2"), user("q3"), assistant("a3"))
			}
			first := f.assemble(budget, transcript("", compacted()...))
			for range 3 {
				f.restart() // it is not known any more that the ids say nothing
				if again := f.assemble(budget, transcript("", compacted()...)); shown(again) != shown(first) || again.Epoch != first.Epoch {
					t.Errorf("erases %v, budget %d: again in epoch %d: %q; first in %d: %q", erases, budget, again.Epoch, shown(again), first.Epoch, shown(first))
				}
			}
		}
	}
}
