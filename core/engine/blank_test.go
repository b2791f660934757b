package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// mute is a compactor whose texts say nothing.
type mute struct{ text string }

func (mute) OwnsCompaction() bool { return true }

func (m mute) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	r := core.Replacement{Kind: "summary", Text: m.text}
	for _, e := range c.Entries[:len(c.Entries)-c.Protected] {
		r.Entries = append(r.Entries, e.ID)
	}
	return core.Patch{Replace: []core.Replacement{r}, Warnings: []string{"a model failed: status 401: not authorized"}}, nil
}

// TestBlankSummary: where a compactor's text says nothing, a note counts what left the window, and Info says so, with what the compactor warns of.
func TestBlankSummary(t *testing.T) {
	for _, text := range []string{"", " \n\t", "\u200b\u2060", "\u3164\u00a0", "\x07"} {
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = mute{text} })
		for range 20 {
			f.ingest(user("go on "+strings.Repeat("word ", 30)), assistant("done "+strings.Repeat("word ", 30)))
		}
		res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 600, Force: true})
		if err != nil || !res.Compacted {
			t.Fatalf("%q: Compact = %+v, %v", text, res, err)
		}
		if s := shown(f.assemble(600)); !strings.HasPrefix(s, "[38 earlier messages are stored but not shown.] | ") {
			t.Errorf("%q: the window is %q, want it to begin with a note", text, s)
		}
		var told []string
		for _, p := range f.engine.Info().Health {
			told = append(told, p.Part+": "+p.Text)
		}
		if s := strings.Join(told, " | "); !strings.Contains(s, "compactor: a replacement says nothing") || !strings.Contains(s, "status 401") {
			t.Errorf("%q: Health = %q", text, s)
		}
	}
}
