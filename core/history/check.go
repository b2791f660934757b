package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// Violation is a rule that a list of messages breaks.
type Violation struct {
	// Index is the position of the message that breaks the rule; len(msgs) when something is missing at the end.
	Index int
	// Rule is one of the Rule constants.
	Rule string
	// Detail says what was found, without quoting content.
	Detail string
}

func (v Violation) String() string {
	return fmt.Sprintf("message %d: %s: %s", v.Index, v.Rule, v.Detail)
}

// The rules Check knows.
const (
	RuleCallUnanswered  = "call-without-result"
	RuleResultUnasked   = "result-without-call"
	RuleResultEarly     = "result-before-call"
	RuleResultTwice     = "duplicate-result"
	RuleMisplaced       = "misplaced-part"
	RuleRoleOrder       = "role-order"
	RuleResultsFirst    = "results-first"
	RuleAssistantFirst  = "assistant-first"
	RuleEmpty           = "empty-message"
	RuleCallID          = "call-id"
	RuleInvalidCall     = "invalid-call"
	RuleUnsigned        = "unsigned-thinking"
	RuleThinkingHistory = "old-thinking"
)

// Check states what in msgs a provider of this policy would refuse: nil when nothing. It is an independent verifier of
// the rules, for tests and for whoever replays transcripts: it shares no code with them, and they do not use it. Only
// what policy asks for is checked.
func Check(msgs []message.Message, policy Policy) []Violation {
	c := checker{Policy: policy, msgs: msgs}
	if policy.RepairPairs {
		c.pairs()
	}
	c.order()
	if policy.Clean {
		c.content()
	}
	c.reasoning()
	if policy.SanitizeCallIDs != "" {
		c.ids()
	}
	return c.found
}

type checker struct {
	Policy
	msgs  []message.Message
	found []Violation
}

func (c *checker) report(i int, rule, format string, args ...any) {
	c.found = append(c.found, Violation{Index: i, Rule: rule, Detail: fmt.Sprintf(format, args...)})
}

// pairs reads the messages the way a provider does: calls open a debt that the tool messages right after have to pay.
func (c *checker) pairs() {
	owed := map[string]int{}
	paid := map[string]int{}
	order := []string{}
	settle := func(i int) {
		for _, id := range order {
			if owed[id] > 0 {
				c.report(i, RuleCallUnanswered, "%d results missing for id %q", owed[id], id)
			}
			delete(owed, id)
		}
		order = order[:0]
		clear(paid)
	}
	for i, m := range c.msgs {
		if m.Role != message.Tool {
			settle(i)
		} else if len(m.Results()) == 0 {
			c.report(i, RuleMisplaced, "tool message without a result")
		}
		for _, p := range m.Parts {
			switch {
			case p.Kind == message.ToolCall && m.Role != message.Assistant:
				c.report(i, RuleMisplaced, "tool call in a %s message", m.Role)
			case p.Kind == message.ToolResult && m.Role != message.Tool:
				c.report(i, RuleMisplaced, "tool result in a %s message", m.Role)
			case p.Kind == message.ToolCall:
				if owed[p.CallID] == 0 {
					order = append(order, p.CallID)
				}
				owed[p.CallID]++
			case p.Kind != message.ToolResult:
			case owed[p.CallID] > 0:
				owed[p.CallID]--
				paid[p.CallID]++
			case paid[p.CallID] > 0:
				c.report(i, RuleResultTwice, "id %q", p.CallID)
			case c.calledAfter(i, p.CallID):
				c.report(i, RuleResultEarly, "id %q", p.CallID)
			default:
				c.report(i, RuleResultUnasked, "id %q", p.CallID)
			}
		}
	}
	settle(len(c.msgs))
}

func (c *checker) calledAfter(i int, id string) bool {
	for _, m := range c.msgs[i+1:] {
		for _, p := range m.Calls() {
			if p.CallID == id {
				return true
			}
		}
	}
	return false
}

// order checks neighbours and the beginning.
func (c *checker) order() {
	oneEach := false
	for _, m := range c.msgs {
		oneEach = oneEach || m.Format == message.FormatPi || m.Format == message.FormatOpenAI
	}
	wire := c.MergeUserTurns && !oneEach
	first := true
	for i, m := range c.msgs {
		if first && m.Role != message.System {
			first = false
			if m.Role == message.Assistant && c.AssistantFirstFix {
				c.report(i, RuleAssistantFirst, "the first message is the assistant's")
			}
		}
		if wire && m.Role == message.Tool {
			seen := false
			for _, p := range m.Parts {
				if p.Kind == message.ToolResult && seen {
					c.report(i, RuleResultsFirst, "a result follows a %s part", message.Text)
					break
				}
				seen = seen || p.Kind != message.ToolResult
			}
		}
		if i == 0 || m.Type != "" || c.msgs[i-1].Type != "" {
			continue
		}
		prev := c.msgs[i-1]
		switch {
		case m.Role == message.Assistant && prev.Role == message.Assistant:
			if c.ValidateAnthropic || c.ValidateGemini {
				c.report(i, RuleRoleOrder, "two assistant messages in a row")
			}
		case m.Role == message.User && prev.Role == message.User:
			if c.ValidateAnthropic && m.Name == prev.Name {
				c.report(i, RuleRoleOrder, "two user messages in a row")
			}
		case prev.Role == message.Tool && (m.Role == message.User || m.Role == message.Tool):
			if wire && m.Name == "" && prev.Name == "" {
				c.report(i, RuleRoleOrder, "a %s message after a tool message", m.Role)
			}
		}
	}
}

// content checks that every ordinary message says something and that its calls can be replayed.
func (c *checker) content() {
	for i, m := range c.msgs {
		if m.Role == message.System {
			continue
		}
		empty := true
		for _, p := range m.Parts {
			empty = empty && p.Kind == message.Text && strings.TrimSpace(p.Text) == ""
			if p.Kind != message.ToolCall || m.Role != message.Assistant {
				continue
			}
			if strings.TrimSpace(p.CallID) == "" || strings.TrimSpace(p.Name) == "" ||
				strings.Trim(p.Name, nameChars) != "" || len(p.Name) > 64 {
				c.report(i, RuleInvalidCall, "a call without an id or a usable name")
			}
		}
		if empty && m.Type == "" {
			c.report(i, RuleEmpty, "a %s message without content", m.Role)
		}
	}
}

const nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:.-"

// reasoning checks which thinking is left, and where.
func (c *checker) reasoning() {
	current := true
	for i, m := range slices.Backward(c.msgs) {
		for _, p := range m.Parts {
			switch {
			case p.Kind == message.Thinking && m.Role == message.Assistant:
				if c.PreserveSignatures && strings.TrimSpace(p.Signature) == "" {
					c.report(i, RuleUnsigned, "thinking without a signature")
				}
				if (c.DropReasoning || c.DropThinking) && !current {
					c.report(i, RuleThinkingHistory, "thinking of an earlier turn")
				}
			case p.Kind == message.Text && strings.TrimSpace(p.Text) == "":
			case m.Role == message.User && m.Type == "", m.Role == message.Tool && p.Kind == message.Text:
				current = false
			}
		}
	}
}

// ids checks form and uniqueness of the calls' ids.
func (c *checker) ids() {
	seen := map[string]bool{}
	for i, m := range c.msgs {
		for _, p := range m.Calls() {
			if strings.Contains(string(p.Raw), `"custom"`) {
				continue
			}
			if seen[p.CallID] {
				c.report(i, RuleCallID, "id %q is used twice", p.CallID)
			}
			seen[p.CallID] = true
			native := c.KeepNativeIDs && strings.HasPrefix(p.CallID, "toolu_") ||
				c.SanitizeCallIDs == IDsStrict && strings.HasPrefix(p.CallID, "functions.")
			plain := strings.Trim(p.CallID, nameChars[:62]) == "" && p.CallID != ""
			long := len(p.CallID) > 40 || c.SanitizeCallIDs == IDsStrict9 && len(p.CallID) != 9
			if !native && (!plain || long) {
				c.report(i, RuleCallID, "id %q is not in the form the provider takes", p.CallID)
			}
		}
	}
}
