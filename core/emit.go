package core

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
)

// slot is the place of one message on its way out: the reason why it is there.
type slot struct {
	choice Choice
	// more explains the other entries that rules merged into the message.
	more []Choice
}

// emit puts the parts of the prompt in order: system messages, summaries, a note on what is left out, the window, and the recall
// block in front of the newest turn. The provider's rules then run once more on the result.
func (e *Engine) emit(f *frame, c *call) (AssembleResult, error) {
	msgs, slots := e.slots(f, c)
	for i := range msgs {
		msgs[i].Entry = strconv.Itoa(i) // to find it again behind the rules
	}
	out := history.Apply(msgs, f.policy)
	res := AssembleResult{
		SystemPromptAddition: c.addition,
		PromptAuthority:      AuthorityAssembled,
		Epoch:                f.v.Epoch,
		Stepped:              c.stepped,
		Warnings:             c.warnings,
		EstimatedTokens:      c.additionCost,
		Messages:             out,
	}
	owner := owners(out, len(slots))
	res.Choices = make([]Choice, 0, len(slots)+len(f.s.items)/8+16)
	for i := range out {
		out[i].Entry = ""
		if n := owner.first[i]; n >= 0 {
			out[i].Entry = slots[n].choice.Entry
		}
		cost := e.costOf(f.s, out[i], f.known)
		res.EstimatedTokens += cost
		if len(owner.slots[i]) == 0 { // a rule made this message
			res.Choices = append(res.Choices, Choice{Message: i, Count: 1, Reason: ReasonNote, Tokens: cost})
		}
		explain(&res, c, slots, owner.slots[i], i)
	}
	for n, i := range owner.of {
		if i < 0 {
			ch := slots[n].choice
			ch.Message, ch.Reason = -1, OutRule
			res.Choices = append(res.Choices, ch)
		}
	}
	if res.EstimatedTokens > c.budget {
		return AssembleResult{}, e.budgetError(f, c, res.EstimatedTokens)
	}
	res.Choices = append(res.Choices, e.outside(f)...)
	res.Choices = append(res.Choices, c.outAllowance...)
	res.CompactionDue = e.due(&f.v)
	return res, nil
}

// ownership says which slots became which message.
type ownership struct {
	// of is the message of each slot, -1 when a rule dropped it; slots lists them by message, first is the slot that begins a message, -1 where none does.
	of    []int
	slots [][]int
	first []int
}

// owners reads the numbers that the messages carry through the rules. What a rule dropped follows what stood before it.
func owners(out []message.Message, n int) ownership {
	ints := make([]int, 2*n+len(out)) // of, the backing of slots, first
	o := ownership{of: ints[:n:n], slots: make([][]int, len(out)), first: ints[2*n:]}
	for i := range o.of {
		o.of[i] = -1
	}
	for i := range out {
		o.first[i] = -1
		for rest, more := out[i].Entry, true; more; {
			var number string
			number, rest, more = strings.Cut(rest, ",")
			n, err := strconv.Atoi(number)
			if err != nil {
				continue
			}
			o.of[n] = i
			if o.first[i] < 0 {
				o.first[i] = n
			}
		}
	}
	sizes := make([]int, len(out))
	for i := range o.of {
		if o.of[i] < 0 && i > 0 {
			o.of[i] = o.of[i-1]
		}
		if m := o.of[i]; m >= 0 {
			sizes[m]++
		}
	}
	room := ints[n : 2*n]
	for m, size := range sizes {
		o.slots[m], room = room[:0:size], room[size:]
	}
	for i, m := range o.of {
		if m >= 0 {
			o.slots[m] = append(o.slots[m], i)
		}
	}
	return o
}

// explain records why the slots that became message i are there.
func explain(res *AssembleResult, c *call, slots []slot, from []int, i int) {
	for _, n := range from {
		ch := slots[n].choice
		ch.Message = i
		if ch.Reason == ReasonRecalled {
			if len(from) == 1 {
				res.RecallAt, res.RecallLen = i, 1
			}
			for _, it := range c.recall.Items {
				res.Choices = append(res.Choices, Choice{
					Message: i, Entry: it.ID, Count: 1, Reason: ReasonRecalled, Score: it.Score, Source: it.Source,
				})
			}
			ch.Reason = ReasonNote
		}
		res.Choices = append(res.Choices, ch)
		for _, other := range slots[n].more {
			other.Message = i
			res.Choices = append(res.Choices, other)
		}
	}
}

// slots lists the prompt's messages before the last run of the rules, and why each is there.
func (e *Engine) slots(f *frame, c *call) ([]message.Message, []slot) {
	s := f.s
	const around = 4 // notes, the pinned message and the recall block
	room := len(s.lead) + len(f.v.front().Summaries) + len(f.msgs) + around
	msgs, out := make([]message.Message, 0, room), make([]slot, 0, room)
	add := func(m message.Message, ch Choice) {
		ch.Count = 1
		msgs, out = append(msgs, m), append(out, slot{choice: ch})
	}
	for i := range s.lead {
		if s.lead[i].entry.Hidden() {
			continue
		}
		add(s.lead[i].msg, Choice{Entry: s.lead[i].entry.ID, Reason: ReasonSystem, Tokens: s.lead[i].cost})
	}
	for _, sum := range e.shownSummaries(&f.v) {
		add(summaryMessage(sum), Choice{Entry: sum.ID, Reason: ReasonSummary, Tokens: sum.Tokens})
	}
	if n := e.left(f); n > 0 {
		m := noteMessage(n)
		add(stamp(m, f.frontTime()), Choice{Reason: ReasonNote, Tokens: e.messageCost(m)})
	}
	at := -1
	if c.recall != nil && c.recall.Text != "" {
		at = c.recall.At
	}
	recalled := func() {
		add(recallMessage(c.recall), Choice{Reason: ReasonRecalled, Tokens: c.recall.Tokens})
		at = -1
	}
	pinned := f.pinned() != nil
	if at >= 0 && at < s.base {
		recalled()
	}
	if pinned {
		add(s.pinned.msg, Choice{Entry: s.pinned.entry.ID, Reason: ReasonPinned, Tokens: s.pinned.cost, Stub: f.v.Stubs[s.pinned.entry.ID].Kind})
		if n := e.leftOfTurn(f); n > 0 {
			m := turnMarker(n)
			add(stamp(m, s.pinned.entry.Time), Choice{Reason: ReasonNote, Tokens: e.messageCost(m)})
		}
	}
	for i, m := range f.msgs {
		if place, ok := f.place[m.Entry]; ok && at >= 0 && place >= at && m.Role != message.Tool { // results that came late stand further up
			recalled()
		}
		ch := Choice{Entry: m.Entry, Reason: ReasonTail, Tokens: f.costs[i], Stub: f.v.Stubs[m.Entry].Kind}
		if m.Entry == "" {
			ch.Reason = ReasonNote
		}
		var more []Choice
		for _, id := range f.members[i] {
			if it := f.known[id]; id != m.Entry && it != nil {
				more = append(more, Choice{Entry: id, Count: 1, Reason: ReasonTail, Tokens: it.cost, Stub: f.v.Stubs[id].Kind})
				ch.Tokens = max(ch.Tokens-it.cost, 0)
			}
		}
		add(m, ch)
		out[len(out)-1].more = more
	}
	if at >= 0 {
		recalled()
	}
	return msgs, out
}

// frontTime is the time of what the engine itself puts in front of the window: it changes when the window steps, and no sooner.
func (f *frame) frontTime() time.Time {
	if sums := f.v.front().Summaries; len(sums) > 0 {
		return sums[len(sums)-1].Time
	}
	if len(f.s.items) > 0 {
		return f.s.items[0].entry.Time
	}
	return time.Time{}
}

// newestTurn returns the position in front of which the newest turn begins: the end of the path where the host appends that turn
// itself or none has begun, and before the window where the turn's first message is pinned.
func (f *frame) newestTurn(hosted bool) int {
	end := f.v.Len()
	if hosted {
		return end
	}
	for i := range slices.Backward(f.msgs) {
		for _, id := range slices.Backward(f.members[i]) {
			if f.isTurn(id) {
				return f.place[f.msgs[i].Entry]
			}
		}
	}
	if f.pinned() != nil {
		return max(f.s.base-1, 0)
	}
	return end
}

// pinned returns the pinned message, if it is shown.
func (f *frame) pinned() *item {
	if f.v.Pinned == "" || f.v.Lean >= leanUnpinned {
		return nil
	}
	return f.s.pinned
}

// hosted reports whether the host appends the current turn behind the result.
func (c *call) hosted() bool { return c.req.Transcript != nil && c.req.Prompt != "" }

// leftOfTurn is how many entries between the pinned message and the window are not shown.
func (e *Engine) leftOfTurn(f *frame) int {
	for i := f.s.base - 1; i >= 0; i-- {
		if id, seq := f.v.At(i); id == f.s.pinned.entry.SessionID() && seq == f.s.pinned.entry.Seq {
			return f.s.base - 1 - i
		}
	}
	return 0
}

// outside explains what is not shown, in runs.
func (e *Engine) outside(f *frame) []Choice {
	var out []Choice
	if n := f.v.Frontier - f.v.Lead; n > 0 {
		out = append(out, Choice{Message: -1, Count: n, Reason: OutCompacted})
	}
	if n := f.s.base - max(f.v.Frontier, f.v.Lead); n > 0 {
		out = append(out, Choice{Message: -1, Count: n, Reason: OutBudget, Tokens: f.v.Backlog})
	}
	shown := make(map[string]bool, len(f.msgs))
	for _, ids := range f.members {
		for _, id := range ids {
			shown[id] = true
		}
	}
	for i := range f.s.items {
		it := &f.s.items[i]
		switch {
		case it.entry.Type == TypeHeartbeat:
			out = append(out, Choice{Message: -1, Entry: it.entry.ID, Count: 1, Reason: OutHeartbeat, Tokens: it.cost})
		case it.entry.Type == TypeErased:
			out = append(out, Choice{Message: -1, Entry: it.entry.ID, Count: 1, Reason: OutErased, Tokens: it.cost})
		case !shown[it.entry.ID]:
			out = append(out, Choice{Message: -1, Entry: it.entry.ID, Count: 1, Reason: OutRule, Tokens: it.cost})
		}
	}
	return out
}

// due reports whether enough left the window for a compaction to be worth it.
func (e *Engine) due(v *View) bool {
	return v.Start > v.Frontier && v.Backlog >= int(e.cfg.Compaction.Due*float64(v.Budget))
}
