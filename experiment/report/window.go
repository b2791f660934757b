package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// WindowComposition shows what the window of a session was made of, call by call: which entry is in, why, what it costs, and what is out.
type WindowComposition struct {
	Title, Caption string
	// Calls are in the order they were made. See [WindowFrom].
	Calls []WindowCall
}

// WindowCall is the window of one model call. All counts of tokens are the engine's.
type WindowCall struct {
	// Number counts the session's calls from 1, Turn its user messages.
	Number, Turn int
	// Budget is the largest prompt, Tokens what this one costs.
	Budget, Tokens int
	// Stepped says that the window moved in this call.
	Stepped bool
	// Degraded says why the engine did not answer itself; empty otherwise.
	Degraded string
	// In is what the model sees, in its order; Out what it does not.
	In, Out []Piece
}

// Piece is an entry, a run of entries, or something that the engine made.
type Piece struct {
	// Entry is the entry's id; empty for what the engine made and for runs.
	Entry string
	Role  message.Role
	// Reason says why it is in or out.
	Reason window.Reason
	// Count is the number of entries meant, 1 except for runs.
	Count int
	// Tokens is what it costs, or would have cost.
	Tokens int
	// Stub says how the content was shortened; empty when it is whole.
	Stub window.StubKind
	// Score and Source are the retriever's.
	Score  float64
	Source string
	// Text is an excerpt, bounded by [WindowFrom]; longer texts are cut when the report is written.
	Text string
}

// Lookup finds the message of an entry, for excerpts of what is not a message of the prompt by itself: quotations, and what is out. It may
// be nil, and need not know every entry.
type Lookup func(entry string) (message.Message, bool)

// WindowFrom explains a model call from what the engine answered. number and turn count from 1, budget is the one that was asked for. The
// result holds excerpts only; it keeps neither res nor its messages alive.
func WindowFrom(number, turn, budget int, res core.AssembleResult, lookup Lookup) WindowCall {
	c := WindowCall{
		Number: number, Turn: turn, Budget: budget, Tokens: res.EstimatedTokens, Stepped: res.Stepped, Degraded: visible(res.Degraded),
	}
	if res.SystemPromptAddition != "" {
		c.In = append(c.In, Piece{
			Role: message.System, Reason: reasonAddition, Count: 1, Text: excerpt(res.SystemPromptAddition),
		})
	}
	counted := 0
	var quoted []Piece
	var merged []int // pieces that share a message with the one in front of them
	shown := make([]bool, len(res.Messages))
	for _, ch := range res.Choices {
		p := Piece{
			Entry: visible(ch.Entry), Reason: ch.Reason, Count: max(ch.Count, 1), Tokens: ch.Tokens, Stub: ch.Stub, Score: ch.Score, Source: visible(ch.Source),
		}
		if ch.Message < 0 || ch.Message >= len(res.Messages) {
			if m, ok := find(lookup, ch.Entry); ok {
				p.Role, p.Text = m.Role, excerpt(contentOf(m))
			}
			c.Out = append(c.Out, p)
			continue
		}
		m := res.Messages[ch.Message]
		p.Role = m.Role
		counted += ch.Tokens
		inRecall := res.RecallLen > 0 && ch.Message >= res.RecallAt && ch.Message < res.RecallAt+res.RecallLen
		switch {
		case ch.Reason == window.ReasonRecalled:
			// A quotation within the block: the block carries the cost.
			p.Role = ""
			if e, ok := find(lookup, ch.Entry); ok {
				p.Role, p.Text = e.Role, excerpt(contentOf(e))
			}
			quoted = append(quoted, p)
			continue
		case inRecall && ch.Reason == window.ReasonNote:
			p.Reason, p.Text = reasonBlock, excerpt(contentOf(m))
			c.In, quoted = append(append(c.In, p), quoted...), nil
			continue
		case shown[ch.Message]:
			// Several entries became one message.
			if e, ok := find(lookup, ch.Entry); ok {
				p.Text = excerpt(contentOf(e))
			}
			merged = append(merged, len(c.In))
		default:
			p.Text = excerpt(contentOf(m))
			shown[ch.Message] = true
		}
		c.In = append(c.In, p)
	}
	c.In = append(c.In, quoted...)
	c.settle(c.Tokens-counted, merged, res.SystemPromptAddition != "")
	return c
}

// settle makes the pieces' costs add up to the call's. What no choice accounts for is the addition's, if there is one. Merged entries may be
// listed with what each would cost alone; what is too much is taken from them, the dearest first.
func (c *WindowCall) settle(rest int, merged []int, addition bool) {
	switch {
	case rest > 0 && addition:
		c.In[0].Tokens = rest
		return
	case rest > 0:
		c.In = append(c.In, Piece{Reason: reasonOther, Count: 1, Tokens: rest, Text: "What no single entry accounts for."})
		return
	}
	slices.SortStableFunc(merged, func(i, j int) int { return cmp.Compare(c.In[j].Tokens, c.In[i].Tokens) })
	for _, i := range merged {
		cut := min(-rest, c.In[i].Tokens)
		c.In[i].Tokens -= cut
		rest += cut
	}
}

// Reasons of the report's own.
const (
	// reasonAddition is what an engine puts behind the host's system prompt.
	reasonAddition window.Reason = "addition"
	// reasonBlock is the recall block as a whole; its quotations follow.
	reasonBlock window.Reason = "recall block"
	// reasonOther is what no choice accounts for.
	reasonOther window.Reason = "other"
)

func find(lookup Lookup, entry string) (message.Message, bool) {
	if lookup == nil || entry == "" {
		return message.Message{}, false
	}
	return lookup(entry)
}

// contentOf is what a message says, its calls and what else it holds included. It is no more than an excerpt needs of each part.
func contentOf(m message.Message) string {
	var parts []string
	for _, p := range m.Parts {
		switch p.Kind {
		case message.Text, message.Thinking:
			parts = append(parts, p.Text)
		case message.ToolCall:
			parts = append(parts, p.Name+"("+bounded(p.Args)+")")
		case message.ToolResult:
			parts = append(parts, bounded(p.Text))
		default:
			parts = append(parts, "["+string(p.Kind)+"] "+bounded(p.Text))
		}
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}

// bounded keeps the ends of a text: joining megabytes for an excerpt would be waste.
func bounded(s string) string {
	if len(s) <= 4*maxExcerpt {
		return s
	}
	return s[:2*maxExcerpt] + s[len(s)-2*maxExcerpt:]
}

// reasonGroup is the class and the name of a reason: the parts that the window's chart is made of.
func reasonGroup(r window.Reason) int {
	switch r {
	case window.ReasonSystem, reasonAddition:
		return 0
	case window.ReasonSummary:
		return 1
	case window.ReasonNote, reasonOther:
		return 2
	case window.ReasonPinned:
		return 3
	case window.ReasonRecalled, reasonBlock:
		return 5
	}
	return 4
}

// reasonWords explains a reason to a reader.
func reasonWords(r window.Reason) string {
	switch r {
	case window.ReasonSystem:
		return "system message"
	case window.ReasonTail:
		return "recent history"
	case window.ReasonPinned:
		return "pinned: the turn's own question"
	case window.ReasonSummary:
		return "summary of compacted history"
	case window.ReasonRecalled:
		return "recalled: quoted in the block"
	case window.ReasonNote:
		return "note by the engine"
	case reasonAddition:
		return "addition to the system prompt"
	case reasonBlock:
		return "recall block"
	case reasonOther:
		return "other"
	case window.OutBudget:
		return "no room: left at a step"
	case window.OutCompacted:
		return "compacted: a summary stands for it"
	case window.OutHeartbeat:
		return "a timer's message"
	case window.OutErased:
		return "erased"
	case window.OutRule:
		return "removed by a history rule"
	case window.OutLimit:
		return "beyond the limit of turns"
	case window.OutAllowance:
		return "found, but the recall block was full"
	}
	return clipLine(string(r), 80)
}

func stubWords(k window.StubKind) string {
	switch k {
	case "":
		return ""
	case window.Clipped:
		return "clipped"
	case window.Masked:
		return "masked"
	}
	return clipLine(string(k), 40)
}
