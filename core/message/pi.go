package message

import "strings"

// pi is the codec of the AgentMessage objects of pi and OpenClaw.
//
// A toolResult is one ToolResult part whose text is that of all text blocks, joined by newlines; its other blocks
// follow as Image or Other. Roles that are none of the four are User with Type set: the summary of a
// compactionSummary and of a branchSummary, command and output of a bashExecution, and the content of all others
// are the text.
type pi struct{}

var _ Codec = pi{}

// The roles of pi that have text in a place of their own.
const (
	branchSummary = "branchSummary"
	bashExecution = "bashExecution"
)

func (pi) Name() string { return FormatPi }

func (pi) Decode(raw []byte) (Message, error) {
	m, o, err := begin(FormatPi, raw)
	if err == nil {
		err = piMessage(&m, o)
	}
	return decoded(m, err)
}

func piMessage(m *Message, o object) error {
	role, err := o.str("role")
	if err != nil {
		return err
	}
	m.Key = o.text("idempotencyKey")
	switch role {
	case "":
		return expected(`"role" to be a name such as user, assistant, toolResult, compactionSummary`, describeRole(o))
	case CompactionSummary, branchSummary:
		m.Role, m.Type = User, role
		s, err := o.str("summary")
		if err != nil {
			return err
		}
		m.Parts = []Part{{Kind: Text, Text: s}}
		return nil
	case bashExecution:
		m.Role, m.Type = User, role
		m.Parts = []Part{{Kind: Text, Text: bashPrompt(o) + o.text("output")}}
		return nil
	}
	content, err := o.content("content", piBlock)
	if err != nil {
		return err
	}
	m.Parts = content
	switch role {
	case "system":
		m.Role = System
	case "user":
		m.Role = User
	case "assistant":
		m.Role = Assistant
		return piAnswer(m, o)
	case "toolResult":
		m.Role = Tool
		return piResult(m, o)
	default:
		m.Role, m.Type = User, role
	}
	return nil
}

// bashPrompt is how the command of a bashExecution is shown in front of its output.
func bashPrompt(o object) string {
	command := strings.TrimSpace(o.text("command"))
	if command == "" {
		return ""
	}
	return "$ " + command + "\n"
}

func piAnswer(m *Message, o object) error {
	m.Stop = o.text("stopReason")
	if kindOf(o.get("usage")) != '{' {
		return nil
	}
	u, err := parseObject(o.get("usage"))
	if err != nil {
		return err
	}
	m.Usage = Usage{
		Input:      u.count("input"),
		Output:     u.count("output"),
		CacheRead:  u.count("cacheRead"),
		CacheWrite: u.count("cacheWrite"),
	}
	return nil
}

func piResult(m *Message, o object) error {
	id, err := o.str("toolCallId")
	if err != nil {
		return err
	}
	name, err := o.str("toolName")
	if err != nil {
		return err
	}
	m.Parts = gather(Part{Kind: ToolResult, CallID: id, Name: name, IsError: o.flag("isError")}, m.Parts)
	return nil
}

func piBlock(b object) (Part, error) {
	switch b.text("type") {
	case "text":
		return textBlock(b, Text, "text")
	case "thinking":
		p, err := textBlock(b, Thinking, "thinking")
		p.Signature = b.text("thinkingSignature")
		return p, err
	case "toolCall":
		return callBlock(b, "arguments")
	case "image":
		return Part{Kind: Image}, nil
	}
	return Part{Kind: Other}, nil
}
