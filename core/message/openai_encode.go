package message

import "bytes"

// Encode writes an OpenAI message. Thinking has no place in this format and is left out when a message is built;
// so is the error flag of a result. A message with several tool results, or with text beside a result, is an error
// wrapping ErrMalformed: one OpenAI message cannot say that, Split makes several of it.
func (c openAI) Encode(m Message) ([]byte, error) {
	return encode(c, m, func(d *draft, m Message) error {
		if m.Role == Tool {
			return d.openAIResult(m)
		}
		return d.openAIMessage(m)
	})
}

func (d *draft) openAIMessage(m Message) error {
	var (
		content           body
		calls             [][]byte
		function, refusal []byte
	)
	for _, p := range m.Parts {
		raw := d.verbatim(p)
		switch {
		case p.Kind == ToolResult, p.Kind == ToolCall && m.Role != Assistant:
			return errPlace(p, m.Role)
		case p.Kind == ToolCall && function == nil && d.isFunction(p):
			function = d.openAIFunction(p)
		case p.Kind == ToolCall:
			calls = append(calls, d.openAICall(p))
		case kindOf(raw) == '"': // see openAIAnswer
			refusal = raw
		default:
			d.openAIPart(&content, p, m.Role)
		}
	}
	if d.fresh() {
		d.set("role", quote(string(m.Role)))
		if m.Name != "" {
			d.set("name", quote(m.Name))
		}
	}
	if silent := calls != nil || function != nil || refusal != nil; len(content.blocks) > 0 || m.Role != Assistant || !silent {
		d.setContent(content)
	} else if k := kindOf(d.base.get("content")); k != 0 && k != 'n' || d.fresh() {
		d.set("content", []byte("null"))
	}
	d.setCalls(calls, function)
	if refusal == nil && d.base.text("refusal") != "" {
		d.set("refusal", []byte("null"))
	}
	return nil
}

// openAIPart adds a part to the content, unless it cannot be said in this format.
func (d *draft) openAIPart(b *body, p Part, role Role) {
	raw := d.verbatim(p)
	img, isImage := pictureOf(p)
	switch {
	case raw != nil:
		b.block(raw)
	case p.Kind == Text:
		b.text(p.Text)
	case p.Kind == Thinking:
	case isImage && role == User:
		b.block(img.openAI())
	default:
		if s, ok := standIn(p, role); ok {
			b.text(s)
		}
	}
}

// setCalls writes both places where calls can stand.
func (d *draft) setCalls(calls [][]byte, function []byte) {
	old := d.base.get("tool_calls")
	switch {
	case len(calls) > 0:
		d.set("tool_calls", array(calls...))
	case kindOf(old) == '[':
		d.drop("tool_calls") // the API rejects an empty list
	}
	switch {
	case function != nil:
		d.set("function_call", function)
	case kindOf(d.base.get("function_call")) == '{':
		d.drop("function_call")
	}
}

// isFunction reports whether a call belongs into the field function_call, which came before tool_calls and knows
// no ids.
func (d *draft) isFunction(p Part) bool {
	if raw := d.verbatim(p); raw != nil {
		return bytes.Equal(raw, d.base.get("function_call"))
	}
	return p.CallID == "" && d.base.get("tool_calls") == nil
}

func (d *draft) openAIFunction(p Part) []byte {
	if raw := d.verbatim(p); raw != nil {
		return raw
	}
	return d.block(ToolCall, "").with(change{"name", quote(p.Name)}, change{"arguments", quote(d.args(p))})
}

func (d *draft) openAICall(p Part) []byte {
	if raw := d.verbatim(p); raw != nil {
		return raw
	}
	b := d.block(ToolCall, p.CallID)
	key, args := "function", "arguments"
	if kindOf(b.get("custom")) == '{' {
		key, args = "custom", "input"
	}
	var f object
	if kindOf(b.get(key)) == '{' {
		f, _ = parseObject(b.get(key)) // part of an object that was parsed before
	}
	return b.with(
		change{"id", quote(p.CallID)},
		change{"type", quote(key)},
		change{key, f.with(change{"name", quote(p.Name)}, change{args, quote(d.args(p))})},
	)
}

// args returns the arguments as text. Servers that parse them choke on "", which other formats write for "none".
func (d *draft) args(p Part) string {
	if p.Args == "" && !d.own {
		return "{}"
	}
	return p.Args
}

func (d *draft) openAIResult(m Message) error {
	result, others, err := d.oneResult(m, func(p Part) []byte {
		if raw := d.verbatim(p); raw != nil {
			return raw
		}
		return buildText(placeholder(p)) // results are text in this format
	})
	if err != nil {
		return err
	}
	if d.fresh() {
		if result.CallID == "" && result.Name != "" {
			d.set("role", []byte(`"function"`))
		} else {
			d.set("role", []byte(`"tool"`))
		}
	}
	if result.CallID != "" || d.fresh() && result.Name == "" {
		d.setString("tool_call_id", result.CallID)
	}
	if result.Name != "" {
		d.setString("name", result.Name)
	}
	d.setResult(result.Text, others, false)
	return nil
}
