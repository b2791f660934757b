package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// fits reports whether the conversation as it is never came near a budget, and returns what it costs.
func (p *prompt) fits() (int, bool) {
	total := p.t.handedBack
	for _, it := range slices.Concat(p.log, p.t.lines) {
		total += p.d.cost(it)
	}
	return total, !p.t.compacted && total <= p.t.minBudget/2
}

func lostShown(p *prompt) string {
	total, fits := p.fits()
	// What the engine adds came when the session had outgrown a budget, before a reset perhaps.
	if !fits || total+p.d.env.Count(p.res.SystemPromptAddition) > p.t.minBudget/2 {
		return ""
	}
	var all strings.Builder
	for i := range p.wire {
		all.WriteString(strings.Join(p.history(i), "\n") + "\n")
	}
	shown := all.String()
	for _, it := range p.log {
		if plain(it) && !strings.Contains(shown, it.marks[0]) {
			return fmt.Sprintf("%s is not shown although the whole conversation costs %d tokens and no budget was below %d", it.marks[0], total, p.t.minBudget)
		}
	}
	return ""
}

func lostVerbatim(p *prompt) string {
	var known [][]byte
	for _, it := range p.log {
		known = append(known, it.msg.Raw)
	}
	for _, it := range slices.Concat(p.t.stored, p.t.lines) {
		known = append(known, it.msg.Raw)
	}
	for i, m := range p.res.Messages {
		if m.Raw == nil || p.made[i] {
			continue
		}
		if !m.Edited && p.wire[i].Raw != string(m.Raw) {
			return fmt.Sprintf("message %d is not emitted as its host wrote it: %.200q, want %.200q", i, p.wire[i].Raw, m.Raw)
		}
		if !m.Edited && !slices.ContainsFunc(known, func(raw []byte) bool { return bytes.Equal(raw, m.Raw) }) {
			return fmt.Sprintf("message %d was never handed over like this: %.200q", i, m.Raw)
		}
	}
	return ""
}

// comparable reports whether a prompt must continue the one before.
func (p *prompt) comparable() bool {
	return p.prev != nil && p.prev.res.Epoch == p.res.Epoch && !p.res.Stepped
}

func cachePrefix(p *prompt) string {
	if !p.comparable() {
		return ""
	}
	before := p.prev.settled()
	if prefix(before, p.all()) == "" {
		return ""
	}
	if !p.turned() || p.d.plan.Provider != "" && p.blank() {
		before = p.prev.withoutRecall(before) // the block of a turn that is over is history
	}
	return prefix(before, p.withoutRecall(p.all()))
}

// settled returns what was sent in front of the newest turn, which begins with the last message in which the user says something, with a recall block in it or
// without. Inside of it a provider's rules may still merge what comes into the last message.
func (p *prompt) settled() []string {
	all := p.all()
	for i, m := range slices.Backward(p.res.Messages) {
		if !p.made[i] && m.Role == message.User && !window.SaysNothing(m) && slices.ContainsFunc(m.Parts, ofUser) {
			return all[:i]
		}
	}
	return nil
}

// ofUser reports whether a part of a user's message is neither recalled nor of a subagent: a provider's rules merge these.
func ofUser(p message.Part) bool {
	return !strings.HasPrefix(p.Text, "<recalled>") && !strings.HasPrefix(p.Text, "<subagent ")
}

// turned reports whether the user said something since the prompt before.
func (p *prompt) turned() bool {
	return p.turn != p.prev.turn && slices.ContainsFunc(p.log[min(len(p.prev.log), len(p.log)):], plainUser)
}

// blank reports whether the user said nothing since the prompt before: providers want what stands around it merged.
func (p *prompt) blank() bool {
	return slices.ContainsFunc(p.log[min(len(p.prev.log), len(p.log)):], func(it item) bool { return it.blank })
}

func cacheKept(p *prompt) string {
	if !p.comparable() || !p.turned() || p.d.plan.Provider != "" || p.prev.res.RecallLen == 0 {
		return "" // providers want what follows a block merged into it
	}
	return prefix(p.prev.all()[:p.prev.res.RecallAt+p.prev.res.RecallLen], p.all())
}

func cacheLoop(p *prompt) string {
	if !p.comparable() || p.prev.turn != p.turn || p.req.Call != "loop" {
		return ""
	}
	if p.req.Transcript == nil && slices.ContainsFunc(p.log[min(len(p.prev.log), len(p.log)):], plainUser) {
		return ""
	}
	if !slices.ContainsFunc(p.prev.log, plainUser) {
		return "" // no turn has begun
	}
	was, is := p.prev.all(), p.all()
	if p.d.plan.Provider != "" {
		// Providers want consecutive messages merged into the last one.
		was, is = p.prev.withoutRecall(was), p.withoutRecall(is)
		was = was[:max(len(was)-1, 0)]
	}
	return prefix(was, is)
}

func cacheAddition(p *prompt) string {
	if !p.t.outgrew && p.res.SystemPromptAddition != "" {
		return fmt.Sprintf("the addition is %q although the whole conversation always fit: it costs at most half of %d tokens", p.res.SystemPromptAddition, p.t.minBudget)
	}
	if p.prev == nil || p.prev.res.SystemPromptAddition == p.res.SystemPromptAddition {
		return ""
	}
	was, is := p.prev.res.SystemPromptAddition, p.res.SystemPromptAddition
	const slack = 100 // an engine reckons notes and repairs with more than they cost
	switch {
	case p.comparable() || was != "" && is != "":
		return fmt.Sprintf("the addition is %q, was %q", is, was)
	case is == "":
		if n := recount(p.wire, was, p.d.env.Count); n+slack <= p.req.Budget {
			return fmt.Sprintf("the addition was given up, with it the prompt costs %d of %d tokens", n, p.req.Budget)
		}
	case p.t.added: // the first one comes with a step
		if n := recount(p.kept(), is, p.d.env.Count); 2*n > p.req.Budget {
			return fmt.Sprintf("the addition is back, and what must stay takes %d of %d tokens", n, p.req.Budget)
		}
	}
	return ""
}

// kept returns messages that an engine cannot leave out: the system messages in front, and the newest unless it holds something else besides, as results of an
// earlier call that a provider's rules merged with what a user said: call and results may go, and come back where there is room.
func (p *prompt) kept() []wireMessage {
	var out []wireMessage
	for i, m := range p.res.Messages {
		if m.Role != message.System || p.made[i] || p.inRecall(i) {
			break
		}
		out = append(out, p.wire[i])
	}
	if last := len(p.wire) - 1; last >= len(out) && !p.made[last] && !p.mixed[last] && !p.quotes[last] && !p.inRecall(last) && !saidBesideResults(p.res.Messages[last]) && p.holds(last) < 2 {
		out = append(out, p.wire[last])
	}
	return out
}

// holds returns how many messages of the conversation stand in message i: a rule of the provider may have merged them, and not all of them must stay.
func (p *prompt) holds(i int) int {
	n := 0
	for _, c := range p.res.Choices {
		if c.Message == i && c.Reason != window.ReasonNote {
			n += c.Count
		}
	}
	return n
}

// saidBesideResults reports whether a message holds results of tools and a text.
func saidBesideResults(m message.Message) bool {
	of := func(kind message.Kind) bool {
		return slices.ContainsFunc(m.Parts, func(p message.Part) bool { return p.Kind == kind })
	}
	return of(message.ToolResult) && of(message.Text)
}

// all returns the bytes of the messages.
func (p *prompt) all() []string {
	out := make([]string, len(p.wire))
	for i := range p.wire {
		out[i] = p.wire[i].Raw
	}
	return out
}

// withoutRecall takes the recall block out of what the prompt begins with.
func (p *prompt) withoutRecall(of []string) []string {
	from := min(max(p.res.RecallAt, 0), len(of))
	return slices.Delete(slices.Clone(of), from, min(from+p.res.RecallLen, len(of)))
}

func prefix(was, is []string) string {
	for i := range was {
		if i >= len(is) {
			return fmt.Sprintf("%d messages were sent before, now %d are", len(was), len(is))
		}
		if was[i] != is[i] {
			return fmt.Sprintf("message %d was %.200q, now it is %.200q", i, was[i], is[i])
		}
	}
	return ""
}
