package engine

import (
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
)

// clipLimit is the largest cost of a single tool result, in tokens.
func (c *Config) clipLimit(budget int) int {
	w := c.Window
	return min(max(int(w.ClipShare*float64(budget)), w.ClipTokens), c.batchLimit(budget))
}

// batchLimit is the largest cost of all results of one group, in tokens.
func (c *Config) batchLimit(budget int) int {
	return max(int(c.Window.BatchShare*float64(budget)), 64)
}

// clipNew decides, once for every entry, whether it is too large for the window. Text of users and assistants counts as one batch.
func (c *call) clipNew(s *session, v *core.View) {
	end := s.base + len(s.items)
	if v.Seen >= end {
		return
	}
	for i := max(v.Seen-s.base, 0); i < len(s.items); {
		j := i + 1
		if s.items[i].entry.Role == message.Tool {
			for j < len(s.items) && s.items[j].entry.Role == message.Tool {
				j++
			}
		}
		s.clipBatch(v, i, j)
		i = j
	}
	v.Apply(edit.See{To: end})
	c.dirty = true
}

// clipBatch clips the results s.items[from:to], which belong together, or one message with text.
func (s *session) clipBatch(v *core.View, from, to int) {
	limit := s.e.cfg.clipLimit(v.Budget)
	batch := s.e.cfg.batchLimit(v.Budget)
	if s.items[from].entry.Role != message.Tool {
		limit = batch
		if s.isCurrent(from) || s.items[from].entry.Role == message.System || s.items[from].entry.Message.HasCalls() {
			return // a prompt is shown whole as long as it fits, and so is what a tool was called with
		}
	}
	if n := to - from; n > 1 && limit*n > batch {
		// Small results keep what they need; the rest is shared by the large ones.
		limit = fairShare(s.items[from:to], batch, limit)
	}
	for i := from; i < to; i++ {
		it := &s.items[i]
		if it.cost <= limit || v.Stubs[it.entry.ID].Kind != "" {
			continue
		}
		if st, ok := s.e.gauge.clip(it.entry, perPart(it.entry, limit)); ok {
			s.setStub(v, it, st)
		}
	}
}

// perPart spreads a limit over the results of one entry.
func perPart(entry core.Entry, limit int) int {
	if n := len(entry.Message.Results()); n > 1 {
		return max(limit/n, 32)
	}
	return limit
}

// fairShare returns the limit per item under which all of them together cost at most batch, unless they are so many that it would be less than is of use.
func fairShare(items []item, batch, limit int) int {
	used, large := 0, 0
	for i := range items {
		if items[i].cost > limit {
			large++
		} else {
			used += items[i].cost
		}
	}
	if large == 0 || used+large*limit <= batch {
		return limit
	}
	// What a lower limit makes large costs less than before, so that once is enough.
	return min(limit, max((batch-used)/large, batch/(2*len(items)), 32))
}

// isCurrent reports whether an item is the newest user message.
func (s *session) isCurrent(i int) bool {
	for j := len(s.items) - 1; j >= i; j-- {
		if isPrompt(s.items[j].entry) {
			return j == i
		}
	}
	return false
}

// squeeze clips what remains when the newest messages alone exceed the budget: first the results of the newest group, then texts. What
// cannot be clipped, such as the arguments of a call, makes it a BudgetError.
func (f *frame) squeeze(v *core.View, c *call) error {
	s := f.s
	total := f.fixed(c.additionCost) + sum(f.costs)
	if total <= c.budget {
		return nil // into the reserve, if it must be: squeezing again and again would change the window in every call
	}
	for _, role := range []message.Role{message.Tool, message.Assistant, message.User} {
		for total > c.marks.Hard {
			before := total
			for _, it := range f.squeezable(role) {
				total = f.squeezeItem(v, it, c.marks.Hard, total)
			}
			if total == before {
				break
			}
			// A rule may have left out what gave way: what counts is what is shown.
			*f = *s.frame(*v, f.policy, c.ws)
			total = f.fixed(c.additionCost) + sum(f.costs)
		}
	}
	v.Apply(edit.Anew{})
	c.dirty, c.stepped = true, true
	f.v = *v
	if total <= c.budget {
		return nil
	}
	return f.budgetError(c, total)
}

// squeezable lists the window's entries of a role that could be shortened.
func (f *frame) squeezable(role message.Role) []*item {
	var out []*item
	for i := range f.s.items {
		if it := &f.s.items[i]; it.entry.Role == role && !it.entry.Type.Hidden() {
			out = append(out, it)
		}
	}
	if p := f.pinned(); p != nil && role == message.User && p.entry.Role == role {
		out = append(out, p)
	}
	return out
}

// minClip is the smallest useful cost of a clipped text, its marker included.
const minClip = 48

// squeezeItem shortens one item by what is over, and returns the total afterwards.
func (f *frame) squeezeItem(v *core.View, it *item, hard, total int) int {
	over := total - hard
	if over <= 0 || it.cost <= minClip {
		return total
	}
	shown := v.Stubs[it.entry.ID]
	if st, ok := f.e.gauge.maskMedia(it.entry); ok && len(stubOver(st, shown).Texts) > len(shown.Texts) {
		// A user's images go before any of the words.
		before := it.cost
		f.s.setStub(v, it, st)
		return f.squeezeItem(v, it, hard, total-before+it.cost)
	}
	want := it.cost - over
	limit := max(want-messageOverhead-usualRole-8, minClip)
	st, ok := f.e.gauge.clipOver(it.entry, limit, shown)
	for n := 0; n < 4 && ok && st.Tokens > want && limit > minClip; n++ { // what else belongs to the message takes room, too
		limit = max(limit-(st.Tokens-want), minClip)
		st, ok = f.e.gauge.clipOver(it.entry, limit, shown)
	}
	if !ok || st.Tokens >= it.cost {
		if it.entry.Role != message.Tool {
			return total
		}
		if st = f.e.gauge.mask(it.entry); st.Tokens >= it.cost {
			return total
		}
	}
	before := it.cost
	f.s.setStub(v, it, st)
	return total - before + it.cost
}

// budgetError names the largest entry that must stay.
func (f *frame) budgetError(c *call, total int) error {
	err := &core.BudgetError{Budget: c.budget, Needed: total, System: f.fixed(c.additionCost)}
	largest := 0
	for i, cost := range f.costs {
		if it := f.begins(i); cost > largest && it != nil {
			largest, err.Entry = cost, it.entry.ID
		}
	}
	if err.System > c.budget {
		err.Entry = ""
	}
	return err
}

// groupsOf is history.Groups on the items of a session, heartbeats included as groups of their own. A subagent that ended between a call and its results is part of theirs.
func groupsOf(items []item) []history.Group {
	return history.GroupsAround(len(items), func(i int) message.Message { return items[i].entry.Message }, func(i int) bool {
		return items[i].entry.Type == core.TypeSubagent
	})
}
