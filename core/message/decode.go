package message

import (
	"bytes"
	"fmt"
	"strings"
)

// begin starts every decoder: it copies the bytes, takes the object apart and reads the fields all formats share.
func begin(format string, raw []byte) (Message, object, error) {
	o, err := parseObject(bytes.Clone(raw))
	if err != nil {
		return Message{Format: format}, object{}, err
	}
	return Message{Format: format, Raw: o.raw, ID: o.text("id"), Time: timeOf(o.get("timestamp"))}, o, nil
}

// decoded ends every decoder.
func decoded(m Message, err error) (Message, error) {
	if err != nil {
		return Message{}, fmt.Errorf("message: decode %s: %w", m.Format, err)
	}
	return m, nil
}

// content reads a field that holds a string, null, nothing, or an array of blocks. The caller says what a block is; it
// returns a part without Raw.
func (o object) content(key string, block func(object) (Part, error)) ([]Part, error) {
	raw := o.get(key)
	switch kindOf(raw) {
	case 0, 'n':
		return nil, nil
	case '"':
		s, _ := unquote(raw)
		if s == "" {
			return nil, nil
		}
		return []Part{{Kind: Text, Text: s}}, nil
	case '[':
		return blocks(raw, key, block)
	}
	return nil, expected(fmt.Sprintf("%q to be a string or an array of blocks", key), describe(raw))
}

// blocks reads an array of blocks.
func blocks(raw []byte, key string, block func(object) (Part, error)) ([]Part, error) {
	spans, err := elements(raw)
	if err != nil {
		return nil, err
	}
	parts := make([]Part, 0, len(spans))
	for i, s := range spans {
		b, err := parseObject(raw[s.at:s.end:s.end])
		if err != nil {
			return nil, within(err, "%s[%d]", key, i)
		}
		p, err := block(b)
		if err != nil {
			return nil, within(err, "%s[%d]", key, i)
		}
		p.Raw = b.raw
		parts = append(parts, p)
	}
	return parts, nil
}

// textBlock reads a block whose text is in the named field.
func textBlock(b object, kind Kind, key string) (Part, error) {
	s, err := b.str(key)
	return Part{Kind: kind, Text: s}, err
}

// gather joins the text of a result's blocks into one part, followed by the blocks that are no text. The result has no
// Raw: in the formats that use it the message itself is the block.
func gather(result Part, content []Part) []Part {
	var texts []string
	parts := []Part{result}
	for _, p := range content {
		if p.Kind == Text {
			texts = append(texts, p.Text)
		} else {
			parts = append(parts, p)
		}
	}
	parts[0].Text = strings.Join(texts, "\n")
	return parts
}
