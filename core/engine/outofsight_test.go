package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// searched is a store that finds entries by what they say.
type searched struct{ *memory.Store }

func (s searched) Recognise(ctx context.Context, id core.SessionID, messages []message.Message) ([]core.Entry, error) {
	var out []core.Entry
	for entry, err := range core.All(ctx, s.Store, id.Scope(), false) {
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(messages, func(m message.Message) bool { return message.Fingerprint(m) == entry.Fingerprint }) {
			out = append(out, entry)
		}
	}
	return out, nil
}

// TestTakenBackAndSaidAgain: what was said and taken back is the entry that it was when the host has it again, where the store finds it and its time says that it
// is the very same; the window shows it at once. A system message that stands in front then stands there alone, and not in the conversation too.
func TestTakenBackAndSaidAgain(t *testing.T) {
	said := func(m message.Message) message.Message {
		m.Time = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		return m
	}
	begin, more := one(user("q1"), assistant("a1")), one(user("well"))
	brief, q2 := said(system("be brief")), said(user("q2"))
	for name, c := range map[string]struct {
		said, again []message.Message
		want        string
		stored      int
	}{
		"a message":        {one(q2), join(begin, more, one(q2)), "q1 | a1 | well | q2", 4},
		"a system message": {one(brief), join(one(brief), begin, more), "be brief | q1 | a1 | well", 5},
		"both":             {one(brief, q2), join(one(brief), begin, more, one(q2)), "be brief | q1 | a1 | well | q2", 6},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = searched{store} })
			f.store = store
			for _, host := range [][]message.Message{join(begin, c.said), begin} {
				f.assemble(1000, transcript("now", host...))
			}
			f.ingest(more...)
			for range 2 {
				if got := shown(f.assemble(1000, transcript("now", c.again...))); got != c.want {
					t.Errorf("shown: %q, want %q", got, c.want)
				}
				f.restart()
			}
			if n := f.stored(); n != c.stored {
				t.Errorf("%d entries are stored, want %d", n, c.stored)
			}
		})
	}
}
