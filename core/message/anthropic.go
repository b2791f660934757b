package message

// anthropic is the codec of Anthropic's messages API.
//
// A user message with a tool result is Tool and keeps its other blocks as further parts; Tool is written as
// "user". The API takes the system prompt beside the messages, not among them: role "system" is read and written
// all the same, and whoever builds a request lifts it out.
type anthropic struct{}

var _ Codec = anthropic{}

func (anthropic) Name() string { return FormatAnthropic }

func (anthropic) Decode(raw []byte) (Message, error) {
	m, o, err := begin(FormatAnthropic, raw)
	if err == nil {
		err = anthropicMessage(&m, o)
	}
	return decoded(m, err)
}

func anthropicMessage(m *Message, o object) error {
	role, err := o.str("role")
	if err != nil {
		return err
	}
	if k := kindOf(o.get("content")); k != '"' && k != '[' {
		return expected(`"content" to be a string or an array of blocks`, describe(o.get("content")))
	}
	if m.Parts, err = o.content("content", anthropicBlock); err != nil {
		return err
	}
	switch role {
	case "user":
		m.Role = User
		if m.HasResults() {
			m.Role = Tool
		}
	case "assistant":
		m.Role = Assistant
		m.Stop = o.text("stop_reason")
		if kindOf(o.get("usage")) == '{' {
			u, err := parseObject(o.get("usage"))
			if err != nil {
				return err
			}
			m.Usage = Usage{
				Input:      u.count("input_tokens"),
				Output:     u.count("output_tokens"),
				CacheRead:  u.count("cache_read_input_tokens"),
				CacheWrite: u.count("cache_creation_input_tokens"),
			}
		}
	case "system":
		m.Role = System
	default:
		return expected(`"role" to be one of user, assistant, system`, describeRole(o))
	}
	return nil
}

func anthropicBlock(b object) (Part, error) {
	switch b.text("type") {
	case "text":
		return textBlock(b, Text, "text")
	case "thinking":
		p, err := textBlock(b, Thinking, "thinking")
		p.Signature = b.text("signature")
		return p, err
	case "tool_use":
		return callBlock(b, "input")
	case "tool_result":
		return anthropicResult(b)
	case "image":
		return Part{Kind: Image}, nil
	}
	return Part{Kind: Other}, nil
}

// callBlock reads a block that calls a tool, with its arguments as an object under the named key.
func callBlock(b object, args string) (Part, error) {
	id, err := b.str("id")
	if err != nil {
		return Part{}, err
	}
	name, err := b.str("name")
	if err != nil {
		return Part{}, err
	}
	return Part{Kind: ToolCall, CallID: id, Name: name, Args: string(b.get(args))}, nil
}

// anthropicResult reads a tool_result. Blocks of its content that are no text are not parts of their own: they stay in
// the part's Raw, and the encoder keeps them when the text is replaced.
func anthropicResult(b object) (Part, error) {
	id, err := b.str("tool_use_id")
	if err != nil {
		return Part{}, err
	}
	content, err := b.content("content", anthropicBlock)
	if err != nil {
		return Part{}, within(err, "tool_result")
	}
	p := gather(Part{Kind: ToolResult, CallID: id}, content)[0]
	p.IsError = b.flag("is_error")
	return p, nil
}
