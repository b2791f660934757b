package message

// Shorten returns m with texts in the place of parts, by their index. A result stays a result, a text a text, and a text that becomes empty goes; anything else becomes
// a text. What stands for a block that belongs to a result is added to that result's text, because no format has room for another text beside it.
//
// The images inside an Anthropic tool result stay with it; bare says that they go from the results that are named.
func Shorten(m Message, texts map[int]string, bare bool) Message {
	parts := make([]Part, 0, len(m.Parts))
	result := 0 // the newest result in parts
	for i, p := range m.Parts {
		text, ok := texts[i]
		switch {
		case p.Kind == ToolResult:
			result = len(parts)
			if ok {
				p = reworded(p, text, bare)
			}
		case !ok:
		case p.Kind == Text && text == "":
			continue
		case p.Kind == Text:
			p.Text, p.Raw = text, nil
		case belongsToResult(m, i):
			r := &parts[result]
			if r.Text != "" {
				text = r.Text + "\n" + text
			}
			*r = reworded(*r, text, false)
			continue
		default:
			p = Part{Kind: Text, Text: text}
		}
		parts = append(parts, p)
	}
	return m.WithParts(parts)
}

// reworded returns a result with another text. One with blocks inside keeps its own bytes around the text: an encoder would look for the blocks in the
// original of the message, which another message's may have become.
func reworded(p Part, text string, bare bool) Part {
	inside := Inside(p)
	p.Text = text
	if len(inside) == 0 {
		p.Raw = nil
		return p
	}
	o, err := parseObject(p.Raw)
	if err != nil {
		p.Raw = nil
		return p
	}
	var content [][]byte
	if text != "" {
		content = append(content, buildText(text))
	}
	for _, b := range inside {
		if !bare {
			content = append(content, b.Raw)
		}
	}
	p.Raw = o.with(change{"content", array(content...)})
	return p
}
