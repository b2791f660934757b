package conformance

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// wireMessage is an emitted message, read again from its bytes without the framework's decoders.
type wireMessage struct {
	Raw  string
	Role string
	// Texts are all texts, results included, in order.
	Texts []string
	// Calls and Results are call ids in order.
	Calls   []string
	Results []string
	// Counted is everything that costs tokens.
	Counted []string
	// Images is the number of images.
	Images int
}

// text returns all that is said.
func (w wireMessage) text() string { return strings.Join(w.Texts, "\n") }

// readWire encodes a message and reads the bytes as plain JSON.
func readWire(m message.Message, format string) (wireMessage, error) {
	if format == "" {
		format = message.FormatOpenAI
	}
	raw, err := message.Encode(m, format)
	if err != nil {
		return wireMessage{}, fmt.Errorf("encode: %w", err)
	}
	w := wireMessage{Raw: string(raw)}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil {
		return w, fmt.Errorf("emitted bytes are no JSON object: %w", err)
	}
	w.Role = str(o["role"])
	w.count(w.Role)
	if id := str(o["tool_call_id"]) + str(o["toolCallId"]); id != "" {
		w.Results = append(w.Results, id)
		w.count(str(o["toolName"]))
		w.count(str(o["name"]))
	}
	w.content(o["content"])
	for _, key := range []string{"summary", "refusal", "command", "output"} {
		w.say(str(o[key]))
	}
	var calls []map[string]json.RawMessage
	_ = json.Unmarshal(o["tool_calls"], &calls)
	for _, c := range calls {
		var f map[string]json.RawMessage
		_ = json.Unmarshal(c["function"], &f)
		w.call(str(c["id"]), str(f["name"]), f["arguments"])
	}
	return w, nil
}

func (w *wireMessage) count(s string) {
	if s != "" {
		w.Counted = append(w.Counted, s)
	}
}

func (w *wireMessage) say(s string) {
	if s != "" {
		w.Texts = append(w.Texts, s)
		w.count(s)
	}
}

func (w *wireMessage) call(id, name string, args json.RawMessage) {
	w.Calls = append(w.Calls, id)
	w.count(name)
	text := str(args)
	if text == "" {
		text = string(args)
	}
	w.count(text)
	// Marks in arguments locate the call.
	w.Texts = append(w.Texts, text)
}

// content reads a string or a list of blocks, nested ones included.
func (w *wireMessage) content(raw json.RawMessage) {
	if s := str(raw); s != "" {
		w.say(s)
		return
	}
	var blocks []map[string]json.RawMessage
	if json.Unmarshal(raw, &blocks) != nil {
		return
	}
	for _, b := range blocks {
		switch str(b["type"]) {
		case "text":
			w.say(str(b["text"]))
		case "image", "image_url":
			w.Images++
		case "tool_use":
			w.call(str(b["id"]), str(b["name"]), b["input"])
		case "toolCall":
			w.call(str(b["id"]), str(b["name"]), b["arguments"])
		case "tool_result":
			w.Results = append(w.Results, str(b["tool_use_id"]))
			w.content(b["content"])
		}
	}
}

func str(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// recount returns what a prompt costs by the letter of the promise: role, text, tool name, arguments and results, 4 for each message, and
// the addition.
func recount(wire []wireMessage, addition string, count core.TokenCounter) int {
	n := 0
	for _, w := range wire {
		n += 4 + imageTokens*w.Images
		for _, s := range w.Counted {
			n += count(s)
		}
	}
	if addition != "" {
		n += count(addition)
	}
	return n
}

// imageTokens is what the engine reckons with for an image.
const imageTokens = 1600
