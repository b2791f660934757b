package conformance

import (
	"encoding/json"
	"fmt"

	"github.com/contextengine/contextengine/core/message"
)

// item is a message of the model: what the suite knows of a message it handed over.
type item struct {
	// marks are the words that locate it in a prompt, in order.
	marks []string
	msg   message.Message
	// wire is the message's bytes in its format.
	wire string
	// calls and results are call ids.
	calls   []string
	results []string
	beat    bool
	// blank items say nothing.
	blank bool
	keyed bool
	// summary marks what the simulated host put in place of history.
	summary bool
	// inherited items came with a fork.
	inherited bool
	// erased items stand in the host's transcript only.
	erased bool
}

// author builds messages in one host's format.
type author struct {
	format string
	// wrote is how many messages were written. Hosts whose messages bear a time give each another one: what says nothing is told from the next by it.
	wrote *int
}

func (a author) now() int64 { return epoch.UnixMilli() + int64(*a.wrote) }

func (a author) raw(fields map[string]any, blank bool) (item, error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return item{}, fmt.Errorf("conformance: compose: %w", err)
	}
	codec, err := message.Lookup(a.format)
	if err != nil {
		return item{}, err
	}
	m, err := codec.Decode(raw)
	if err != nil {
		return item{}, fmt.Errorf("conformance: compose %s: %w", raw, err)
	}
	return item{msg: m, wire: string(raw), blank: blank}, nil
}

func (a author) own(m message.Message) (item, error) {
	w, err := message.Encode(m, message.FormatOpenAI)
	return item{msg: m, wire: string(w)}, err
}

// say builds a message of one text. extra makes the bytes carry fields no codec knows.
func (a author) say(role message.Role, text string, extra bool) (item, error) {
	fields := map[string]any{"role": string(role), "content": text}
	if extra {
		fields["x_host"] = map[string]any{"n": 1.50, "s": "<é>"}
	}
	if role == message.User && len(text)%3 == 0 && text != "" {
		return a.shows(fields, text)
	}
	switch a.format {
	case "":
		it, err := a.own(message.New(role, text))
		return it, err
	case message.FormatPi:
		fields["content"] = []any{map[string]any{"type": "text", "text": text}}
		fields["timestamp"] = a.now()
		if role == message.Assistant {
			fields["stopReason"] = "stop"
			fields["usage"] = map[string]any{"input": 3, "output": 2}
		}
	}
	return a.raw(fields, false)
}

// pixel is an image of one pixel.
const pixel = "R0lGODlhAQABAAAAACw="

// image is an image block in the host's format.
func (a author) image() map[string]any {
	switch a.format {
	case message.FormatOpenAI:
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/gif;base64," + pixel}}
	case message.FormatAnthropic:
		return map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/gif", "data": pixel}}
	}
	return map[string]any{"type": "image", "data": pixel, "mimeType": "image/gif"}
}

// shows builds a user's message of a text and an image.
func (a author) shows(fields map[string]any, text string) (item, error) {
	if a.format == "" {
		raw, err := json.Marshal(a.image())
		if err != nil {
			return item{}, err
		}
		return a.own(message.Message{Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: text}, {Kind: message.Image, Raw: raw}}})
	}
	fields["content"] = []any{map[string]any{"type": "text", "text": text}, a.image()}
	if a.format == message.FormatPi {
		fields["timestamp"] = a.now()
	}
	return a.raw(fields, false)
}

// calls builds an assistant message with tool calls.
func (a author) calls(text, mark string, ids []string, extra bool) (item, error) {
	var blocks []any
	var openAI []any
	own := message.Message{Role: message.Assistant}
	if text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": text})
		own.Parts = append(own.Parts, message.Part{Kind: message.Text, Text: text})
	}
	for i, id := range ids {
		args := map[string]any{"path": mark, "extra": extra}
		if i > 0 {
			args["path"] = "README.md"
		}
		encoded, err := json.Marshal(args)
		if err != nil {
			return item{}, err
		}
		blocks = append(blocks, map[string]any{"type": "tool_use", "id": id, "name": "read_file", "input": args})
		openAI = append(openAI, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "read_file", "arguments": string(encoded)}})
		own.Parts = append(own.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "read_file", Args: string(encoded)})
	}
	var it item
	var err error
	switch a.format {
	case "":
		it, err = a.own(own)
	case message.FormatOpenAI:
		fields := map[string]any{"role": "assistant", "content": nil, "tool_calls": openAI}
		if text != "" {
			fields["content"] = text
		}
		it, err = a.raw(fields, false)
	case message.FormatPi:
		for _, b := range blocks {
			if m, ok := b.(map[string]any); ok && m["type"] == "tool_use" {
				m["type"], m["arguments"] = "toolCall", m["input"]
				delete(m, "input")
			}
		}
		it, err = a.raw(map[string]any{"role": "assistant", "content": blocks, "stopReason": "toolUse", "timestamp": a.now()}, false)
	default:
		it, err = a.raw(map[string]any{"role": "assistant", "content": blocks}, false)
	}
	it.calls = ids
	return it, err
}

func (a author) withImage(text string) any {
	if len(text)%5 != 0 || text == "" {
		return text
	}
	return a.blocks(text)
}

func (a author) blocks(text string) []any {
	out := []any{map[string]any{"type": "text", "text": text}}
	if len(text)%5 == 0 && text != "" {
		out = append(out, a.image())
	}
	return out
}

// results builds the messages that answer calls: one for all in Anthropic's format, otherwise one each.
func (a author) results(texts map[string]string, ids []string, failed bool) ([]item, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var out []item
	var blocks []any
	for _, id := range ids {
		var it item
		var err error
		switch a.format {
		case message.FormatAnthropic:
			blocks = append(blocks, map[string]any{"type": "tool_result", "tool_use_id": id, "content": a.withImage(texts[id]), "is_error": failed})
			continue
		case message.FormatOpenAI:
			it, err = a.raw(map[string]any{"role": "tool", "tool_call_id": id, "content": a.withImage(texts[id])}, false)
		case message.FormatPi:
			it, err = a.raw(map[string]any{"role": "toolResult", "toolCallId": id, "toolName": "read_file", "isError": failed,
				"timestamp": a.now(), "content": a.blocks(texts[id])}, false)
		default:
			it, err = a.own(message.Message{Role: message.Tool, Parts: []message.Part{
				{Kind: message.ToolResult, CallID: id, Name: "read_file", Text: texts[id], IsError: failed},
			}})
		}
		if err != nil {
			return nil, err
		}
		it.results = []string{id}
		out = append(out, it)
	}
	if blocks != nil {
		it, err := a.raw(map[string]any{"role": "user", "content": blocks}, false)
		if err != nil {
			return nil, err
		}
		it.results = ids
		out = append(out, it)
	}
	return out, nil
}

// summary builds what a pi host puts in place of compacted history.
func (a author) summary(text string) (item, error) {
	it, err := a.raw(map[string]any{"role": message.CompactionSummary, "summary": text, "timestamp": a.now()}, false)
	it.summary = true
	return it, err
}
