package message

import "strings"

// Encode writes an Anthropic message. Tool becomes "user", with the results first as the API demands. Thinking
// without a signature, and thinking that another provider signed, is left out when a message is built: the API
// would reject it.
func (c anthropic) Encode(m Message) ([]byte, error) {
	return encode(c, m, func(d *draft, m Message) error { return d.anthropicMessage(m) })
}

func (d *draft) anthropicMessage(m Message) error {
	var content, results body
	for i, p := range m.Parts {
		raw := d.verbatim(p)
		img, isImage := pictureOf(p)
		switch {
		case raw != nil:
			content.block(raw)
		case p.Kind == Text:
			if p.Text != "" { // the API rejects empty texts
				content.text(p.Text)
			}
		case p.Kind == Thinking:
			if p.Signature != "" && m.Role == Assistant && (d.own || m.Format == "") {
				content.block(buildThinking(p, "signature"))
			}
		case p.Kind == ToolCall && (m.Role == Assistant || d.own):
			content.block(d.anthropicCall(p))
		case p.Kind == ToolResult && (m.Role != Assistant || d.own):
			block := d.anthropicResult(p, attached(m, i))
			if d.own {
				content.block(block)
			} else {
				results.block(block)
			}
		case p.Kind == ToolCall || p.Kind == ToolResult:
			return errPlace(p, m.Role)
		case belongsToResult(m, i):
		case isImage && m.Role != Assistant:
			content.block(img.anthropic())
		default:
			if s, ok := standIn(p, m.Role); ok {
				content.text(s)
			}
		}
	}
	content.blocks = append(results.blocks, content.blocks...)
	content.rich = content.rich || results.rich || len(content.texts) > 1
	if d.fresh() {
		role := m.Role
		if role == Tool {
			role = User
		}
		d.set("role", quote(string(role)))
	}
	d.setContent(content)
	return nil
}

func buildThinking(p Part, signature string) []byte {
	changes := []change{{"type", []byte(`"thinking"`)}, {"thinking", quote(p.Text)}}
	if p.Signature != "" {
		changes = append(changes, change{signature, quote(p.Signature)})
	}
	return object{}.with(changes...)
}

func (d *draft) anthropicCall(p Part) []byte {
	return d.block(ToolCall, p.CallID).with(
		change{"type", []byte(`"tool_use"`)},
		change{"id", quote(d.anthropicID(p))},
		change{"name", quote(p.Name)},
		change{"input", argsObject(p.Args)},
	)
}

// anthropicResult writes a tool_result: around the original block if there was one, whose images stay.
func (d *draft) anthropicResult(p Part, images []Part) []byte {
	old := d.block(ToolResult, p.CallID)
	content := body{rich: kindOf(old.get("content")) == '['}
	if p.Text != "" {
		content.text(p.Text)
	}
	for _, b := range nested(Part{Kind: ToolResult, Raw: old.raw}) {
		content.block(b.Raw)
	}
	for _, part := range images {
		if img, ok := pictureOf(part); ok {
			content.block(img.anthropic())
		} else {
			content.block(buildText(placeholder(part)))
		}
	}
	changes := []change{
		{"type", []byte(`"tool_result"`)},
		{"tool_use_id", quote(d.anthropicID(p))},
	}
	switch {
	case content.rich:
		changes = append(changes, change{"content", array(content.blocks...)})
	case p.Text != "" || old.get("content") != nil:
		changes = append(changes, change{"content", quote(p.Text)})
	}
	if p.IsError != old.flag("is_error") {
		changes = append(changes, change{"is_error", boolean(p.IsError)})
	}
	return old.with(changes...)
}

// anthropicID returns an id as the API accepts it ([a-zA-Z0-9_-]). Ids of this format are left alone.
func (d *draft) anthropicID(p Part) string {
	if d.own {
		return p.CallID
	}
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, d.callID(p))
}

// nested returns the blocks inside an Anthropic tool_result that are no text.
func nested(p Part) []Part {
	b, err := parseObject(p.Raw)
	if err != nil || kindOf(b.get("content")) != '[' {
		return nil
	}
	content, err := b.content("content", anthropicBlock)
	if err != nil {
		return nil
	}
	return gather(Part{}, content)[1:]
}
