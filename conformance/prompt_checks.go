package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// promptChecks look at every prompt that is not flagged as degraded.
var promptChecks = []Check{
	{ID: "budget.recount", Promise: 1, Suite: SuiteEngine, prompt: budgetRecount,
		Rule: "role, text, tool name, arguments and results, 4 per message and the addition, recounted from the emitted bytes, fit the budget"},
	{ID: "budget.estimate", Promise: 1, Suite: SuiteEngine, prompt: budgetEstimate,
		Rule: "the estimate fits the budget and is at most a twentieth and 8 tokens below the recount"},
	{ID: "order.chronological", Promise: 5, Suite: SuiteEngine, prompt: orderChronological,
		Rule: "history is chronological, the recall block apart, and holds nothing that is not in force"},
	{ID: "order.echo", Promise: 5, Suite: SuiteEngine, prompt: orderEcho,
		Rule: "the current turn, which the host appends itself, is never returned"},
	{ID: "order.tail", Promise: 5, Suite: SuiteEngine, prompt: orderTail,
		Rule: "history ends with its newest message"},
	{ID: "contract.choices", Suite: SuiteEngine, prompt: contractChoices,
		Rule: "the choices say of every message why it is there, those that a rule made too"},
	{ID: "order.recall", Promise: 7, Suite: SuiteEngine, prompt: orderRecall,
		Rule: "recall goes to the end, right in front of the newest turn, and stands where the result says"},
	{ID: "pairs.torn", Promise: 5, Suite: SuiteEngine, prompt: pairsTorn,
		Rule: "every tool call is followed by all of its results, and every result follows its call"},
	{ID: "roles.provider", Promise: 5, Suite: SuiteEngine, prompt: rolesProvider,
		Rule: "the order of roles is what the provider accepts"},
	{ID: "twice.entry", Promise: 5, Suite: SuiteEngine, prompt: twiceEntry,
		Rule: "nothing appears twice, neither in history nor in history and recall"},
	{ID: "isolation.agent", Promise: 8, Suite: SuiteEngine, prompt: isolationAgent,
		Rule: "no entry of one agent reaches another without a grant"},
	{ID: "isolation.session", Promise: 8, Suite: SuiteEngine, prompt: isolationSession,
		Rule: "no entry of one session reaches another, unless recall across sessions is on or a grant is in force"},
	{ID: "erase.shown", Promise: 2, Suite: SuiteEngine, prompt: eraseShown,
		Rule: "what was erased is never shown again, not even when the host still has it"},
	{ID: "hidden.heartbeat", Promise: 5, Suite: SuiteEngine, prompt: hiddenHeartbeat,
		Rule: "a heartbeat is neither shown nor recalled"},
	{ID: "recall.quoted", Promise: 10, Suite: SuiteEngine, prompt: recallQuoted,
		Rule: "recalled text is quoted data: it opens no role, no tool call and no instruction block, closes no quotation, and its block is opened and closed once"},
	{ID: "lost.shown", Promise: 2, Suite: SuiteEngine, prompt: lostShown,
		Rule: "a conversation that never came near the budget is shown whole"},
	{ID: "lost.verbatim", Promise: 2, Suite: SuiteEngine, prompt: lostVerbatim,
		Rule: "an unedited message is emitted byte for byte as the host wrote it"},
	{ID: "cache.prefix", Promise: 7, Suite: SuiteEngine, prompt: cachePrefix,
		Rule: "between steps what was sent last, its recall block and newest turn left out, is a byte-for-byte prefix of what is sent now"},
	{ID: "cache.kept", Promise: 7, Suite: SuiteEngine, prompt: cacheKept,
		Rule: "between steps the recall block of a turn that is over stays where it stood, and everything in front of it: nothing is billed again"},
	{ID: "cache.loop", Promise: 7, Suite: SuiteEngine, prompt: cacheLoop,
		Rule: "inside a turn the whole last prompt is a byte-for-byte prefix of the next one"},
	{ID: "cache.addition", Promise: 7, Suite: SuiteEngine, prompt: cacheAddition,
		Rule: "there is no system prompt addition as long as a conversation never came near the budget, and it does not change from call to call: with a step it comes, is given up where the budget has no room for it, and comes back where it and what must stay take at most half"},
}

// promptApplies says when a rule has something to look at in a prompt; those that are not named always have.
var promptApplies = map[string]func(*prompt) bool{
	"order.echo":    func(p *prompt) bool { return len(p.current) > 0 },
	"order.recall":  func(p *prompt) bool { return p.res.RecallLen > 0 },
	"recall.quoted": func(p *prompt) bool { return p.res.RecallLen > 0 },
	"pairs.torn": func(p *prompt) bool {
		return slices.ContainsFunc(p.wire, func(w wireMessage) bool { return len(w.Calls) > 0 })
	},
	"roles.provider":    func(p *prompt) bool { return p.d.plan.Provider != "" },
	"isolation.agent":   func(p *prompt) bool { return p.others(true) },
	"isolation.session": func(p *prompt) bool { return p.others(false) },
	"erase.shown":       func(p *prompt) bool { return len(p.d.erased) > 0 },
	"hidden.heartbeat":  func(p *prompt) bool { return slices.ContainsFunc(p.t.stored, func(it item) bool { return it.beat }) },
	"lost.shown":        func(p *prompt) bool { return !p.t.outgrew },
	"cache.prefix":      func(p *prompt) bool { return p.prev != nil },
	"cache.kept":        func(p *prompt) bool { return p.prev != nil && p.prev.res.RecallLen > 0 },
	"cache.loop":        func(p *prompt) bool { return p.prev != nil && p.req.Call == core.CallLoop },
	"head.system":       func(p *prompt) bool { return len(p.system) > 0 },
}

// others reports whether something was said in a session of another agent, or in another one of this agent.
func (p *prompt) others(agent bool) bool {
	for _, o := range p.d.tracks {
		if o != nil && o != p.t && len(o.stored) > 0 && (o.id.Agent != p.t.id.Agent) == agent {
			return true
		}
	}
	return false
}

func budgetRecount(p *prompt) string {
	if n := recount(p.wire, p.res.SystemPromptAddition, p.d.env.Count); n > p.req.Budget {
		return fmt.Sprintf("the prompt costs %d tokens, the budget is %d (estimate %d)", n, p.req.Budget, p.res.EstimatedTokens)
	}
	return ""
}

func budgetEstimate(p *prompt) string {
	n := recount(p.wire, p.res.SystemPromptAddition, p.d.env.Count)
	switch {
	case p.res.EstimatedTokens > p.req.Budget:
		return fmt.Sprintf("the estimate is %d tokens, the budget %d", p.res.EstimatedTokens, p.req.Budget)
	case p.res.EstimatedTokens < n-n/20-8:
		return fmt.Sprintf("the estimate is %d tokens, the recount %d", p.res.EstimatedTokens, n)
	}
	return ""
}

// places returns the positions of each mark in what is in force.
func (p *prompt) places() map[string][]int {
	at := map[string][]int{}
	n := 0
	for _, it := range p.log {
		for _, m := range it.marks {
			at[m] = append(at[m], n)
			n++
		}
	}
	return at
}

func orderChronological(p *prompt) string {
	at, last := p.places(), -1
	for i := range p.wire {
		for _, m := range marksIn(strings.Join(p.history(i), "\n")) {
			if p.t.floating[m] || contains(p.current, m) || p.d.hidden(m) {
				continue // other checks judge these
			}
			if p.d.owner[m] != p.t && !p.t.inherited[m] {
				continue
			}
			next := slices.IndexFunc(at[m], func(n int) bool { return n > last })
			if next < 0 {
				if len(at[m]) == 0 {
					return fmt.Sprintf("message %d shows %s, which is not in force", i, m)
				}
				return fmt.Sprintf("message %d shows %s too late", i, m)
			}
			last = at[m][next]
		}
	}
	return ""
}

// hidden reports whether a mark belongs to a heartbeat.
func (d *driver) hidden(mark string) bool {
	t := d.owner[mark]
	if t == nil {
		return false
	}
	for _, it := range t.stored {
		if it.beat && contains(it.marks, mark) {
			return true
		}
	}
	return false
}

func orderEcho(p *prompt) string {
	for i, w := range p.wire {
		for _, m := range marksIn(w.text()) {
			if contains(p.current, m) && !p.placed(m) {
				return fmt.Sprintf("message %d shows %s of the current turn", i, m)
			}
		}
	}
	return ""
}

// placed reports whether a mark is in force: a message may be repeated in the current turn.
func (p *prompt) placed(m string) bool {
	return slices.ContainsFunc(p.log, func(it item) bool { return contains(it.marks, m) })
}

func orderTail(p *prompt) string {
	var want item
	for _, it := range slices.Backward(p.log) {
		if it.beat {
			continue
		}
		want = it
		break
	}
	if !plain(want) {
		return ""
	}
	for i, v := range slices.Backward(p.wire) {
		marks := marksIn(strings.Join(p.history(i), "\n"))
		if p.mixed[i] {
			marks = marksIn(v.text())
		}
		if contains(marks, want.marks[len(want.marks)-1]) {
			return ""
		}
		if p.inRecall(i) || slices.ContainsFunc(marksIn(v.text()), func(m string) bool { return p.t.floating[m] }) {
			continue
		}
		if p.shortened(i, want.marks[len(want.marks)-1]) {
			return ""
		}
		if len(marks) > 0 || !p.made[i] {
			return fmt.Sprintf("the last message of history is number %d, want the one with %s", i, want.marks)
		}
	}
	return fmt.Sprintf("history is empty, want the message with %s at its end", want.marks)
}

// shortened reports whether a message shows the entry with a mark, so short that nothing may be left of what it says.
func (p *prompt) shortened(i int, mark string) bool {
	return slices.ContainsFunc(p.res.Choices, func(c window.Choice) bool {
		if c.Message != i || c.Stub == "" {
			return false
		}
		k, _ := p.d.entry(c.Entry)
		return contains(k.marks, mark)
	})
}

func contractChoices(p *prompt) string {
	for i := range p.res.Messages {
		if !slices.ContainsFunc(p.res.Choices, func(c window.Choice) bool { return c.Message == i && c.Reason != "" }) {
			return fmt.Sprintf("no choice says why message %d is there", i)
		}
	}
	return ""
}

func orderRecall(p *prompt) string {
	called, others := map[int]bool{}, map[int]int{}
	for _, c := range p.res.Choices {
		if c.Reason == window.ReasonRecalled {
			called[c.Message] = true
		} else {
			others[c.Message]++
		}
	}
	before := p.t.recalled
	p.t.recalled = before || p.res.RecallLen > 0 || len(called) > 0 // a block may be merged with something else
	if p.res.RecallLen == 0 {
		for i := range p.wire {
			// One of an earlier turn may stay where it was, and a rule of the provider may have merged it with something else.
			if called[i] && others[i] <= 1 && p.made[i] && !before {
				return fmt.Sprintf("message %d is recalled, say the choices, and there is no recall block", i)
			}
		}
		return ""
	}
	if p.res.RecallAt < 0 || p.res.RecallAt+p.res.RecallLen > len(p.wire) {
		return fmt.Sprintf("RecallAt %d and RecallLen %d lie outside of %d messages", p.res.RecallAt, p.res.RecallLen, len(p.wire))
	}
	for i := range p.wire {
		if p.inRecall(i) && !called[i] {
			return fmt.Sprintf("message %d belongs to the recall block, and no choice calls it recalled", i)
		}
	}
	users := map[string]bool{}
	for _, it := range p.log {
		if plainUser(it) && !it.blank {
			users[it.marks[0]] = true
		}
	}
	n := 0
	for _, w := range p.wire[p.res.RecallAt+p.res.RecallLen:] {
		if slices.ContainsFunc(marksIn(w.text()), func(m string) bool { return users[m] }) {
			n++
		}
	}
	if n > 1 {
		return fmt.Sprintf("%d user turns stand behind the recall block at %d", n, p.res.RecallAt)
	}
	return ""
}

func pairsTorn(p *prompt) string {
	var open []string
	for i, w := range p.wire {
		for _, id := range w.Results {
			at := slices.Index(open, id)
			if at < 0 {
				return fmt.Sprintf("message %d holds a result for call %q, which does not stand right before it", i, id)
			}
			open = slices.Delete(open, at, at+1)
		}
		if len(open) > 0 && len(w.Results) == 0 {
			return fmt.Sprintf("message %d stands between calls %q and their results", i, open)
		}
		open = append(open, w.Calls...)
	}
	if len(open) > 0 {
		return fmt.Sprintf("calls %q have no result", open)
	}
	return ""
}

// rolesProvider holds for every provider: tools answer, and known roles only. Some want more.
func rolesProvider(p *prompt) string {
	last := ""
	first := true
	for i, m := range p.res.Messages {
		if !m.Role.Valid() {
			return fmt.Sprintf("message %d has role %q", i, m.Role)
		}
		role := string(m.Role)
		if p.inRecall(i) { // it may come before everything else, and separates as any other message does
			last = role
			continue
		}
		if m.Type != "" || m.Role == message.System {
			// What a host puts in place of history speaks as the user.
			first = first && m.Role == message.System
			last = ""
			continue
		}
		if first && p.d.plan.Provider != "" && role == "assistant" && p.res.RecallAt > 0 {
			return fmt.Sprintf("message %d is the assistant's and the first", i)
		}
		first = false
		if p.d.plan.Provider != "" && role == "assistant" && last == "assistant" {
			return fmt.Sprintf("messages %d and the one before are both the assistant's", i)
		}
		last = role
	}
	return ""
}

func twiceEntry(p *prompt) string {
	allowed := map[string]int{}
	for _, it := range p.log {
		for _, m := range it.marks {
			allowed[m]++
		}
	}
	shown := map[string]int{}
	for i := range p.wire {
		// A summary may mention what is shown or recalled besides it.
		if p.mixed[i] {
			continue
		}
		for _, m := range marksIn(strings.Join(append(p.history(i), p.quoted(i)...), "\n")) {
			shown[m]++
		}
	}
	for _, w := range p.wire {
		for _, m := range marksIn(w.text()) {
			if p.t.inherited[m] || p.t.floating[m] {
				continue // a fork's own copy and the parent's entry are two
			}
			if shown[m] > max(allowed[m], p.copies(m))+p.copiedElsewhere(m) {
				return fmt.Sprintf("%s appears %d times, was said %d times", m, shown[m], max(allowed[m], 1))
			}
		}
	}
	return ""
}

// copies returns how often a mark was said, in force or not. What stood in a transcript alone may be stored, and of another session's turn that is not over everything.
func (p *prompt) copies(mark string) int {
	t := p.d.owner[mark]
	if t == nil {
		return 1
	}
	n := 0
	count := func(items []item) {
		for _, it := range items {
			if contains(it.marks, mark) {
				n++
			}
		}
	}
	if count(t.stored); t != p.t && t.open {
		count(t.cur)
	}
	for wire, times := range t.loose {
		if contains(marksIn(wire), mark) {
			n += times
		}
	}
	return max(n, 1)
}

func isolationAgent(p *prompt) string   { return p.leaks(true) }
func isolationSession(p *prompt) string { return p.leaks(false) }

// copiedElsewhere is how many forks of the agent, which recall may reach from here, have m in their transcripts: such a copy may stand in one message with more.
func (p *prompt) copiedElsewhere(m string) int {
	if !p.d.comb.AcrossSessions {
		return 0
	}
	return p.d.copies[p.t.id.Agent][m]
}

// takenOver reports whether m belongs to a session that recall may reach from here, too: a subagent handed it back to that, or it is a fork whose host has a copy of it.
func (p *prompt) takenOver(m string) bool {
	handedBack := func(o *track) bool { return o != nil && o.floating[m] && o.id.Agent == p.t.id.Agent }
	return p.copiedElsewhere(m) > 0 || p.d.comb.AcrossSessions && slices.ContainsFunc(p.d.tracks[:], handedBack)
}

func (p *prompt) leaks(agent bool) string {
	texts := []string{p.res.SystemPromptAddition}
	for _, w := range p.wire {
		texts = append(texts, w.text())
	}
	now := p.d.env.Host.Now()
	for i, text := range texts {
		for _, m := range marksIn(text) {
			owner := p.d.owner[m]
			if owner == nil || p.t.reach(m, owner, now, p.d.comb.AcrossSessions) || p.takenOver(m) || (owner.id.Agent != p.t.id.Agent) != agent {
				continue
			}
			return fmt.Sprintf("message %d shows %s of session %s to %s at %s (grant %q until %s)", i-1, m, owner.id, p.t.id,
				now.Format(time.RFC3339), p.t.grant, p.t.granted.Format(time.RFC3339))
		}
	}
	return ""
}

func hiddenHeartbeat(p *prompt) string {
	for i, w := range p.wire {
		for _, m := range marksIn(w.text()) {
			if p.d.hidden(m) {
				return fmt.Sprintf("message %d shows the heartbeat %s", i, m)
			}
		}
	}
	return ""
}

var openTag = regexp.MustCompile(`<([a-zA-Z][a-zA-Z0-9_:-]*)[ >]`)

// tagsIn returns the names of tags that a text opens and closes.
func tagsIn(text string) []string {
	var out []string
	for _, m := range openTag.FindAllStringSubmatch(text, -1) {
		if strings.Contains(text, "</"+m[1]+">") && !contains(out, m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

// openers begin a role, an instruction or a call where a line begins with them.
var openers = regexp.MustCompile(`(?m)^(Human|System|Assistant|### Instruction): ` + trapWord + `|^(\[INST\] |<system>|<tool_call>).*` + trapWord + `|<\|im_start\|>system|<\|endoftext\|>`)

// block looks at the form of a recall block that is a message of its own: what it opens it closes at its end, both once, and every line that says
// something of an entry is marked as a quotation.
func block(text string) string {
	if m := openTag.FindStringSubmatch(strings.SplitN(text, "\n", 2)[0] + " "); m != nil && strings.HasPrefix(text, "<") {
		opened := strings.Count(text, "<"+m[1]+">") + strings.Count(text, "<"+m[1]+" ")
		if closing := "</" + m[1] + ">"; opened != 1 || strings.Count(text, closing) != 1 || !strings.HasSuffix(strings.TrimSpace(text), closing) {
			return fmt.Sprintf("opens <%s> %d times and closes it %d times, want once each, at its beginning and its end", m[1], opened, strings.Count(text, closing))
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if at := markPattern.FindStringIndex(line); at != nil && at[0] == 0 {
			return fmt.Sprintf("has a line that is not marked as quoted: %.80q", line)
		}
	}
	return ""
}

func recallQuoted(p *prompt) string {
	for i, w := range p.wire {
		text := p.recalled(i)
		if text == "" {
			continue
		}
		if p.inRecall(i) && len(w.Calls)+len(w.Results) > 0 && len(p.history(i)) == 0 {
			return fmt.Sprintf("message %d of the recall block calls a tool or answers one", i)
		}
		if p.inRecall(i) && w.Role != "user" && w.Role != "system" && len(p.history(i)) == 0 {
			return fmt.Sprintf("message %d of the recall block speaks as %q", i, w.Role)
		}
		if p.inRecall(i) && len(w.Texts) == 1 && !p.mixed[i] {
			if fault := block(text); fault != "" {
				return fmt.Sprintf("message %d, a recall block, %s", i, fault)
			}
		}
		if hit := openers.FindString(text); hit != "" {
			return fmt.Sprintf("message %d of the recall block opens %q", i, hit)
		}
		for _, tag := range p.d.closing {
			opened := strings.Count(text, "<"+tag+">") + strings.Count(text, "<"+tag+" ")
			if closed := strings.Count(text, "</"+tag+">"); closed > opened {
				return fmt.Sprintf("message %d of the recall block closes <%s> %d times and opens it %d times", i, tag, closed, opened)
			}
		}
	}
	return ""
}
