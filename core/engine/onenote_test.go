package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// noter compacts to a note, as compactors do that keep nothing.
type noter struct{}

func (noter) OwnsCompaction() bool { return true }

func (noter) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	r := core.Replacement{Kind: "note", Text: window.NotShown(4)}
	for i := range c.Entries[:4] {
		r.Entries = append(r.Entries, c.Entries[i].ID)
	}
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

// TestOneNote: what a compaction left out and what left the window since are counted in one note, which a host may hand back.
func TestOneNote(t *testing.T) {
	f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Compactor = noter{} })
	f.ingest(chatter(0, 6)...)
	if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil {
		t.Fatal(err)
	}
	var res core.AssembleResult
	for i := 6; i < 60; i += 6 {
		f.ingest(chatter(i, i+6)...)
		res = f.assemble(400)
	}
	got := shown(res)
	left := 0
	for _, ch := range res.Choices {
		if ch.Reason == window.OutBudget && ch.Message < 0 {
			left += ch.Count
		}
	}
	if n := strings.Count(got, "stored but not shown"); n != 1 || left == 0 || !strings.Contains(got, window.NotShown(4+left)) {
		t.Errorf("%d notes, %d messages left the window since: %s", n, left, got)
	}
	known := f.stored()
	f.assemble(400, func(r *core.AssembleRequest) {
		r.Call, r.Transcript = core.CallLoop, &core.Transcript{Messages: append(append([]message.Message{}, res.Messages...), user("go on"))}
	})
	if more := f.stored() - known; more != 1 {
		t.Errorf("%d messages are new, want 1", more)
	}
}

// TestOneNoteOfMore: the note goes on counting as it did when the host puts a line of its own among what a compaction left out.
func TestOneNoteOfMore(t *testing.T) {
	f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Compactor = noter{} })
	all := chatter(0, 6)
	f.assemble(4000, transcript("", all...))
	if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil {
		t.Fatal(err)
	}
	all = append(append(all, chatter(6, 60)...), user("and now?"))
	note := func(more ...message.Message) string {
		t.Helper()
		for _, m := range f.assemble(400, transcript("", more...), func(r *core.AssembleRequest) { r.Call = core.CallLoop }).Messages {
			if strings.Contains(m.Text(), "stored but not shown") {
				return m.Text()
			}
		}
		t.Fatal("no note is shown")
		return ""
	}
	was, step := note(all...), assistant("a step")
	for _, from := range []int{1, 3} {
		shows := append([]message.Message{assistant("(earlier messages were cut)")}, all[from:]...)
		if now := note(append(shows, step)...); now != was {
			t.Errorf("from message %d on the note is %q, and was %q", from, now, was)
		}
	}
}
