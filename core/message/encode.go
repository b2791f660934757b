package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// draft is a message on its way back to bytes: the fields of the original, if it has one of this format, and what is to
// change about them.
type draft struct {
	// base and old are the original; empty when the message is built afresh.
	base object
	old  Message
	// own says that Raw of the parts is of this format and may be written as it is.
	own     bool
	changes []change
}

// encode is what the three encoders share: the original bytes if nothing was edited; the original with the changes
// that build asks for if something was; otherwise an object made of these changes alone.
func encode(c Codec, m Message, build func(*draft, Message) error) ([]byte, error) {
	d := draft{own: m.Format == c.Name()}
	if d.own && m.Raw != nil {
		if !m.Edited {
			return bytes.Clone(m.Raw), nil
		}
		old, err := c.Decode(m.Raw)
		if err != nil {
			return nil, err
		}
		// An original of another role has nothing to keep.
		if old.Role == m.Role && old.Type == m.Type {
			if d.base, err = parseObject(old.Raw); err != nil {
				return nil, err
			}
			d.old = old
		}
	}
	if !m.Role.Valid() {
		return nil, fmt.Errorf("message: encode %s: %w", c.Name(), expected("one of the four roles", quoteName(string(m.Role))))
	}
	if err := build(&d, m); err != nil {
		return nil, fmt.Errorf("message: encode %s: %w", c.Name(), err)
	}
	return d.base.with(d.changes...), nil
}

// fresh reports whether there is no original.
func (d *draft) fresh() bool { return d.old.Raw == nil }

func (d *draft) set(key string, value []byte) {
	d.changes = append(d.changes, change{key, value})
}

func (d *draft) drop(key string) { d.set(key, nil) }

// setString writes a string field unless the original says the same.
func (d *draft) setString(key, value string) {
	if s, ok := unquote(d.base.get(key)); ok && s == value {
		return
	}
	d.set(key, quote(value))
}

// verbatim returns the original bytes of a part, or nil if it has to be built.
func (d *draft) verbatim(p Part) []byte {
	if d.own && len(p.Raw) > 0 && json.Valid(p.Raw) {
		return p.Raw
	}
	return nil
}

// block returns the original's block that an edited call or result was made from, so that fields the model of
// parts does not know (cache marks, thought signatures) survive the edit. It is empty when there is none.
func (d *draft) block(kind Kind, callID string) object {
	for _, p := range d.old.Parts {
		if p.Kind == kind && p.CallID == callID && kindOf(p.Raw) == '{' {
			o, err := parseObject(p.Raw)
			if err != nil {
				return object{}
			}
			return o
		}
	}
	return object{}
}

// body collects the content of a message: blocks, and their text as long as all of them are texts without bytes of
// their own.
type body struct {
	blocks [][]byte
	texts  []string
	rich   bool
}

func (b *body) text(s string) {
	b.texts = append(b.texts, s)
	b.blocks = append(b.blocks, buildText(s))
}

func (b *body) block(raw []byte) {
	b.rich = true
	b.blocks = append(b.blocks, raw)
}

// callID returns the id that links a call with its result. OpenAI's old functions are linked by name: where an id is
// required, both get the one made of it.
func (d *draft) callID(p Part) string {
	if p.CallID == "" && p.Name != "" && !d.own {
		return "call_" + p.Name
	}
	return p.CallID
}

// setContent writes the content: as one string if it is nothing but text and the original had no array, as blocks
// otherwise.
func (d *draft) setContent(b body) {
	old := d.base.get("content")
	if b.rich || kindOf(old) == '[' {
		d.set("content", array(b.blocks...))
		return
	}
	text := strings.Join(b.texts, "\n")
	if s, ok := unquote(old); !ok || s != text {
		d.set("content", quote(text))
	}
}

// setResult writes the content of a message that is one result: its text as one block, or as a string if the
// original had one, then the blocks that came with it. The original content stays if it says the same.
func (d *draft) setResult(text string, others [][]byte, asBlocks bool) {
	if !d.fresh() && sameResult(d.old.Parts, text, others) {
		return
	}
	b := body{rich: asBlocks && kindOf(d.base.get("content")) != '"'}
	if text != "" {
		b.text(text)
	}
	for _, raw := range others {
		b.block(raw)
	}
	d.setContent(b)
}

func sameResult(old []Part, text string, others [][]byte) bool {
	if len(old) != len(others)+1 || old[0].Text != text {
		return false
	}
	for i, raw := range others {
		if !bytes.Equal(raw, old[i+1].Raw) {
			return false
		}
	}
	return true
}

// errSplit asks for Split.
var errSplit = errors.New("use Split first")

// oneResult takes a Tool message apart for formats in which a message carries one result: the result, and the blocks
// that belong to it.
func (d *draft) oneResult(m Message, write func(Part) []byte) (Part, [][]byte, error) {
	var (
		result Part
		count  int
		others [][]byte
	)
	for _, p := range m.Parts {
		switch {
		case p.Kind == ToolResult:
			result = p
			count++
		case p.Kind == Thinking && !d.own:
		case p.Kind == Text || p.Kind == ToolCall && d.verbatim(p) == nil:
			return Part{}, nil, fmt.Errorf("%w (%w)", expected("one tool result", "a part of kind "+string(p.Kind)+" beside it"), errSplit)
		default:
			if raw := write(p); raw != nil {
				others = append(others, raw)
			}
		}
	}
	if count != 1 {
		return Part{}, nil, fmt.Errorf("%w (%w)", expected("one tool result", fmt.Sprintf("%d of them", count)), errSplit)
	}
	return result, others, nil
}

// errPlace is the error for a part that a role cannot have.
func errPlace(p Part, role Role) error {
	err := expected("parts that a message of role "+string(role)+" can have", "a part of kind "+string(p.Kind))
	if p.Kind == ToolResult {
		return fmt.Errorf("%w (%w)", err, errSplit)
	}
	return err
}

func buildText(s string) []byte {
	return object{}.with(change{"type", []byte(`"text"`)}, change{"text", quote(s)})
}

// argsObject returns arguments as the JSON object that Anthropic and pi demand. What is none (models do write broken
// JSON) is kept as the one field "arguments".
func argsObject(args string) []byte {
	raw := bytes.Trim([]byte(args), space)
	switch {
	case len(raw) == 0:
		return []byte("{}")
	case raw[0] == '{' && json.Valid(raw):
		return raw
	case json.Valid(raw):
		return object{}.with(change{"arguments", raw})
	}
	return object{}.with(change{"arguments", quote(args)})
}
