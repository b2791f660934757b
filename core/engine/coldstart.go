package engine

import (
	"context"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// refer updates the budget the window is shaped for. Only the first call of a turn may change it: budgets inside a turn shrink by what the
// host appends.
func (c *call) refer(v *core.View) bool {
	if c.req.Call == core.CallLoop && c.req.Transcript != nil && v.Budget > 0 {
		return false
	}
	ref := window.Reference(v.Budget, c.budget)
	if ref == v.Budget {
		return false
	}
	if v.Budget > 0 && float64(ref) >= reopen*float64(v.Budget) && v.Start > max(v.Frontier, v.Lead) {
		v.Apply(edit.Seek{}) // a much larger window has room for what had to leave a smaller one
	}
	before := len(shownSummaries(v))
	v.Apply(edit.Budget{Tokens: ref})
	if len(shownSummaries(v)) != before {
		v.Apply(edit.Anew{})
		c.stepped = true
	}
	return true
}

// reopen is how much larger than before a budget must be for the window to take back what had left it.
const reopen = 1.5

// coldStart finds the window's start where there is none: a long history was imported, the path was cut, or the budget grew. It reads from the end.
func (c *call) coldStart(ctx context.Context, s *session, v *core.View) error {
	n := v.Len()
	c.marks = c.e.cfg.policy().Marks(v.Budget, c.budget, c.recallRoom(v.Budget), 0)
	first := max(v.Start, v.Frontier, v.Lead)
	if v.Start >= 0 && (s.warm || n-first <= coldEntries) {
		return nil
	}
	// Nothing is cached yet: what does not fit as a whole fills the window as windows are filled on average.
	fixed := c.additionCost
	for _, sum := range shownSummaries(v) {
		fixed += sum.Tokens
	}
	start, err := c.e.reader.walkBack(ctx, v, n, max((c.marks.Low+c.marks.High)/2-c.additionCost, 1), c.marks.High-fixed)
	if err != nil {
		return err
	}
	if v.Start >= 0 && start <= first {
		return nil
	}
	// Never less than the newest entry; groups torn by the cut are mended by fit, which starts at a group's first message.
	start = min(start, max(n-1, 0))
	start, err = c.e.reader.groupStart(ctx, v, start, max(v.Lead, v.Frontier))
	if err != nil {
		return err
	}
	start = max(start, v.Frontier, v.Lead)
	prompt, err := c.e.reader.promptBefore(ctx, v, start)
	if err != nil {
		return err
	}
	v.Apply(edit.Begin{Start: start, Pinned: prompt, Backlog: backlogGuess(&s.view, start-v.Frontier)})
	c.dirty, c.stepped = true, true
	return s.warmWith(ctx, v)
}

// warmWith brings the window of a view that is not published yet into memory.
func (s *session) warmWith(ctx context.Context, v *core.View) error {
	old := s.view
	s.view, s.warm = *v, false
	err := s.warmUp(ctx)
	s.view = old
	return err
}

// promptBefore returns the user message that the window's first turn began with, when the window begins behind it; "" when a turn begins inside.
func (r *reader) promptBefore(ctx context.Context, v *core.View, start int) (string, error) {
	items, err := r.read(ctx, v, start, v.Len())
	if err != nil {
		return "", err
	}
	for i := range items {
		if isPrompt(items[i].entry) {
			return "", nil
		}
	}
	first := v.Lead
	if len(v.Summaries) == 0 {
		first = max(first, v.Frontier) // what the host compacted is not in force any more
	}
	const page = 64
	for to := start; to > first && start-to < coldEntries*4; to -= page {
		from := max(to-page, first)
		if items, err = r.read(ctx, v, from, to); err != nil {
			return "", err
		}
		for _, it := range slices.Backward(items) {
			if isPrompt(it.entry) {
				return it.entry.ID, nil
			}
		}
	}
	return "", nil
}

// coldEntries is how many entries a window may be made of before it is sought from its end.
const coldEntries = 512

// groupStart moves a position back to the beginning of a group: to the assistant message whose results stand there, and over what
// is no message of the conversation, as far as a floor.
func (r *reader) groupStart(ctx context.Context, v *core.View, pos, floor int) (int, error) {
	for back := 0; pos > floor && back < coldEntries; back++ {
		items, err := r.read(ctx, v, pos, pos+1)
		if err != nil {
			return 0, err
		}
		if ent := items[0].entry; ent.Role != message.Tool && ent.Type == core.TypeMessage && !ent.Leads() {
			return pos, nil
		}
		pos--
	}
	return pos, nil
}

// backlogGuess estimates what so many entries between frontier and start cost, without reading them.
func backlogGuess(old *core.View, left int) int {
	if left <= 0 {
		return 0
	}
	if old.Backlog > 0 && old.Start > old.Frontier {
		return old.Backlog * left / (old.Start - old.Frontier)
	}
	return left * 100
}
