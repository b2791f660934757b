package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// afterwards is a host that tells of turns that ended, and has maintenance or has not.
type afterwards struct {
	core.NoHost
	maintains bool
}

func (h afterwards) Capabilities() []capability.Name {
	return slices.DeleteFunc(h.NoHost.Capabilities(), func(c capability.Name) bool { return c == capability.Maintain && !h.maintains })
}

// counted is a compactor that notes how often it is asked, and answers when it is let.
type counted struct {
	halver
	asked atomic.Int64
	let   chan struct{}
}

func (c *counted) Compact(ctx context.Context, t core.Compaction) (core.Patch, error) {
	c.asked.Add(1)
	<-c.let
	return c.halver.Compact(ctx, t)
}

// TestAfterTurnBeginsWhatIsDue: where the host has no maintenance a turn's end begins the compaction that is due, once, and does not wait for it; where it has,
// or where compaction is not to begin by itself, nothing is begun.
func TestAfterTurnBeginsWhatIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		maintains, proactive bool
		want                 int64
	}{
		"no maintenance": {false, true, 1},
		"maintenance":    {true, true, 0},
		"on demand":      {false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := &counted{let: make(chan struct{})}
			f := newFixture(t, func(cfg *engine.Config, p *engine.Parts) {
				p.Host, p.Compactor, cfg.Compaction.Proactive = afterwards{maintains: c.maintains}, k, c.proactive
			})
			var due bool
			for i := range 60 {
				turn := []message.Message{user(fmt.Sprintf("question %d with some words", i)), assistant(fmt.Sprintf("answer %d with some words", i))}
				if err := f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: turn}); err != nil {
					t.Fatal(err)
				}
				due = f.assemble(200).CompactionDue || due
			}
			if !due {
				t.Fatal("no compaction is due")
			}
			close(k.let)
			summaries := func() int {
				res, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
				if err != nil {
					t.Fatal(err)
				}
				return len(res.Summaries)
			}
			for watchdog := time.Now().Add(time.Minute); c.want > 0 && summaries() == 0 && time.Now().Before(watchdog); {
				runtime.Gosched()
			}
			if got := k.asked.Load(); got != c.want || summaries() != int(c.want) {
				t.Errorf("asked %d times, %d summaries, want %d", got, summaries(), c.want)
			}
			if err := f.engine.Dispose(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestAfterTurnBeginsAgain: when a compaction that a turn's end began is over, the next turn's end begins the next one that is due.
func TestAfterTurnBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &counted{let: make(chan struct{})}
		close(k.let)
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host, p.Compactor = afterwards{}, k })
		for i := range 60 {
			turn := []message.Message{user(fmt.Sprintf("question %d with some words", i)), assistant(fmt.Sprintf("answer %d with some words", i))}
			if err := f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: turn}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			f.assemble(200)
		}
		if n := k.asked.Load(); n < 2 {
			t.Errorf("%d compactions in 60 turns, want more than one", n)
		}
		if err := f.engine.Dispose(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
