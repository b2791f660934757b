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
func (c *call) fit(ctx context.Context, s *session, v core.View, policy history.Policy) (*frame, error) {
	if err := s.warmUp(ctx); err != nil {
		return nil, err
	}
	if first := max(v.Start, v.Lead); first > s.base {
		s.drop(first - s.base)
	}
	if err := c.retreat(ctx, s, &v); err != nil {
		return nil, err
	}
	c.dirty = c.keepRecall(&v) || c.dirty
	for i := range s.items { // what is clipped is counted
		if it := &s.items[i]; v.Stubs[it.entry.ID].Kind == "" && !it.hidden() {
			if err := c.e.counted(ctx, &it.entry.Message); err != nil {
				return nil, err
			}
		}
	}
	c.clipNew(s, &v)
	if start := c.limitStart(s, &v); start > s.base {
		c.moveStart(s, &v, start)
	}
	if v.Lean > 0 && v.LeanTurn != v.Turns {
		v.Apply(edit.Lean{Turn: v.LeanTurn}, edit.Anew{}) // a new turn may have room again
		c.stepped, c.dirty = true, true
	}
	for again := false; ; {
		f, err := c.fitLean(s, &v, policy)
		if err == nil && v.Lean >= leanUnpinned && !again && f.hasRoomAgain(c) {
			again = true
			v.Apply(edit.Lean{Level: leanSummaries, Turn: v.LeanTurn}, edit.Anew{})
			c.stepped, c.dirty = true, true
			continue
		}
		if err == nil || v.Lean >= leanUnpinned {
			return f, err
		}
		v.Apply(edit.Lean{Level: v.Lean + 1, Turn: v.Turns})
		c.stepped, c.dirty = true, true
	}
}

// hasRoomAgain reports whether the pinned message has room beside what must stay after all, because that was shortened when both were tried, or both take at most
// half of the budget by now: one large call does not decide for all of its turn.
func (f *frame) hasRoomAgain(c *call) bool {
	p := f.unpinned()
	if p == nil {
		return false
	}
	must := f.needed() + p.cost
	return must+c.additionCost+2*noteCost <= c.marks.Hard && (f.s.view.Lean < leanUnpinned || must <= c.budget/2)
}

// maxSteps bounds the steps of one call. One or two are enough nearly always.
const maxSteps = 64

// fitLean makes the window fit at one level of leanness.
func (c *call) fitLean(s *session, v *core.View, policy history.Policy) (*frame, error) {
	var f *frame
	for steps := 0; ; steps++ {
		f = s.frame(*v, policy, c.ws)
		total := f.fixed(c.additionCost) + sum(f.costs)
		c.marks = c.e.cfg.policy().Marks(v.Budget, c.budget, c.recallRoom(v.Budget), sum(f.costs)/max(f.calls(), 1))
		high := c.marks.High
		if c.loop() {
			high = c.marks.Hard // a step in the middle of a turn waits for its end as long as there is room
		}
		if r := v.Recall; r != nil && !c.stepped && !f.recallStale(c) {
			// Inside a turn the recall block stays: the window must leave room for it, unless it was made for a larger budget.
			if room := c.marks.Hard - r.Tokens; float64(r.Tokens) <= 1.1*float64(c.e.cfg.askedRoom(c.share, c.budget)) {
				high = min(high, room)
			} else if total > room {
				f.giveUpRecall(v, c)
			}
		}
		if total <= high {
			return f, nil
		}
		if steps == maxSteps || !f.step(v, c, high) {
			break
		}
	}
	if r := v.Recall; r != nil && r.Tokens > 0 && !c.stepped && f.fixed(c.additionCost)+sum(f.costs)+r.Tokens > c.marks.Hard {
		// The window cannot give way, so the recall block does.
		f.giveUpRecall(v, c)
	}
	return f, f.squeeze(v, c)
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
func (f *frame) step(v *core.View, c *call, high int) bool {
	s := f.s
	f.group()
	groups := f.plannerGroups()
	again := len(v.Kept) > 0 // what stood behind them is billed again anyway
	if again {
		v.Apply(edit.Unkeep{}, edit.Anew{})
		f.v.Apply(edit.Unkeep{})
		c.stepped, c.dirty = true, true
	}
	fixed := f.fixed(c.additionCost)
	if f.left() == 0 {
		if again && fixed+sum(f.costs) <= high {
			return true // a conversation that fits is shown whole: what was recalled in earlier turns took the room
		}
		if f.e.cfg.Window.Note {
			fixed += noteCost
		}
	}
	plan := window.Step(groups, fixed, c.marks, f.e.cfg.Window.KeepResults, noteCost)
	start := s.base
	if plan.Drop > 0 {
		start = f.start(plan.Drop)
	}
	if start <= s.base && len(plan.Masks) == 0 {
		return f.splitMerged(v, c, fixed+sum(f.costs)-c.marks.Low) || again
	}
	v.Apply(edit.Show{})
	for _, m := range plan.Masks {
		f.maskResult(v, m)
	}
	if plan.Pin {
		f.pin(v, plan.PinGroup)
	}
	if plan.Drop > 0 {
		c.moveStart(s, v, start)
	}
	c.stepped, c.dirty = true, true
	v.Apply(edit.Anew{})
	return true
}

// splitMerged lets the oldest of several texts leave that a rule merged into one message, as many as make up the excess, or the calls and results in front
// of such a text. It returns false when there is none.
func (f *frame) splitMerged(v *core.View, c *call, excess int) bool {
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
	c.moveStart(f.s, v, start)
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
func (f *frame) maskResult(v *core.View, m window.Mask) {
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
				f.s.setStub(v, it, f.e.gauge.mask(it.entry))
				return
			}
			r++
		}
	}
}

// setStub changes what the window shows of an entry; what was shortened of it before stays so.
func (s *session) setStub(v *core.View, it *item, st window.Stub) {
	if before, ok := v.Stubs[it.entry.ID]; ok {
		st = stubOver(st, before)
		st.Tokens = s.e.gauge.messageCost(shownAs(it.entry, &st))
	}
	v.Apply(edit.Stub{ID: it.entry.ID, Stub: st})
	*it = s.e.gauge.item(it.entry, &st)
}

// pin keeps a user message in front although its turn begins behind it.
func (f *frame) pin(v *core.View, group int) {
	g := f.groups[group]
	for j := g.To - 1; j >= g.From; j-- { // a rule may have merged it into a result of the group
		for _, n := range slices.Backward(f.shown.members(j)) {
			if it := f.item(n); isPrompt(it.entry) {
				pinned := *it
				f.s.pinned = &pinned
				v.Apply(edit.Pin{ID: it.entry.ID})
				return
			}
		}
	}
}

// moveStart lets the window begin at a position and forgets what only concerned the entries in front of it.
func (c *call) moveStart(s *session, v *core.View, start int) {
	n := min(max(start-s.base, 0), len(s.items))
	leave := edit.Leave{Entries: make([]string, n)}
	for i := range n {
		leave.Entries[i], leave.Tokens = s.items[i].entry.ID, leave.Tokens+s.items[i].cost
	}
	// A turn that the window begins with needs no pin; one that ended is history.
	if stays := s.items[n:]; slices.ContainsFunc(stays, func(it item) bool { return isPrompt(it.entry) }) {
		if !slices.ContainsFunc(stays, func(it item) bool { return it.entry.ID == v.Pinned }) {
			leave.Entries = append(leave.Entries, v.Pinned)
		}
		leave.Unpin, s.pinned = true, nil
	}
	s.pinTyped(v, n)
	s.drop(n)
	leave.Start = s.base
	v.Apply(leave)
	c.stepped, c.dirty = true, true
}

// pinTyped pins what a user typed beside results when it leaves with the first n items and nothing that stays was asked.
func (s *session) pinTyped(v *core.View, n int) {
	if slices.ContainsFunc(s.items[n:], func(it item) bool { return asks(it.entry) }) {
		return
	}
	for i := n - 1; i >= 0; i-- {
		it := &s.items[i]
		if isPrompt(it.entry) {
			return
		}
		if asks(it.entry) {
			pinned := s.e.gauge.pinned(it.entry, stubOf(v, it.entry.ID))
			s.pinned = &pinned
			v.Apply(edit.Pin{ID: it.entry.ID})
			return
		}
	}
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
func (c *call) limitStart(s *session, v *core.View) int {
	of := c.e.cfg.History.of(c.req.Settings.Provider)
	limit := history.LimitFor(c.req.Session.Session, of.Limits)
	if limit <= 0 {
		limit = of.LimitTurns
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

// coldStart finds the window's start where there is none: a long history was imported, the path was cut, or the budget grew. It reads from the end. What the
// view says decides, not what is in memory, so that a session that is read anew shows what it showed.
func (c *call) coldStart(ctx context.Context, s *session, v *core.View) error {
	n := v.Len()
	c.marks = c.e.cfg.policy().Marks(v.Budget, c.budget, c.recallRoom(v.Budget), 0)
	first := max(v.Start, v.Frontier, v.Lead)
	if v.Start >= 0 && n-max(first, v.Seen) <= coldEntries {
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

// coldEntries is how many entries may have come since a window was shown before it is sought from its end.
const coldEntries = 512

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
