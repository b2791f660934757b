package core

import (
	"errors"
	"slices"
	"strings"
)

// addition returns the text behind the host's system prompt.
func addition(m MemoryPrompt) string {
	var text strings.Builder
	text.WriteString(SystemPromptAddition)
	for _, section := range m.Sections {
		text.WriteString("\n\n" + section)
	}
	if len(m.AvailableTools) > 0 && slices.Contains(m.AvailableTools, ToolSearch) {
		text.WriteString("\n\nEntries that are not shown can be looked up with the tool " + ToolSearch + ".")
		if m.CitationMode == "on" {
			text.WriteString(" Cite the entry id (#id) of what you use.")
		}
	}
	return text.String()
}

// speak lets a call have the engine's addition, or not.
func (c *call) speak(mute bool) {
	c.mute, c.addition, c.additionCost = mute, c.full, c.fullCost
	if mute {
		c.addition, c.additionCost = "", 0
	}
}

// turnsMute reports whether the addition is to be given up, or may come back. It stands in front of everything, so that all is billed anew when it comes or
// goes: it goes where there is no room for it beside what must stay, and comes back at the beginning of a turn in which both take at most half of the budget.
func (e *Engine) turnsMute(f *frame, c *call, err error) bool {
	switch {
	case c.fullCost == 0:
		return false
	case !c.mute:
		return errors.Is(err, ErrBudget)
	}
	return err == nil && !c.loop() && e.needed(f)+c.fullCost <= c.budget/2
}

// needed is what a prompt cannot leave out, in tokens: the system messages, the newest group and the user's message that it belongs to.
func (e *Engine) needed(f *frame) int {
	n := 0
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
