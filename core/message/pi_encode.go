package message

import (
	"strconv"
	"strings"
)

// Encode writes an AgentMessage. System is written as role "system", which the host takes beside the messages:
// whoever hands messages to it lifts that one out. A message with several tool results, or with text beside a
// result, is an error wrapping ErrMalformed: Split makes several of it.
func (c pi) Encode(m Message) ([]byte, error) {
	return encode(c, m, func(d *draft, m Message) error {
		switch {
		case m.Role == Tool:
			return d.piResult(m)
		case m.Type == CompactionSummary || m.Type == branchSummary:
			return d.piSummary(m)
		case m.Type == bashExecution && !d.fresh():
			return d.piExecution(m.Text())
		}
		return d.piMessage(m)
	})
}

// piExecution writes what an execution says now. Where that does not begin with the command any more it is the output of none, and nothing is said twice.
func (d *draft) piExecution(text string) error {
	output, ok := strings.CutPrefix(text, bashPrompt(d.base))
	if !ok {
		d.setString("command", "")
	}
	d.setString("output", output)
	return nil
}

func (d *draft) piMessage(m Message) error {
	var content body
	for _, p := range m.Parts {
		raw := d.verbatim(p)
		switch {
		case raw != nil:
			content.block(raw)
		case p.Kind == Text:
			content.text(p.Text)
		case p.Kind == Thinking:
			if m.Role == Assistant {
				content.block(buildThinking(p, "thinkingSignature"))
			}
		case p.Kind == ToolCall && (m.Role == Assistant || d.own):
			content.block(d.piCall(p))
		case p.Kind == ToolCall || p.Kind == ToolResult:
			return errPlace(p, m.Role)
		default:
			if img := piImage(p); img != nil && m.Role == User {
				content.block(img)
			} else if s, ok := standIn(p, m.Role); ok {
				content.text(s)
			}
		}
	}
	// The host iterates over blocks wherever the original was no string.
	content.rich = content.rich || kindOf(d.base.get("content")) != '"'
	if d.fresh() {
		d.set("role", quote(string(m.Role)))
	}
	d.setContent(content)
	if d.fresh() {
		if m.Role == Assistant {
			d.piAnswer(m)
		}
		d.stamp(m)
	}
	return nil
}

// piAnswer adds what the host requires of an assistant message.
func (d *draft) piAnswer(m Message) {
	unknown := []byte(`"unknown"`)
	d.set("api", unknown)
	d.set("provider", unknown)
	d.set("model", unknown)
	count := func(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }
	total := m.Usage.Input + m.Usage.Output + m.Usage.CacheRead + m.Usage.CacheWrite
	d.set("usage", object{}.with(
		change{"input", count(m.Usage.Input)},
		change{"output", count(m.Usage.Output)},
		change{"cacheRead", count(m.Usage.CacheRead)},
		change{"cacheWrite", count(m.Usage.CacheWrite)},
		change{"totalTokens", count(total)},
		change{"cost", []byte(`{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}`)},
	))
	d.set("stopReason", quote(piStop(m)))
}

// piStop translates a stop reason. Hosts drop answers that stopped with an error, so that one must survive.
func piStop(m Message) string {
	switch m.Stop {
	case "stop", "toolUse", "length", "error", "aborted":
		return m.Stop
	case "max_tokens":
		return "length"
	}
	if m.HasCalls() {
		return "toolUse"
	}
	return "stop"
}

// stamp ends a message that was built afresh.
func (d *draft) stamp(m Message) {
	d.set("timestamp", milliseconds(m.Time))
	if m.Key != "" {
		d.set("idempotencyKey", quote(m.Key))
	}
}

func (d *draft) piCall(p Part) []byte {
	changes := []change{
		{"type", []byte(`"toolCall"`)},
		{"id", quote(d.callID(p))},
		{"name", quote(p.Name)},
		{"arguments", argsObject(p.Args)},
		{"partialJson", nil}, // what the arguments were parsed from
	}
	return d.block(ToolCall, p.CallID).with(changes...)
}

// piImage writes an image block, or nil if pi cannot carry the part as one.
func piImage(p Part) []byte {
	img, ok := pictureOf(p)
	if !ok {
		return nil
	}
	return img.pi()
}

func (d *draft) piResult(m Message) error {
	result, others, err := d.oneResult(m, func(p Part) []byte {
		if raw := d.verbatim(p); raw != nil {
			return raw
		}
		if img := piImage(p); img != nil {
			return img
		}
		return buildText(placeholder(p))
	})
	if err != nil {
		return err
	}
	if d.fresh() {
		d.set("role", []byte(`"toolResult"`))
	}
	d.setString("toolCallId", d.callID(result))
	if result.Name != "" || d.fresh() {
		d.setString("toolName", result.Name)
	}
	d.setResult(result.Text, others, true)
	if d.fresh() || result.IsError != d.base.flag("isError") {
		d.set("isError", boolean(result.IsError))
	}
	if d.fresh() {
		d.stamp(m)
	}
	return nil
}

func (d *draft) piSummary(m Message) error {
	if d.fresh() {
		d.set("role", quote(m.Type))
	}
	d.setString("summary", m.Text())
	if d.fresh() {
		if m.Type == CompactionSummary {
			d.set("tokensBefore", []byte("0"))
		} else {
			d.set("fromId", []byte(`""`))
		}
		d.stamp(m)
	}
	return nil
}
