package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// fit makes the window fit: clips what is new and too large, and steps when the window exceeds the high mark.
func (e *Engine) fit(ctx context.Context, s *session, v core.View, policy history.Policy, c *call) (*frame, error) {
	if err := e.warmUp(ctx, s); err != nil {
		return nil, err
	}
	if first := max(v.Start, v.Lead); first > s.base {
		s.drop(first - s.base)
	}
	if err := e.retreat(ctx, s, &v, c); err != nil {
		return nil, err
	}
	c.dirty = keepRecall(&v) || c.dirty
	e.clipNew(s, &v, c)
	if start := e.limitStart(s, &v, c); start > s.base {
		e.moveStart(s, &v, start, c)
	}
	if v.Lean > 0 && v.LeanTurn != v.Turns {
		v.Apply(edit.Lean{Turn: v.LeanTurn}, edit.Anew{}) // a new turn may have room again
		c.stepped, c.dirty = true, true
	}
	for {
		f, err := e.fitLean(s, &v, policy, c)
		if err == nil || v.Lean >= leanUnpinned {
			return f, err
		}
		v.Apply(edit.Lean{Level: v.Lean + 1, Turn: v.Turns})
		c.stepped, c.dirty = true, true
	}
}

// maxSteps bounds the steps of one call. One or two are enough nearly always.
const maxSteps = 64

// fitLean makes the window fit at one level of leanness.
func (e *Engine) fitLean(s *session, v *core.View, policy history.Policy, c *call) (*frame, error) {
	var f *frame
	for steps := 0; ; steps++ {
		f = e.frame(s, *v, policy, c.ws)
		total := e.fixed(f, c.additionCost) + sum(f.costs)
		c.marks = e.policy().Marks(v.Budget, c.budget, e.recallRoom(c, v.Budget), sum(f.costs)/max(f.calls(), 1))
		high := c.marks.High
		if c.loop() {
			high = c.marks.Hard // a step in the middle of a turn waits for its end as long as there is room
		}
		if r := v.Recall; r != nil && !c.stepped && !e.recallStale(f, c) {
			// Inside a turn the recall block stays: the window must leave room for it, unless it was made for a larger budget.
			if room := c.marks.Hard - r.Tokens; float64(r.Tokens) <= 1.1*float64(e.askedRoom(c.share, c.budget)) {
				high = min(high, room)
			} else if total > room {
				f.giveUpRecall(v, c)
			}
		}
		if total <= high {
			return f, nil
		}
		if steps == maxSteps || !e.step(f, v, c, high) {
			break
		}
	}
	if r := v.Recall; r != nil && r.Tokens > 0 && !c.stepped && e.fixed(f, c.additionCost)+sum(f.costs)+r.Tokens > c.marks.Hard {
		// The window cannot give way, so the recall block does.
		f.giveUpRecall(v, c)
	}
	return f, e.squeeze(f, v, c)
}

// giveUpRecall takes the recall block out; what has room is recalled anew.
func (f *frame) giveUpRecall(v *core.View, c *call) {
	v.Apply(edit.Recall{}, edit.Anew{})
	c.stepped, c.dirty = true, true
	f.v = *v
}

// calls is how many calls of the model the window shows.
func (f *frame) calls() int {
	n := 0
	for i := range f.msgs {
		if f.msgs[i].Role == message.Assistant {
			n++
		}
	}
	return n
}

func sum(costs []int) int {
	n := 0
	for _, c := range costs {
		n += c
	}
	return n
}

// step moves a window that costs more than high down to the low mark. It returns false when nothing can give way any more.
func (e *Engine) step(f *frame, v *core.View, c *call, high int) bool {
	s := f.s
	f.group()
	groups := e.plannerGroups(f)
	again := len(v.Kept) > 0 // what stood behind them is billed again anyway
	if again {
		v.Apply(edit.Unkeep{}, edit.Anew{})
		f.v.Apply(edit.Unkeep{})
		c.stepped, c.dirty = true, true
	}
	fixed := e.fixed(f, c.additionCost)
	if e.left(f) == 0 {
		if again && fixed+sum(f.costs) <= high {
			return true // a conversation that fits is shown whole: what was recalled in earlier turns took the room
		}
		if e.cfg.Window.Note {
			fixed += noteCost
		}
	}
	plan := window.Step(groups, fixed, c.marks, e.cfg.Window.KeepResults, noteCost)
	if plan.Drop == 0 && len(plan.Masks) == 0 {
		return e.splitMerged(f, v, c, fixed+sum(f.costs)-c.marks.Low) || again
	}
	v.Apply(edit.Show{})
	for _, m := range plan.Masks {
		e.maskResult(f, v, m)
	}
	if plan.Pin {
		e.pin(f, v, plan.PinGroup)
	}
	if plan.Drop > 0 {
		start := f.start(plan.Drop)
		if start <= s.base && len(plan.Masks) == 0 {
			return e.splitMerged(f, v, c, fixed+sum(f.costs)-c.marks.Low) || again
		}
		e.moveStart(s, v, start, c)
	}
	c.stepped, c.dirty = true, true
	v.Apply(edit.Anew{})
	return true
}

// splitMerged lets the oldest of several texts leave that a rule merged into one message, as many as make up the excess, or the calls and results in front
// of such a text. It returns false when there is none.
func (e *Engine) splitMerged(f *frame, v *core.View, c *call, excess int) bool {
	if excess <= 0 {
		return false // what was recalled in earlier turns took the room
	}
	start := -1
	isTurn := func(n int) bool { return isPrompt(f.item(n).entry) }
	if len(f.msgs) > 0 && f.msgs[0].Role == message.User {
		merged := f.shown.members(0)
		last := len(merged) - 1
		for last > 0 && !isTurn(merged[last]) {
			last--
		}
		for i := 1; i <= last; i++ {
			start = f.place(merged[i])
			if excess -= f.item(merged[i-1]).cost; excess <= 0 {
				break
			}
		}
	}
	if start < 0 {
		for n := range f.visible {
			if at := f.place(n); f.shown.of[n] >= 0 && isTurn(n) && at > f.s.base && (start < 0 || at < start) {
				start = at
			}
		}
	}
	if start <= f.s.base {
		return false
	}
	e.moveStart(f.s, v, start, c)
	v.Apply(edit.Anew{})
	return true
}

// start returns the position at which a group begins: that of its first message that shows an entry.
func (f *frame) start(group int) int {
	for _, n := range f.shown.first[f.groups[group].From:] {
		if n >= 0 {
			return f.place(n)
		}
	}
	return f.s.base
}

// maskResult masks the r-th entry of a group that carries results.
func (e *Engine) maskResult(f *frame, v *core.View, m window.Mask) {
	r := 0
	for j := f.groups[m.Group].From; j < f.groups[m.Group].To; j++ {
		if f.msgs[j].Role != message.Tool {
			continue
		}
		for _, n := range f.shown.members(j) {
			it := f.item(n)
			if it.entry.Role != message.Tool {
				continue
			}
			if r == m.Result {
				e.setStub(f.s, v, it, e.mask(it.entry))
				return
			}
			r++
		}
	}
}

// setStub changes what the window shows of an entry; what was shortened of it before stays so.
func (e *Engine) setStub(s *session, v *core.View, it *item, st window.Stub) {
	if before, ok := v.Stubs[it.entry.ID]; ok {
		st = stubOver(st, before)
		st.Tokens = e.messageCost(shownAs(it.entry, &st))
	}
	v.Apply(edit.Stub{ID: it.entry.ID, Stub: st})
	*it = e.item(it.entry, &st)
}

// pin keeps a user message in front although its turn begins behind it.
func (e *Engine) pin(f *frame, v *core.View, group int) {
	for _, n := range slices.Backward(f.shown.members(f.groups[group].From)) {
		if it := f.item(n); isPrompt(it.entry) {
			pinned := *it
			f.s.pinned = &pinned
			v.Apply(edit.Pin{ID: it.entry.ID})
			return
		}
	}
}

// moveStart lets the window begin at a position and forgets what only concerned the entries in front of it.
func (e *Engine) moveStart(s *session, v *core.View, start int, c *call) {
	n := min(max(start-s.base, 0), len(s.items))
	leave := edit.Leave{Entries: make([]string, n)}
	for i := range n {
		leave.Entries[i], leave.Tokens = s.items[i].entry.ID, leave.Tokens+s.items[i].cost
	}
	// A turn that the window begins with needs no pin; one that ended is history.
	for i := n; i < len(s.items); i++ {
		if isPrompt(s.items[i].entry) {
			leave.Unpin, s.pinned = true, nil
			break
		}
	}
	s.drop(n)
	leave.Start = s.base
	v.Apply(leave)
	c.stepped, c.dirty = true, true
}

// cool forgets the window; the next call reads it again.
func (s *session) cool() {
	s.items, s.lead, s.pinned, s.base, s.warm, s.most = nil, nil, nil, 0, false, nil
}

// drop forgets the first n items.
func (s *session) drop(n int) {
	n = min(n, len(s.items))
	s.items, s.most = slices.Clone(s.items[n:]), nil
	s.base += n
}

// limitStart returns where the window must begin for the limit of user turns. Like the budget's it moves in steps.
func (e *Engine) limitStart(s *session, v *core.View, c *call) int {
	limit := history.LimitFor(c.req.Session.Session, e.cfg.History.Limits)
	if limit <= 0 {
		limit = e.cfg.History.LimitTurns
	}
	if limit <= 0 {
		return s.base
	}
	msgs := make([]message.Message, len(s.items))
	for i := range s.items {
		msgs[i] = s.items[i].msg
		msgs[i].Entry = strconv.Itoa(i)
	}
	kept := history.LimitTurns(msgs, limit)
	if len(kept) == len(msgs) || len(kept) == 0 {
		return s.base
	}
	v.Apply(edit.Anew{})
	first, _ := strconv.Atoi(kept[0].Entry)
	return s.base + first
}
