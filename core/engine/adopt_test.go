package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// viewless is a store that keeps no views.
type viewless struct{ core.Store }

// condenser makes a text of every two entries, and then one of the second and the third text.
type condenser struct{}

func (condenser) OwnsCompaction() bool { return true }

func (condenser) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	for i := range 5 {
		r := core.Replacement{Kind: "summary", Ref: fmt.Sprint("part", i), Text: fmt.Sprintf("part number %d", i)}
		for _, e := range c.Entries[2*i : 2*i+2] {
			r.Entries = append(r.Entries, e.ID)
		}
		if err := c.Publish(ctx, core.Patch{Replace: []core.Replacement{r}}); err != nil {
			return core.Patch{}, err
		}
	}
	return core.Patch{Replace: []core.Replacement{{Kind: "summary", Summaries: []string{"part1", "part2"}, Text: "both parts"}}}, nil
}

// TestOthersCompactions: what another process compacts is taken up, also where it stands for what that process compacted before, and the window says each time that
// what was sent is no prefix any more. The store keeps no views, so the summaries themselves are all that tells of it.
func TestOthersCompactions(t *testing.T) {
	f, other, _ := remoteFixture(t)
	f.ingest(user("a question that says a little more"), assistant("an answer with some words"))
	for n := 1; n <= 2; n++ {
		f.ingest(user(fmt.Sprint("question number ", n, " that says a little more")), assistant(fmt.Sprint("answer number ", n, " with some words")))
		before := f.assemble(1000)
		if res := other.compact(1000); !res.Compacted {
			t.Fatalf("round %d: Compact = %+v", n, res)
		}
		got, want := f.assemble(1000), shown(other.assemble(1000))
		if s := shown(got); s != want || !strings.HasPrefix(s, fmt.Sprint("summary number ", n, " | ")) {
			t.Errorf("round %d: shown %q, the process that compacted shows %q", n, s, want)
		}
		if got.Epoch <= before.Epoch {
			t.Errorf("round %d: epoch %d, before it %d", n, got.Epoch, before.Epoch)
		}
	}
}

// TestSummariesAreTakenUpInTheirPlace: a text that stands for earlier texts in the middle goes where they were, also when a view is rebuilt from the
// entries, because there is none or because a crash came between the two.
func TestSummariesAreTakenUpInTheirPlace(t *testing.T) {
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
		p.Store, p.Compactor = viewless{memory.New()}, condenser{}
	})
	var msgs []message.Message
	for i := range 12 {
		msgs = append(msgs, user(fmt.Sprintf("a question that says a little more, number %d", i)), assistant(fmt.Sprintf("an answer to it with some words, number %d", i)))
	}
	f.ingest(msgs...)
	if res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 1000, Force: true}); err != nil || !res.Compacted {
		t.Fatalf("Compact = %+v, %v", res, err)
	}
	summaries := func() (out []string) {
		d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range d.Summaries {
			out = append(out, fmt.Sprintf("%s of %d", s.Head, s.Covers))
		}
		return out
	}
	want := []string{"part number 0 of 2", "both parts of 4", "part number 3 of 2", "part number 4 of 2"}
	if diff := cmp.Diff(want, summaries()); diff != "" {
		t.Fatalf("summaries (-want +got):\n%s", diff)
	}
	f.restart()
	if diff := cmp.Diff(want, summaries()); diff != "" {
		t.Errorf("summaries after a restart (-want +got):\n%s", diff)
	}
}
