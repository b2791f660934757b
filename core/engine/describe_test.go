package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestDescribeCountsWhatIsShownShortened: what was shortened and is not in force any more is neither counted nor offered.
func TestDescribeCountsWhatIsShownShortened(t *testing.T) {
	long := strings.Repeat("word ", 300)
	all := one(user("q0"), assistant("a0"), user("q1"), calling("c1"), resulting("c1", long), assistant("a1"))
	for i := range all {
		all[i].ID = fmt.Sprint("m", i)
	}
	summary := user("the host's summary")
	summary.Type = message.CompactionSummary
	for _, tc := range []struct {
		name  string
		then  []message.Message
		erase int
	}{
		{"nothing", all, -1},
		{"taken back", all[:2], -1},
		{"another turn", join(all[:2], one(namedBy("id", 90, user("other")))), -1},
		{"compacted by the host", join(one(summary), all[5:]), -1},
		{"call erased", all, 3}, // rules leave its result out, which is in the window
		{"erased", all, 4},
	} {
		for _, restart := range []bool{false, true} {
			f := newFixture(t)
			f.assemble(500, transcript("", all...))
			if tc.erase >= 0 {
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entriesOf(f)[tc.erase].ID}})
			}
			if restart {
				f.restart()
			}
			res := f.assemble(500, transcript("", tc.then...))
			n := 0
			for _, c := range res.Choices {
				if c.Message >= 0 && c.Stub != "" {
					n++
				}
			}
			d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
			if err != nil || tc.erase != 3 && d.Shortened != n || strings.Contains(d.Text, "Shortened, newest first") != (d.Shortened > 0) {
				t.Errorf("%s, restart %v: %d shortened, want %d; %q, %v", tc.name, restart, d.Shortened, n, d.Text, err)
			}
			if tc.name == "nothing" && n == 0 {
				t.Errorf("nothing was shortened: %s", shown(res))
			}
		}
	}
}
