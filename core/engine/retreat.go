package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// retreat gives the newest messages that summaries stand for back to the window when nothing behind the frontier is left to show: all of it was
// erased. The summaries keep what they say.
func (e *Engine) retreat(ctx context.Context, s *session, v *core.View, c *call) error {
	if shows(s.items) {
		return nil
	}
	const page = 64
	floor := max(floorOf(v), v.Lead)
	start := -1
	for to := v.Frontier; to > floor && start < 0; to -= page {
		from := max(to-page, floor)
		items, err := e.read(ctx, v, from, to)
		if err != nil {
			return err
		}
		for i, it := range slices.Backward(items) {
			if !it.entry.Hidden() {
				start = from + i
				break
			}
		}
	}
	if start < 0 {
		return nil
	}
	before := v.Frontier
	v.Frontier = floor
	start, err := e.groupStart(ctx, v, start)
	if err != nil {
		return err
	}
	uncover(v, before-start)
	v.Frontier, v.Start, v.Seen, v.Backlog, v.Shown = start, start, min(v.Seen, start), 0, nil
	unrecall(v)
	if v.Pinned == "" {
		if v.Pinned, err = e.promptBefore(ctx, v, start); err != nil {
			return err
		}
	}
	v.Epoch++
	c.dirty, c.stepped = true, true
	if err := e.warmWith(ctx, s, v); err != nil {
		return fmt.Errorf("core: session %q: window behind what was erased: %w", s.id, err)
	}
	return nil
}

// shows reports whether any of the items is one that a window shows.
func shows(items []item) bool {
	for i := range slices.Backward(items) {
		if !items[i].entry.Hidden() {
			return true
		}
	}
	return false
}

// floorOf is the position from which on the summaries stand for entries. What is in front of it leads, or the host compacted it itself.
func floorOf(v *core.View) int {
	n := v.Frontier
	for i := range v.Summaries {
		n -= v.Summaries[i].Covers
	}
	return max(n, 0)
}

// uncover takes the newest n entries away from what the summaries stand for. A summary of which nothing is left goes.
func uncover(v *core.View, n int) {
	for i := len(v.Summaries) - 1; i >= 0 && n > 0; i-- {
		sum := &v.Summaries[i]
		took := min(n, sum.Covers)
		n -= took
		if sum.Covers -= took; sum.Covers == 0 {
			v.Summaries = v.Summaries[:i:i]
		}
	}
}
