package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// byParts publishes a summary of the oldest entries. Where something happens meanwhile it returns a patch that makes one of that and of those that there were.
type byParts struct{ meanwhile func() }

func (*byParts) OwnsCompaction() bool { return true }

func (b *byParts) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	if b.meanwhile == nil {
		return core.Patch{}, b.oldest(ctx, c)
	}
	b.meanwhile()
	b.meanwhile = func() {}
	if err := b.oldest(ctx, c); err != nil {
		return core.Patch{}, err
	}
	all := core.Replacement{Kind: "summary", Text: "all", Summaries: []string{"oldest"}}
	for _, s := range c.Summaries {
		all.Summaries = append(all.Summaries, s.ID)
	}
	return core.Patch{Replace: []core.Replacement{all}}, nil
}

func (*byParts) oldest(ctx context.Context, c core.Compaction) error {
	oldest := core.Replacement{Kind: "summary", Ref: "oldest", Text: "what was said first" + strings.Repeat(" more", 30)}
	for _, e := range c.Entries[:4] {
		oldest.Entries = append(oldest.Entries, e.ID)
	}
	return c.Publish(ctx, core.Patch{Replace: []core.Replacement{oldest}})
}

// condenses makes one summary of those that there are, and touches no entry.
type condenses struct{}

func (condenses) OwnsCompaction() bool { return true }

func (condenses) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	r := core.Replacement{Kind: "summary", Text: "both" + strings.Repeat(" more", 12)}
	for _, s := range c.Summaries {
		r.Summaries = append(r.Summaries, s.ID)
	}
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

// TestOvertakenBetweenTwoParts: others made one summary of two, then a part of the entries is published, which goes with that; a later part is about the two. It is planned anew.
func TestOvertakenBetweenTwoParts(t *testing.T) {
	store := memory.New()
	id := core.SessionID{Agent: "ada", Session: "shared"}
	open := func(c core.Compactor) *engine.Engine {
		cfg := engine.DefaultConfig()
		cfg.RecentMessages = 2
		e, err := engine.New(engine.Parts{Store: store, Compactor: c, Counter: wordCounter}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	parts := &byParts{}
	here, there := open(parts), open(condenses{})
	var texts []string
	for range 24 {
		texts = append(texts, strings.Repeat("many words ", 20))
	}
	say(t, here, id, texts...)
	compact := func(e *engine.Engine) core.CompactResult {
		t.Helper()
		res, err := e.Compact(t.Context(), core.CompactRequest{Session: id, Budget: 6000, Force: true})
		if err != nil || !res.OK {
			t.Errorf("Compact = %+v, %v", res, err)
		}
		return res
	}
	for range 2 {
		compact(here)
	}
	parts.meanwhile = func() { compact(there) }
	if res := compact(here); !strings.Contains(res.Reason, core.ReasonAlreadyCompacted) {
		t.Errorf("Compact = %+v, want one that was planned anew and found nothing more to do", res)
	}
}
