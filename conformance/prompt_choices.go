package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// resultChecks look at what the result of Assemble says about itself.
var resultChecks = []Check{
	{ID: "choices.form", Suite: SuiteEngine, prompt: choicesForm,
		Rule: "every choice has a reason that is known, a message that is shown or -1, a count, a cost that is not negative, and a score and a source where it was recalled"},
	{ID: "choices.entries", Suite: SuiteEngine, prompt: choicesEntries,
		Rule: "the choices of a message name the entries that it shows, all of them and no others, and say what of them was shortened"},
	{ID: "choices.out", Suite: SuiteEngine, prompt: choicesOut,
		Rule: "what is in force and not shown is among the choices, once, with the reason that holds for it"},
	{ID: "choices.tokens", Suite: SuiteEngine, prompt: choicesTokens,
		Rule: "a choice that stands alone for a message says what that costs"},
	{ID: "budget.reckoned", Promise: 1, Suite: SuiteEngine, prompt: budgetReckoned,
		Rule: "the estimate is what the prompt costs, and no room that is left"},
	{ID: "budget.authority", Promise: 1, Suite: SuiteEngine, prompt: budgetAuthority,
		Rule: "an engine that keeps to the budget says that its count holds"},
	{ID: "cache.epoch", Promise: 7, Suite: SuiteEngine, prompt: cacheEpoch,
		Rule: "the epoch never falls, rises where the window moves, and stays as long as a conversation never came near the budget"},
	{ID: "failure.named", Promise: 9, Suite: SuiteEngine, prompt: failureNamed,
		Rule: "a warning and a problem name the part that failed and say how; there is none before anything went wrong"},
}

var (
	shownReasons = []window.Reason{
		window.ReasonSystem, window.ReasonTail, window.ReasonPinned, window.ReasonSummary, window.ReasonRecalled, window.ReasonNote,
	}
	outReasons = []window.Reason{
		window.OutBudget, window.OutCompacted, window.OutHeartbeat, window.OutErased, window.OutRule, window.OutLimit, window.OutAllowance,
	}
	stubKinds = []window.StubKind{"", window.Clipped, window.Masked}
)

func choicesForm(p *prompt) string {
	for _, c := range p.res.Choices {
		reasons := shownReasons
		if c.Message < 0 {
			reasons = outReasons
		}
		recalled := c.Reason == window.ReasonRecalled && c.Entry != ""
		switch {
		case c.Message < -1, c.Message >= len(p.wire):
			return fmt.Sprintf("there are %d messages: %+v", len(p.wire), c)
		case !slices.Contains(reasons, c.Reason):
			return fmt.Sprintf("the reason of message %d is %q, want one of %q", c.Message, c.Reason, reasons)
		case c.Count < 1, c.Message >= 0 && c.Count != 1:
			return fmt.Sprintf("the count is %d: %+v", c.Count, c)
		case c.Tokens < 0:
			return fmt.Sprintf("the cost is negative: %+v", c)
		case !slices.Contains(stubKinds, c.Stub):
			return fmt.Sprintf("the stub is of the kind %q: %+v", c.Stub, c)
		case recalled && c.Source == "":
			return fmt.Sprintf("nothing says what found the recalled entry: %+v", c)
		case slices.Contains([]window.Reason{window.ReasonSystem, window.ReasonTail, window.ReasonPinned, window.ReasonSummary}, c.Reason) && c.Entry == "":
			return fmt.Sprintf("no entry is named: %+v", c)
		}
	}
	return ""
}

// known is what the driver has read of an entry.
type known struct {
	marks []string
	typ   core.EntryType
	raw   string
	said  string
	// leads says that it is a system message from the beginning of a transcript.
	leads bool
	// answers says that it holds results: a rule may take out those whose call is not there, and others of the same message stay.
	answers bool
	// only is what it says where that is one text or one result and nothing else.
	only string
}

// entry returns what is stored under an id, wherever it belongs.
func (d *driver) entry(id string) (known, bool) {
	if k, ok := d.entries[id]; ok {
		return k, true
	}
	for _, agent := range []string{"agent-a", "agent-b", "agent-c"} {
		got, err := d.store.Get(d.tb.Context(), core.Scope{Agent: agent}, []string{id})
		if err != nil {
			continue
		}
		if d.entries == nil {
			d.entries = map[string]known{}
		}
		e := &got[0]
		d.entries[id] = known{marks: marksOf(e), typ: e.Type, raw: string(e.Message.Raw), said: e.Message.Text(), leads: e.Leads(), answers: e.Message.HasResults(), only: onlyText(e)}
		return d.entries[id], true
	}
	return known{}, false
}

func onlyText(e *core.Entry) string {
	parts := e.Message.Parts
	if e.Type != core.TypeMessage || len(parts) != 1 || parts[0].Kind != message.Text && parts[0].Kind != message.ToolResult || len(message.Inside(parts[0])) > 0 {
		return ""
	}
	return parts[0].Text
}

// shortened describes a text that was not shortened as its choice says: clipped, its head or tail stays; masked, nothing of it does.
func shortened(kind window.StubKind, text, of string) string {
	const some = 6 // bytes
	if len(of) < 8*some || kind == "" {
		return ""
	}
	part := strings.HasPrefix(text, of[:some]) || strings.HasSuffix(text, of[len(of)-some:])
	switch {
	case kind == window.Clipped && !part:
		return fmt.Sprintf("clipped, say the choices, and neither begins nor ends as it does: %.80q of %.80q", text, of)
	case kind == window.Masked && part:
		return fmt.Sprintf("masked, say the choices, and begins or ends as it does: %.80q of %.80q", text, of)
	}
	return ""
}

// marksOf returns the marks of an entry: those of its texts and of the arguments of its calls.
func marksOf(e *core.Entry) []string {
	var b strings.Builder
	for i := range e.Message.Parts {
		b.WriteString(e.Message.Parts[i].Text + "\n" + e.Message.Parts[i].Args + "\n")
	}
	return marksIn(b.String())
}

// shownAs are the reasons for which a message shows an entry itself.
var shownAs = []window.Reason{window.ReasonSystem, window.ReasonTail, window.ReasonPinned}

func choicesEntries(p *prompt) string {
	named, all := make([][]window.Choice, len(p.wire)), make([]int, len(p.wire))
	quoted := make([][]window.Choice, len(p.wire))
	for _, c := range p.res.Choices {
		if c.Message < 0 || c.Message >= len(p.wire) {
			continue
		}
		if all[c.Message]++; c.Entry == "" {
			continue
		}
		if slices.Contains(shownAs, c.Reason) {
			named[c.Message] = append(named[c.Message], c)
		} else if c.Reason == window.ReasonRecalled {
			quoted[c.Message] = append(quoted[c.Message], c)
		}
	}
	for i, w := range p.wire {
		text := w.text()
		for _, c := range append(named[i], quoted[i]...) {
			k, ok := p.d.entry(c.Entry)
			whole := c.Stub == "" && (!k.answers || len(w.Results) == 0)
			switch {
			case !ok:
				return fmt.Sprintf("message %d shows the entry %q, say the choices, and no such entry is stored", i, c.Entry)
			case k.leads && c.Reason != window.ReasonSystem:
				return fmt.Sprintf("message %d shows the entry %q, a system message in front, for %q", i, c.Entry, c.Reason)
			case c.Reason == window.ReasonRecalled, len(k.marks) == 0, p.t.floating[k.marks[0]]:
			case whole && !strings.Contains(text, k.marks[0]):
				return fmt.Sprintf("message %d shows the entry %q, say the choices, and does not hold its %s", i, c.Entry, k.marks[0])
			case whole && len(named[i]) == 1 && all[i] == 1 && !strings.Contains(p.res.Messages[i].Text(), k.said):
				return fmt.Sprintf("message %d shows the entry %q whole, say the choices, and does not say what it says: %.80q", i, c.Entry, k.said)
			case c.Stub != "" && len(named[i]) == 1 && k.raw != "" && !p.res.Messages[i].Edited && k.raw == string(p.res.Messages[i].Raw):
				return fmt.Sprintf("message %d shows the entry %q shortened (%s), say the choices, and it is whole", i, c.Entry, c.Stub)
			case k.only != "" && len(named[i]) == 1 && all[i] == 1 && len(w.Texts) == 1:
				if text := shortened(c.Stub, w.Texts[0], k.only); text != "" {
					return fmt.Sprintf("message %d shows the entry %q %s", i, c.Entry, text)
				}
			}
		}
		if len(named[i]) == 1 && all[i] == 1 && p.res.Messages[i].Entry != named[i][0].Entry {
			return fmt.Sprintf("message %d is the entry %q, the choices say %q", i, p.res.Messages[i].Entry, named[i][0].Entry)
		}
		if text := p.unnamed(i, p.history(i), named[i], "shows"); text != "" {
			return text
		}
		if p.inRecall(i) && !p.mixed[i] {
			if text := p.unnamed(i, p.quoted(i), quoted[i], "quotes"); text != "" {
				return text
			}
		}
	}
	return ""
}

// unnamed describes a mark of texts that no entry of the choices has.
func (p *prompt) unnamed(i int, texts []string, choices []window.Choice, does string) string {
	for _, m := range marksIn(strings.Join(texts, "\n")) {
		if p.t.floating[m] {
			continue // what came late stands with the call that it answers
		}
		if !slices.ContainsFunc(choices, func(c window.Choice) bool { k, _ := p.d.entry(c.Entry); return contains(k.marks, m) }) {
			return fmt.Sprintf("message %d %s %s, and no choice names the entry it is of", i, does, m)
		}
	}
	return ""
}

func choicesOut(p *prompt) string {
	out, shown, twice := 0, map[string]bool{}, map[string]bool{}
	for _, c := range p.res.Choices {
		switch {
		case c.Message >= 0:
			if c.Entry != "" && slices.Contains(shownAs, c.Reason) {
				shown[c.Entry] = true
			}
			continue
		case c.Reason == window.OutAllowance:
			continue
		}
		out += c.Count
		if c.Entry == "" {
			continue
		}
		if twice[c.Entry] {
			return fmt.Sprintf("the entry %q is out twice", c.Entry)
		}
		twice[c.Entry] = true
		k, _ := p.d.entry(c.Entry)
		for typ, want := range map[core.EntryType]window.Reason{core.TypeHeartbeat: window.OutHeartbeat, core.TypeErased: window.OutErased} {
			if (k.typ == typ) != (c.Reason == want) {
				return fmt.Sprintf("the entry %q is a %q, and out for %q", c.Entry, k.typ, c.Reason)
			}
		}
	}
	if !p.t.compacted && p.t.parent == nil && p.d.env.Host.Compacts() == 0 && slices.ContainsFunc(p.res.Choices, func(c window.Choice) bool { return c.Reason == window.OutCompacted }) {
		return "entries are out because a summary stands for them, and nothing was compacted"
	}
	// System messages that others replaced are in force without a place.
	if r, ok := p.d.engine.(engine.Recaller); ok && p.d.plan.Heads == (heads{}) {
		d, err := r.Describe(p.d.tb.Context(), engine.DescribeRequest{Session: p.t.id})
		if err == nil && d.Epoch == p.res.Epoch && d.Entries != len(shown)+out {
			return fmt.Sprintf("%d entries are in force, %d of them are shown and %d are out, say the choices: %+v", d.Entries, len(shown), out, p.res.Choices)
		}
	}
	return ""
}

func choicesTokens(p *prompt) string {
	of := make([]int, len(p.wire))
	for _, c := range p.res.Choices {
		if c.Message >= 0 && c.Message < len(of) {
			of[c.Message]++
		}
	}
	for _, c := range p.res.Choices {
		if c.Message < 0 || c.Message >= len(of) || of[c.Message] != 1 {
			continue
		}
		n := recount(p.wire[c.Message:c.Message+1], "", p.d.env.Count)
		if c.Tokens < n-n/10-8 || c.Tokens > n+n/10+40 {
			return fmt.Sprintf("message %d costs %d tokens, its choice says %d", c.Message, n, c.Tokens)
		}
	}
	return ""
}

func budgetReckoned(p *prompt) string {
	// Notes, repairs and what a provider counts besides take some room.
	const slack = 40
	if n := recount(p.wire, p.res.SystemPromptAddition, p.d.env.Count); p.res.EstimatedTokens > n+n/10+slack {
		return fmt.Sprintf("the estimate is %d tokens, the recount %d", p.res.EstimatedTokens, n)
	}
	return ""
}

func budgetAuthority(p *prompt) string {
	if p.res.PromptAuthority != core.AuthorityAssembled {
		return fmt.Sprintf("the authority is %q, want %q", p.res.PromptAuthority, core.AuthorityAssembled)
	}
	return ""
}

func cacheEpoch(p *prompt) string {
	if p.prev == nil {
		return ""
	}
	was, is := p.prev.res.Epoch, p.res.Epoch
	switch {
	case is < was:
		return fmt.Sprintf("the epoch was %d and is %d", was, is)
	case p.res.Stepped && is == was:
		return fmt.Sprintf("the window moved, says Stepped, and the epoch stays %d", is)
	case p.t.moved || p.t.parent != nil || p.d.plan.Managed || p.d.troubled: // so do grants that end, what a host hands over, and what failed
	case !p.t.outgrew && !p.t.recalled && (is != was || p.res.Stepped):
		return fmt.Sprintf("the epoch was %d and is %d, stepped is %v, although the conversation never came near the budget", was, is, p.res.Stepped)
	case is != was && !p.res.Stepped:
		return fmt.Sprintf("the epoch was %d and is %d, and Stepped does not say that the window moved", was, is)
	}
	return ""
}

func failureNamed(p *prompt) string {
	for _, w := range p.res.Warnings {
		if part, text, ok := strings.Cut(w, ":"); !ok || strings.TrimSpace(part) == "" || strings.TrimSpace(text) == "" {
			return fmt.Sprintf("the warning %q names no part, or does not say what went wrong", w)
		}
	}
	health := p.d.engine.Info().Health
	for _, h := range health {
		if h.Part == "" || h.Op == "" || strings.TrimSpace(h.Text) == "" || h.Count < 1 || h.Since.IsZero() {
			return fmt.Sprintf("a problem lacks its part, operation, text, time or count: %+v", h)
		}
	}
	// A compaction may name what became of a model's answer.
	if !p.d.troubled && p.d.env.Model.Calls()+p.d.env.Host.Compacts() == 0 && len(p.res.Warnings)+len(health) > 0 {
		return fmt.Sprintf("warnings %q and problems %+v, and nothing went wrong so far", p.res.Warnings, health)
	}
	return ""
}
