package message

import (
	"bytes"
	"strings"
)

// openAI is the codec of OpenAI's chat completions and of all servers that speak it.
//
// "developer" is System, "function" is Tool. The parts of an assistant message are its content, a refusal, then
// its calls. A Tool message is one ToolResult part; blocks of its content that are no text follow as Image or
// Other.
type openAI struct{}

var _ Codec = openAI{}

func (openAI) Name() string { return FormatOpenAI }

func (openAI) Decode(raw []byte) (Message, error) {
	m, o, err := begin(FormatOpenAI, raw)
	if err == nil {
		err = openAIMessage(&m, o)
	}
	return decoded(m, err)
}

// developer is the other name of the role system.
const developer = "developer"

// Developer reports whether the bytes of a message call its role "developer", which OpenAI's format has for System.
func (m *Message) Developer() bool {
	if m.Role != System || m.Format != FormatOpenAI || !bytes.Contains(m.Raw, []byte(developer)) && !bytes.Contains(m.Raw, []byte(`\u`)) {
		return false
	}
	o, err := parseObject(m.Raw)
	return err == nil && o.text("role") == developer
}

func openAIMessage(m *Message, o object) error {
	role, err := o.str("role")
	if err != nil {
		return err
	}
	content, err := o.content("content", openAIBlock)
	if err != nil {
		return err
	}
	name, err := o.str("name")
	if err != nil {
		return err
	}
	m.Parts = content
	switch role {
	case "system", developer:
		m.Role, m.Name = System, name
	case "user":
		m.Role, m.Name = User, name
	case "assistant":
		m.Role, m.Name = Assistant, name
		return openAIAnswer(m, o)
	case "tool", "function":
		m.Role = Tool
		id, err := o.str("tool_call_id")
		if err != nil {
			return err
		}
		m.Parts = gather(Part{Kind: ToolResult, CallID: id, Name: name}, content)
	default:
		return expected(`"role" to be one of system, developer, user, assistant, tool, function`, describeRole(o))
	}
	return nil
}

// openAIAnswer reads what only assistant messages have.
func openAIAnswer(m *Message, o object) error {
	// The raw string, quotes included, tells the encoder that this text belongs to the refusal field.
	if s := o.text("refusal"); s != "" {
		m.Parts = append(m.Parts, Part{Kind: Text, Text: s, Raw: o.get("refusal")})
	}
	if raw := o.get("tool_calls"); kindOf(raw) != 0 && kindOf(raw) != 'n' {
		calls, err := blocks(raw, "tool_calls", openAICall)
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, calls...)
	}
	if raw := o.get("function_call"); kindOf(raw) == '{' {
		f, err := parseObject(raw)
		if err != nil {
			return err
		}
		p, err := openAIFunction(f, "arguments")
		if err != nil {
			return within(err, "function_call")
		}
		p.Raw = raw
		m.Parts = append(m.Parts, p)
	}
	return nil
}

// describeRole quotes a role: it is a name, not content, and the one thing that helps to find the mistake.
func describeRole(o object) string {
	s, ok := unquote(o.get("role"))
	if !ok {
		return describe(o.get("role"))
	}
	return quoteName(s)
}

func quoteName(s string) string {
	const enough = 40
	if len(s) > enough {
		s = strings.ToValidUTF8(s[:enough], "") + "..."
	}
	return string(quote(s))
}

func openAIBlock(b object) (Part, error) {
	switch b.text("type") {
	case "text":
		return textBlock(b, Text, "text")
	case "refusal":
		return textBlock(b, Text, "refusal")
	case "image_url":
		return Part{Kind: Image}, nil
	}
	return Part{Kind: Other}, nil
}

func openAICall(b object) (Part, error) {
	id, err := b.str("id")
	if err != nil {
		return Part{}, err
	}
	key, args := "function", "arguments"
	if kindOf(b.get("custom")) == '{' {
		key, args = "custom", "input"
	}
	if kindOf(b.get(key)) != '{' {
		return Part{Kind: ToolCall, CallID: id}, nil // a kind of call that is newer than this codec
	}
	f, err := parseObject(b.get(key))
	if err != nil {
		return Part{}, err
	}
	p, err := openAIFunction(f, args)
	p.CallID = id
	return p, err
}

func openAIFunction(f object, args string) (Part, error) {
	name, err := f.str("name")
	if err != nil {
		return Part{}, err
	}
	p := Part{Kind: ToolCall, Name: name}
	raw := f.get(args)
	if s, ok := unquote(raw); ok {
		p.Args = s
	} else if kindOf(raw) != 'n' {
		p.Args = string(raw) // some servers send an object where the API has a string
	}
	return p, nil
}
