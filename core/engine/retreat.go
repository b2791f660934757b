package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
)

// retreat gives the newest messages that summaries stand for back to the window when no message behind the frontier is left to show: all of them were
// erased. The summaries keep what they say.
func (c *call) retreat(ctx context.Context, s *session, v *core.View) error {
	if shows(s.items) {
		return nil
	}
	const page = 64
	floor := max(v.Floor(), v.Lead)
	start := -1
	for to := v.Frontier; to > floor && start < 0; to -= page {
		from := max(to-page, floor)
		items, err := c.e.reader.read(ctx, v, from, to)
		if err != nil {
			return err
		}
		for i, it := range slices.Backward(items) {
			if said(&it.entry) {
				start = from + i
				break
			}
		}
	}
	if start < 0 {
		return nil
	}
	start, err := c.e.reader.groupStart(ctx, v, start, floor)
	if err != nil {
		return err
	}
	v.Apply(edit.Retreat{To: start})
	if v.Pinned == "" {
		prompt, err := c.e.reader.promptBefore(ctx, v, start)
		if err != nil {
			return err
		}
		v.Apply(edit.Pin{ID: prompt})
	}
	c.dirty, c.stepped = true, true
	if err := s.warmWith(ctx, v); err != nil {
		return fmt.Errorf("core: session %q: window behind what was erased: %w", s.id, err)
	}
	return nil
}

// shows reports whether any of the items is a message that a window shows. What a subagent handed back is none: it stands behind the message that asked.
func shows(items []item) bool {
	for i := range slices.Backward(items) {
		if said(&items[i].entry) {
			return true
		}
	}
	return false
}

func said(entry *core.Entry) bool { return entry.Type == core.TypeMessage && !entry.Leads() }
