package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// fullDisk is a store that takes nothing while it is full.
type fullDisk struct {
	*memory.Store
	full, noViews bool
}

func (s *fullDisk) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if s.full {
		return core.AppendResult{}, fmt.Errorf("full: append: the disk is full: %w", core.ErrUnavailable)
	}
	return s.Store.Append(ctx, entries)
}

func (s *fullDisk) SwapView(ctx context.Context, v core.View) error {
	if s.full || s.noViews {
		return fmt.Errorf("full: swap view: the disk is full: %w", core.ErrUnavailable)
	}
	return s.Store.SwapView(ctx, v)
}

// TestReadingNeedsNoWrite: where the store cannot be written, what it holds is assembled all the same, with and without the host's transcript, by a new process
// too, and the same each time. Info says that nothing can be kept. When there is room again nothing is missing.
func TestReadingNeedsNoWrite(t *testing.T) {
	for _, failure := range []engine.FailurePolicy{engine.FailDegrade, engine.FailStrict} {
		disk := &fullDisk{Store: memory.New()}
		f := newFixture(t, func(c *engine.Config, p *engine.Parts) { p.Store, c.Failure = disk, failure })
		f.store = disk.Store
		var all []message.Message
		for range 30 {
			all = append(all, user("go on "+strings.Repeat("word ", 30)), assistant("done "+strings.Repeat("word ", 30)))
		}
		f.ingest(all...)
		disk.full = true
		for _, host := range []bool{false, true} {
			f.restart()
			before := ""
			for n := range 3 {
				req := core.AssembleRequest{Session: f.id, Budget: 600, PromptMode: core.PromptNone}
				if host {
					req.Transcript = &core.Transcript{Messages: all}
				}
				res, err := f.engine.Assemble(t.Context(), req)
				if failure == engine.FailStrict {
					if err == nil {
						t.Errorf("host %v: a strict engine does without the store", host)
					}
					continue
				}
				if err != nil || res.Degraded != "" {
					t.Fatalf("host %v: %v, degraded %q", host, err, res.Degraded)
				}
				if got := shown(res); n > 0 && got != before || !strings.HasSuffix(got, all[len(all)-1].Text()) {
					t.Errorf("host %v: call %d shows %q, the one before %q", host, n, got, before)
				} else {
					before = got
				}
			}
			if h := f.engine.Info().Health; failure == engine.FailDegrade && (len(h) == 0 || h[0].Part != "store" || !strings.Contains(h[0].Text, "disk is full")) {
				t.Errorf("host %v: Health = %+v", host, h)
			}
		}
		disk.full = false
		f.ingest(user("there is room again"))
		if got := shown(f.assemble(600)); !strings.HasSuffix(got, "there is room again") || f.stored() > 61 {
			t.Errorf("with room again the window is %q", got)
		}
	}
}

// TestWhatAFullDiskRefusedIsKeptLater: what a window was decided to show while the store could not keep it, is kept with the next call that finds room, though
// nothing changed since: another process goes on with the same window, whatever budget it is asked for.
func TestWhatAFullDiskRefusedIsKeptLater(t *testing.T) {
	disk := &fullDisk{Store: memory.New()}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = disk })
	f.ingest(user("read it"), calling("c1"), resulting("c1", strings.Repeat("word ", 3000)), user("go on"))
	disk.full = true
	f.assemble(990)
	disk.full = false
	before := shown(f.assemble(990))
	f.restart()
	if got := shown(f.assemble(1000)); got != before {
		t.Errorf("another process shows\n%s\nthe one before\n%s", got, before)
	}
}

// TestWindowThatWasNotKept: where a call fails before what was sent could be kept, the session is read anew as it is stored, and the epoch says that what was sent is no
// prefix of what is sent now.
func TestWindowThatWasNotKept(t *testing.T) {
	disk := &fullDisk{Store: memory.New()}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = disk })
	for range 15 {
		f.ingest(user("go on "+strings.Repeat("word ", 30)), assistant("done "+strings.Repeat("word ", 30)))
	}
	before := f.assemble(5000)
	disk.noViews = true
	sent := f.assemble(600)
	if shown(sent) == shown(before) {
		t.Fatal("the smaller window is the same")
	}
	if _, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("lost")}); err == nil {
		t.Fatal("what was said was kept without a view")
	}
	disk.noViews = false
	now := f.assemble(5000)
	if strings.HasPrefix(shown(now), shown(sent)) || now.Epoch <= sent.Epoch {
		t.Errorf("epoch %d after %d, the window before\n%.300s\nand now\n%.300s", now.Epoch, sent.Epoch, shown(sent), shown(now))
	}
}
