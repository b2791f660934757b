package engine

import (
	"errors"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
)

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
// when all is billed anew anyway, and a session that fits pays nothing for it. Like one that was given up it waits for room.
func (c *call) begins(f *frame, err error) bool {
	if c.explains || err != nil || c.req.PromptMode == core.PromptNone || f.v.Start <= f.v.Lead && len(f.v.Front().Summaries) == 0 {
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
