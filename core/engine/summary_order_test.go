package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// picking replaces summaries by their numbers.
type picking struct{ which []int }

func (picking) OwnsCompaction() bool { return true }

func (p *picking) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	r := core.Replacement{Kind: "summary", Text: "new"}
	if p.which == nil {
		r.Text = strings.Fields(c.Entries[0].Text())[0] + strings.Repeat(" of", 10)
		r.Entries = []string{c.Entries[0].ID}
	}
	for _, n := range p.which {
		r.Summaries = append(r.Summaries, c.Summaries[n].ID)
	}
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

// TestSummaryOfSummariesStandsWhereTheFirstWas: a summary of others stands where the oldest of them did, and those that stay keep their order, for another process too.
func TestSummaryOfSummariesStandsWhereTheFirstWas(t *testing.T) {
	for _, tc := range []struct {
		which []int
		want  []string
	}{
		{[]int{0, 2}, []string{"new", "two", "four"}}, {[]int{0, 1}, []string{"new", "three", "four"}}, {[]int{1, 3}, []string{"one", "new", "three"}},
		{[]int{2, 3}, []string{"one", "two", "new"}}, {[]int{0, 3}, []string{"new", "two", "three"}}, {[]int{0, 1, 2, 3}, []string{"new"}},
	} {
		p := &picking{}
		f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Compactor = p })
		for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
			f.ingest(user(name + strings.Repeat(" word", 40)))
		}
		for range 4 {
			f.compact(4000)
		}
		p.which = tc.which
		f.compact(4000)
		for range 2 {
			d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range d.Summaries {
				got = append(got, strings.Fields(s.Head)[0])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%v replaced: %s", tc.which, diff)
			}
			f.restart()
		}
	}
}
