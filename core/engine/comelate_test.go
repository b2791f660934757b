package engine_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

var notShown = regexp.MustCompile(`\[(\d+) earlier messages are stored but not shown`)

// spokenOf is how many messages a window's note says that it does not show.
func spokenOf(t *testing.T, res core.AssembleResult) int {
	t.Helper()
	found := notShown.FindStringSubmatch(shown(res))
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOlderMessagesBehindASummary: a host shows the newest of its messages, they are compacted, and then it shows all it has. What is older than the summary is not in
// it: the note speaks of it, also after a restart, and the summary stands for those that it was made of.
func TestOlderMessagesBehindASummary(t *testing.T) {
	for _, named := range []bool{true, false} {
		for _, whole := range []bool{true, false} {
			t.Run(fmt.Sprintf("named %t whole %t", named, whole), func(t *testing.T) {
				f := newFixture(t)
				var host []message.Message
				for i := range 12 {
					m := message.New([]message.Role{message.User, message.Assistant}[i%2], fmt.Sprintf("w%d and so on and on and on and on", i))
					if named {
						m.ID = fmt.Sprintf("id%d", i)
					}
					host = append(host, m)
				}
				set := func(r *core.AssembleRequest) { r.Transcript.Whole = whole }
				f.assemble(100_000, transcript("now", host[4:]...), set)
				if res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100_000, Force: true, Target: core.TargetBudget}); err != nil || !res.Compacted {
					t.Fatalf("Compact = %+v, %v", res, err)
				}
				made, err := f.store.LoadView(t.Context(), f.id)
				if err != nil {
					t.Fatal(err)
				}
				host = append(host, user("w12 is the newest"))
				for range 3 {
					res := f.assemble(100_000, transcript("", host...), set)
					if n := spokenOf(t, res); n != 4 || strings.Contains(shown(res), "w3") {
						t.Errorf("the note speaks of %d messages, want 4: %q", n, shown(res))
					}
					f.restart()
				}
				d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
				if err != nil || d.Left != 4 || len(d.Summaries) != 1 || d.Summaries[0].Covers != made.Summaries[0].Covers {
					t.Errorf("Describe = %+v, %v; want 4 left, and a summary of %d", d, err, made.Summaries[0].Covers)
				}

				// A summary of the summary stands for no more than that did.
				if res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 1000, Force: true}); err != nil || !res.OK {
					t.Fatalf("Compact = %+v, %v", res, err)
				}
				f.restart()
				if n := spokenOf(t, f.assemble(100_000, transcript("", host...), set)); n != 4 {
					t.Errorf("after another compaction the note speaks of %d messages, want 4", n)
				}

				// All that is newer is erased: what comes back is what the summary spoke of, and the older ones are still spoken of.
				v, err := f.store.LoadView(t.Context(), f.id)
				if err != nil {
					t.Fatal(err)
				}
				for pos := v.Frontier; pos >= v.Floor(); pos-- {
					back := v.Clone()
					back.Apply(edit.Retreat{To: pos})
					if left := back.Front().Left; left != min(4, pos-v.Floor()) && pos > v.Floor() || back.Floor() > v.Floor() {
						t.Errorf("given back from %d on, %d are left and the floor is %d: %+v", pos, left, back.Floor(), back.Summaries)
					}
				}
			})
		}
	}
}

// TestOlderMessagesTwice: a host shows older messages again and again. Describe knows of all of them at once, and the note from the next step on.
func TestOlderMessagesTwice(t *testing.T) {
	f := newFixture(t)
	var host []message.Message
	for i := range 18 {
		m := message.New([]message.Role{message.User, message.Assistant}[i%2], fmt.Sprintf("w%d and so on and on and on and on", i))
		m.ID = fmt.Sprintf("id%d", i)
		host = append(host, m)
	}
	f.assemble(100_000, transcript("", host[12:]...))
	f.compact(100_000)
	for from := 8; from >= 0; from -= 4 {
		for range 2 {
			res := f.assemble(100_000, transcript("", host[from:]...))
			d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
			if err != nil || d.Left != 12-from || d.Shown+d.Left+d.Summaries[0].Covers != d.Entries {
				t.Errorf("shown from message %d on: %+v, %v; want %d left", from, d, err, 12-from)
			}
			if n := spokenOf(t, res); n != 4 {
				t.Errorf("the note speaks of %d messages, want 4: %q", n, shown(res))
			}
			f.restart()
		}
	}
	for i := range 24 {
		host = append(host, message.New([]message.Role{message.User, message.Assistant}[i%2], fmt.Sprintf("v%d and so on and on and on and on", i)))
	}
	res := f.assemble(250, transcript("", host...))
	if n := spokenOf(t, res); n < 12 || !res.Stepped {
		t.Errorf("after a step (%t) the note speaks of %d messages, want 12 or more: %q", res.Stepped, n, shown(res))
	}
}
