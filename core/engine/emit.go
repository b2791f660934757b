package engine

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// slot is the place of one message on its way out: the reason why it is there.
type slot struct {
	choice window.Choice
	// it is the entry that it shows, or begins with; nil for what the engine made.
	it *item
	// others are the entries that rules merged into it, by their index among the visible items, the one it begins with among them; nil where there is
	// just that one.
	others []int
	// window says that it comes from the window, and does not stand around it.
	window bool
	// recall is the block of recalled entries that it is.
	recall *core.Recall
}

// emit puts the parts of the prompt in order: system messages, summaries, a note on what is left out, the window, and the recall
// block in front of the newest turn. The provider's rules then run once more on the result.
func (f *frame) emit(c *call) (core.AssembleResult, error) {
	msgs := f.slots(c)
	slots, sent := f.ws.slots, &f.ws.sent
	numbers := f.ws.numbers(len(slots))
	for i := range msgs {
		msgs[i].Entry = numbers[i] // to find it again behind the rules
	}
	out := history.Apply(msgs, f.policy)
	sent.read(out, numbers)
	res := core.AssembleResult{
		SystemPromptAddition: c.addition,
		PromptAuthority:      core.AuthorityAssembled,
		Epoch:                f.v.Epoch,
		Stepped:              c.stepped,
		Warnings:             c.warnings,
		EstimatedTokens:      c.additionCost,
		Messages:             out,
		Choices:              make([]window.Choice, 0, len(slots)+len(f.s.items)/8+16),
	}
	for i := range out {
		var it *item
		out[i].Entry = ""
		if n := sent.first[i]; n >= 0 {
			out[i].Entry = slots[n].choice.Entry
			if slots[n].window {
				it = slots[n].it
			}
		}
		cost := f.s.costOf(&out[i], it)
		res.EstimatedTokens += cost
		from := sent.members(i)
		if len(from) == 0 { // a rule made this message
			res.Choices = append(res.Choices, window.Choice{Message: i, Count: 1, Reason: window.ReasonNote, Tokens: cost})
		}
		f.explain(&res, c, from, i)
	}
	for _, n := range sent.gone {
		f.explainSlot(&res, &slots[n], -1, window.OutRule, window.OutRule)
	}
	if res.EstimatedTokens > c.budget {
		return core.AssembleResult{}, f.budgetError(c, res.EstimatedTokens)
	}
	res.Choices = f.outside(res.Choices)
	res.Choices = append(res.Choices, c.outAllowance...)
	res.CompactionDue = f.e.cfg.due(&f.v)
	return res, nil
}

// explain records why the slots that became message i are there.
func (f *frame) explain(res *core.AssembleResult, c *call, from []int, i int) {
	for _, n := range from {
		if f.ws.sent.dropped(n) {
			continue
		}
		s := &f.ws.slots[n]
		reason := s.choice.Reason
		if s.recall != nil {
			if s.recall == c.recall && len(from) == 1 {
				res.RecallAt, res.RecallLen = i, 1
			}
			for _, it := range s.recall.Items {
				res.Choices = append(res.Choices, window.Choice{
					Message: i, Entry: it.ID, Count: 1, Reason: window.ReasonRecalled, Score: it.Score, Source: it.Source,
				})
			}
			reason = window.ReasonNote
		}
		f.explainSlot(res, s, i, reason, window.ReasonTail)
	}
}

// explainSlot records what became of a slot, and why: its own choice has one reason, the entries that rules merged into it have the other.
func (f *frame) explainSlot(res *core.AssembleResult, s *slot, i int, reason, others window.Reason) {
	ch := s.choice
	ch.Message, ch.Reason = i, reason
	res.Choices = append(res.Choices, ch)
	for _, other := range s.others {
		if it := f.item(other); it != s.it && !f.shown.dropped(other) {
			res.Choices = append(res.Choices, window.Choice{
				Message: i, Entry: it.entry.ID, Count: 1, Reason: others, Tokens: it.cost, Stub: f.v.Stubs[it.entry.ID].Kind,
			})
		}
	}
}

// slots lists the prompt's messages before the last run of the rules, and leaves in the workspace why each is there.
func (f *frame) slots(c *call) []message.Message {
	s := f.s
	const around = 3 // notes and the pinned message
	blocks := recallsOf(&f.v)
	room := len(s.lead) + len(f.v.Front().Summaries) + len(f.msgs) + len(blocks) + around
	msgs, out := make([]message.Message, 0, room), slices.Grow(f.ws.slots[:0], room)
	add := func(m message.Message, it *item, ch window.Choice) {
		ch.Count = 1
		msgs, out = append(msgs, m), append(out, slot{choice: ch, it: it})
	}
	for i := range s.lead {
		if it := &s.lead[i]; !it.entry.Type.Hidden() {
			add(it.msg, it, window.Choice{Entry: it.entry.ID, Reason: window.ReasonSystem, Tokens: it.cost})
		}
	}
	left, sums := f.left(), shownSummaries(&f.v)
	for i, sum := range sums {
		m := summaryMessage(sum)
		if i == len(sums)-1 && left > 0 {
			if all, ok := growNote(sum, left); ok {
				m, left = summaryMessage(all), 0
			}
		}
		add(m, nil, window.Choice{Entry: sum.ID, Reason: window.ReasonSummary, Tokens: sum.Tokens})
	}
	if n := left; n > 0 {
		m := noteMessage(n)
		add(stamp(m, f.frontTime()), nil, window.Choice{Reason: window.ReasonNote, Tokens: f.e.gauge.messageCost(m)})
	}
	// recalled puts the blocks that stand in front of a position.
	recalled := func(place int) {
		for len(blocks) > 0 && blocks[0].At <= place {
			m := recallMessage(blocks[0])
			s.rememberCost(s.e.gauge.hash(&m), blocks[0].Tokens) // counted quotation by quotation: as a whole it costs otherwise
			add(m, nil, window.Choice{Reason: window.ReasonRecalled, Tokens: blocks[0].Tokens})
			out[len(out)-1].recall = blocks[0]
			blocks = blocks[1:]
		}
	}
	recalled(s.base - 1)
	if p := f.pinned(); p != nil {
		add(p.msg, p, window.Choice{Entry: p.entry.ID, Reason: window.ReasonPinned, Tokens: p.cost, Stub: f.v.Stubs[p.entry.ID].Kind})
		if n := f.leftOfTurn(); n > 0 {
			m := turnMarker(n)
			add(stamp(m, p.entry.Time), nil, window.Choice{Reason: window.ReasonNote, Tokens: f.e.gauge.messageCost(m)})
		}
	}
	for i := range f.msgs {
		n := f.shown.first[i]
		if n >= 0 && f.msgs[i].Role != message.Tool { // results that came late stand further up
			recalled(f.place(n))
		}
		sl := slot{choice: window.Choice{Count: 1, Reason: window.ReasonNote, Tokens: f.costs[i]}, window: true}
		if n >= 0 {
			sl.it = f.item(n)
			sl.choice.Entry, sl.choice.Reason, sl.choice.Stub = sl.it.entry.ID, window.ReasonTail, f.v.Stubs[sl.it.entry.ID].Kind
		}
		if of := f.shown.members(i); len(of) > 1 {
			sl.others = of
			for _, other := range of {
				if other != n && !f.shown.dropped(other) {
					sl.choice.Tokens = max(sl.choice.Tokens-f.item(other).cost, 0)
				}
			}
		}
		msgs, out = append(msgs, f.msgs[i]), append(out, sl)
	}
	recalled(math.MaxInt)
	f.ws.slots = kept(out, f.ws.slots)
	return msgs
}

// frontTime is the time of what the engine itself puts in front of the window: it changes when the window steps, and no sooner.
func (f *frame) frontTime() time.Time {
	if sums := f.v.Front().Summaries; len(sums) > 0 {
		return sums[len(sums)-1].Time
	}
	if len(f.s.items) > 0 {
		return f.s.items[0].entry.Time
	}
	return time.Time{}
}

// newestTurn returns the position in front of which the newest turn begins: the end of the path where the host appends that turn
// itself or none has begun, and before the window where the turn's first message is pinned, unless that was sent for another prompt since.
func (f *frame) newestTurn(c *call) int {
	end := f.v.Len()
	if c.hosted() {
		return end
	}
	for i, first := range slices.Backward(f.shown.first) {
		for _, n := range slices.Backward(f.shown.members(i)) {
			if isPrompt(f.item(n).entry) {
				return f.place(first)
			}
		}
	}
	front := max(f.s.base-1, 0)
	if r := f.v.Recall; f.pinned() == nil || r != nil && r.At > front && !c.stepped {
		return end
	}
	return front
}

// pinned returns the pinned message, if it is shown in front. The window may hold it again: an erasure that dissolves a summary gives back what stood
// behind it.
func (f *frame) pinned() *item {
	p := f.s.pinned
	if p == nil || f.v.Pinned == "" || f.v.Lean >= leanUnpinned ||
		f.holds(p.entry.ID) {
		return nil
	}
	return p
}

// unpinned returns the pinned message, if it is left out for want of room and that can be thought over: it was decided in this call, or something was said since. A
// larger budget alone brings nothing back inside a turn.
func (f *frame) unpinned() *item {
	p, before := f.s.pinned, &f.s.view
	if p == nil || f.v.Pinned == "" || f.v.Lean < leanUnpinned || f.holds(p.entry.ID) || before.Lean >= leanUnpinned && before.Seen >= f.v.Seen {
		return nil
	}
	return p
}

// holds reports whether an entry is in the window.
func (f *frame) holds(id string) bool {
	for i := range f.items {
		if f.items[i].entry.ID == id {
			return true
		}
	}
	return false
}

// hosted reports whether the host appends the current turn behind the result.
func (c *call) hosted() bool { return c.req.Transcript != nil && c.req.Prompt != "" }

// leftOfTurn is how many entries between the pinned message and the window are not shown.
func (f *frame) leftOfTurn() int {
	for i := f.s.base - 1; i >= 0; i-- {
		if id, seq := f.v.At(i); id == f.s.pinned.entry.SessionID() && seq == f.s.pinned.entry.Seq {
			return f.s.base - 1 - i
		}
	}
	return 0
}

// outside explains what is not shown, in runs.
func (f *frame) outside(out []window.Choice) []window.Choice {
	compacted, left := f.v.Frontier-f.v.Lead, f.s.base-max(f.v.Frontier, f.v.Lead)
	if f.pinned() != nil { // shown, although it stands in front of the window
		if f.s.base-1-f.leftOfTurn() < f.v.Frontier {
			compacted--
		} else {
			left--
		}
	}
	if compacted > 0 {
		out = append(out, window.Choice{Message: -1, Count: compacted, Reason: window.OutCompacted})
	}
	if left > 0 {
		out = append(out, window.Choice{Message: -1, Count: left, Reason: window.OutBudget, Tokens: f.v.Backlog})
	}
	n, _ := slices.BinarySearch(f.visible, f.s.base-f.base) // the first visible one
	for i := range f.s.items {
		it := &f.s.items[i]
		ch := window.Choice{Message: -1, Entry: it.entry.ID, Count: 1, Tokens: it.cost}
		switch {
		case it.entry.Type == core.TypeHeartbeat:
			ch.Reason = window.OutHeartbeat
		case it.entry.Type == core.TypeErased:
			ch.Reason = window.OutErased
		case it.hidden() && f.leads(it.entry.ID): // shown in front
		case it.hidden():
			ch.Reason = window.OutRule
		case f.shown.dropped(n):
			ch.Reason = window.OutRule
		}
		if !it.hidden() {
			n++
		}
		if ch.Reason != "" {
			out = append(out, ch)
		}
	}
	return out
}

// leads reports whether an entry is one of the system messages in front.
func (f *frame) leads(id string) bool {
	return slices.ContainsFunc(f.s.lead, func(it item) bool { return it.entry.ID == id })
}

// due reports whether enough left the window for a compaction to be worth it.
func (c *Config) due(v *core.View) bool {
	return v.Start > v.Frontier && v.Backlog >= int(c.Compaction.Due*float64(v.Budget))
}

// addition returns the text behind the host's system prompt: the engine's own, where it has something to explain, and the host's sections.
func addition(m core.MemoryPrompt, explains bool) string {
	var texts []string
	if explains {
		texts = append(texts, SystemPromptAddition)
	}
	texts = append(texts, m.Sections...)
	if explains && slices.Contains(m.AvailableTools, core.ToolSearch) {
		text := "Entries that are not shown can be looked up with the tool " + core.ToolSearch + "."
		if m.CitationMode == "on" {
			text += " Cite the entry id (#id) of what you use."
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n\n")
}

// explain says whether a call has the engine's own text behind the system prompt.
func (c *call) explain(explains bool) {
	c.explains, c.full, c.fullCost = explains, "", 0
	if c.req.PromptMode == core.PromptNone {
		return
	}
	if c.full = addition(c.req.Memory, explains); c.full != "" {
		c.fullCost = c.e.gauge.count(c.full)
	}
}

// begins reports whether the engine's own text is there from now on: something has left the window. It stands in front of everything, so that it comes
// when all is billed anew anyway, inside a turn with a step alone, and a session that fits pays nothing for it. Like one that was given up it waits for room.
func (c *call) begins(f *frame, err error) bool {
	if c.loop() && !c.stepped || c.explains || err != nil || c.req.PromptMode == core.PromptNone || f.v.Start <= f.v.Lead && len(f.v.Front().Summaries) == 0 {
		return false
	}
	return f.needed()+c.e.gauge.count(addition(c.req.Memory, true)) <= c.budget/2
}

// speak lets a call have its addition, or not.
func (c *call) speak(mute bool) {
	c.mute, c.addition, c.additionCost = mute, c.full, c.fullCost
	if mute {
		c.addition, c.additionCost = "", 0
	}
}

// turnsMute reports whether the addition is to be given up, or may come back. It stands in front of everything, so that all is billed anew when it comes or
// goes: it goes where there is no room for it beside what must stay, and comes back at the beginning of a turn in which both take at most half of the budget.
func (c *call) turnsMute(f *frame, err error) bool {
	switch {
	case c.fullCost == 0:
		return false
	case !c.mute:
		return errors.Is(err, core.ErrBudget)
	}
	return err == nil && !c.loop() && f.needed()+c.fullCost <= c.budget/2
}

// crowdsOut reports whether what the user asked had to leave, and has room without the addition alone.
func (f *frame) crowdsOut(c *call) bool {
	p := f.unpinned()
	if p == nil || c.additionCost == 0 {
		return false
	}
	room := c.marks.Hard - f.needed() - p.cost - noteCost
	return room >= 0 && room < c.additionCost+noteCost
}

// needed is what a prompt cannot leave out, in tokens: the system messages, the newest group and the user's message that it belongs to; and the note on what
// is not shown, which may be merged into them.
func (f *frame) needed() int {
	n := 0
	if f.left() > 0 {
		n += noteCost
	}
	for i := range f.s.lead {
		n += f.s.lead[i].cost
	}
	if p := f.pinned(); p != nil {
		n += p.cost
	}
	f.group()
	if len(f.groups) == 0 {
		return n
	}
	newest := f.groups[len(f.groups)-1]
	n += sum(f.costs[newest.From:newest.To])
	for i := range slices.Backward(f.visible) {
		if at := f.shown.of[i]; at >= 0 && isPrompt(f.item(i).entry) {
			if at < newest.From {
				n += f.costs[at]
			}
			break
		}
	}
	return n
}
