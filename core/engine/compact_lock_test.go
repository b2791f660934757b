package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// reads counts what is read of a store.
type reads struct {
	*memory.Store
	entries atomic.Int64
}

func (r *reads) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	p, err := r.Store.Scan(ctx, q)
	r.entries.Add(int64(len(p.Entries)))
	return p, err
}

// piecemeal publishes a replacement for every hundred entries, and looks at what the session does meanwhile.
type piecemeal struct{ between func() }

func (piecemeal) OwnsCompaction() bool { return true }

func (p piecemeal) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	for i := 0; i+100 <= len(c.Entries)-c.Protected; i += 100 {
		r := core.Replacement{Kind: "summary", Text: fmt.Sprintf("part %d", i)}
		for _, e := range c.Entries[i : i+100] {
			r.Entries = append(r.Entries, e.ID)
		}
		if err := c.Publish(ctx, core.Patch{Replace: []core.Replacement{r}}); err != nil {
			return core.Patch{}, err
		}
		p.between()
	}
	return core.Patch{}, nil
}

// TestPublishingReadsNothing: a compaction of a long history reads it when it begins and when it ends. Each published part in between costs no reading, and the
// session answers all the while.
func TestPublishingReadsNothing(t *testing.T) {
	store := &reads{Store: memory.New()}
	var f *fixture
	published, before := 0, int64(0)
	f = newFixture(t, func(_ *engine.Config, p *engine.Parts) {
		p.Store = store
		p.Compactor = piecemeal{between: func() {
			published++
			if n := store.entries.Load() - before; published > 1 && n > 500 {
				t.Errorf("part %d and a prompt read %d entries", published, n)
			}
			f.assemble(600)
			before = store.entries.Load()
		}}
	})
	const n = 10_000
	batch := make([]message.Message, 0, n)
	for i := range n / 2 {
		batch = append(batch, user(fmt.Sprint("question ", i)), assistant(fmt.Sprint("answer ", i)))
	}
	f.ingest(batch...)
	f.assemble(600)
	res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Force: true})
	if err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	if published < 90 {
		t.Fatalf("%d parts were published", published)
	}
	if total := store.entries.Load(); total > 4*n {
		t.Errorf("%d entries were read for %d messages", total, n)
	}
}

// TestWhatComesDuringACompaction: what a session is told while a compaction is at work is in force afterwards, and no part of what the compaction says it made
// of the history.
func TestWhatComesDuringACompaction(t *testing.T) {
	for _, more := range []int{0, 1, 3} {
		var f *fixture
		left := more
		f = newFixture(t, func(_ *engine.Config, p *engine.Parts) {
			p.Compactor = piecemeal{between: func() {
				for ; left > 0; left-- {
					f.ingest(user("meanwhile " + strings.Repeat("more ", 50)))
				}
			}}
		})
		for i := range 125 {
			f.ingest(user(fmt.Sprint("question ", i)), assistant(fmt.Sprint("answer ", i)))
		}
		f.assemble(400)
		res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Force: true})
		if err != nil || !res.Compacted {
			t.Fatalf("%+v, %v", res, err)
		}
		if res.TokensBefore != 1750 || res.TokensAfter != 364 {
			t.Errorf("%d messages came meanwhile: %d tokens before, %d after, want what they are without them", more, res.TokensBefore, res.TokensAfter)
		}
		if got := strings.Count(sentText(f.assemble(4000)), "meanwhile"); got != more {
			t.Errorf("%d of %d messages that came meanwhile are shown", got, more)
		}
	}
}
