package imports

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// chatMessage is a message of a data export of ChatGPT.
type chatMessage struct {
	ID     string `json:"id"`
	Author struct {
		Role string `json:"role"`
		Name string `json:"name"`
	} `json:"author"`
	Created   json.Number     `json:"create_time"`
	Content   json.RawMessage `json:"content"`
	Recipient string          `json:"recipient"`
}

// chatContent is its content. Which fields it has follows from the type.
type chatContent struct {
	Type         string            `json:"content_type"`
	Parts        []json.RawMessage `json:"parts"`
	Text         json.RawMessage   `json:"text"`
	Result       json.RawMessage   `json:"result"`
	Summary      json.RawMessage   `json:"summary"`
	Content      json.RawMessage   `json:"content"`
	Profile      string            `json:"user_profile"`
	Instructions string            `json:"user_instructions"`
	Thoughts     []struct {
		Summary string `json:"summary"`
		Content string `json:"content"`
	} `json:"thoughts"`
}

// calls are the tool calls that a path saw and that have no result yet.
type calls []call

type call struct{ id, tool string }

// answer returns the id of the newest call of a tool, or of any when that tool was not called.
func (c *calls) answer(tool string) string {
	for i, v := range slices.Backward(*c) {
		if v.tool == tool || strings.HasPrefix(v.tool, tool+".") {
			*c = slices.Delete(*c, i, i+1)
			return v.id
		}
	}
	if n := len(*c); n > 0 {
		last := (*c)[n-1]
		*c = (*c)[:n-1]
		return last.id
	}
	return ""
}

// decodeChatGPT makes a message of one of an export. Its original bytes are kept; since no host reads that format, what hosts are given is
// made of its parts. A message without content has no parts.
func decodeChatGPT(id string, raw []byte, open *calls) (message.Message, error) {
	var c chatMessage
	if err := json.Unmarshal(raw, &c); err != nil {
		return message.Message{}, fmt.Errorf("it is not the object that it should be: %w", err)
	}
	m := message.Message{Raw: slices.Clone(raw), ID: cmp.Or(c.ID, id), Time: seconds(c.Created)}
	parts, err := contentOf(c.Content)
	if err != nil {
		return message.Message{}, err
	}
	switch c.Author.Role {
	case "system":
		m.Role = message.System
	case "user":
		m.Role, m.Name = message.User, c.Author.Name
	case "assistant":
		m.Role = message.Assistant
		if c.Recipient != "" && c.Recipient != "all" {
			parts = []message.Part{callOf(m.ID, c.Recipient, parts)}
			*open = append(*open, call{m.ID, c.Recipient})
		}
	case "tool":
		m.Role = message.Tool
		if len(parts) == 0 {
			return m, nil
		}
		parts = resultOf(open.answer(c.Author.Name), c.Author.Name, parts)
	default:
		return message.Message{}, fmt.Errorf("its role is %.40q, not system, user, assistant or tool", c.Author.Role)
	}
	m.Parts = parts
	return m, nil
}

// callOf makes a tool call of what an assistant said to a tool.
func callOf(id, tool string, parts []message.Part) message.Part {
	args := joined(parts)
	if !json.Valid([]byte(args)) || args == "" {
		if b, err := objectOf(field{"input", args}); err == nil {
			args = string(b)
		}
	}
	return message.Part{Kind: message.ToolCall, CallID: id, Name: tool, Args: args}
}

// resultOf makes a tool's answer: its text, then what is no text.
func resultOf(id, tool string, parts []message.Part) []message.Part {
	out := []message.Part{{Kind: message.ToolResult, CallID: id, Name: tool, Text: joined(parts)}}
	for _, p := range parts {
		if p.Kind == message.Image || p.Kind == message.Other {
			out = append(out, p)
		}
	}
	return out
}

func joined(parts []message.Part) string {
	var texts []string
	for _, p := range parts {
		if p.Kind == message.Text || p.Kind == message.Thinking {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// contentOf takes content apart. What is of an unknown kind is kept as it is, beside the texts in it.
func contentOf(raw json.RawMessage) ([]message.Part, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var c chatContent
	if raw[0] == '"' {
		var text string
		err := json.Unmarshal(raw, &text)
		return texts(message.Text, text), err
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("its content is not what it should be: %w", err)
	}
	var out []message.Part
	for _, p := range c.Parts {
		part, err := partOf(p)
		if err != nil {
			return nil, err
		}
		out = append(out, part...)
	}
	for _, t := range c.Thoughts {
		out = append(out, texts(message.Thinking, strings.TrimSpace(t.Summary+"\n"+t.Content))...)
	}
	for _, t := range []json.RawMessage{c.Text, c.Result, c.Summary, c.Content} {
		var text string
		if len(t) > 0 && t[0] == '"' && json.Unmarshal(t, &text) == nil {
			out = append(out, texts(message.Text, text)...)
		}
	}
	out = append(out, texts(message.Text, c.Profile, c.Instructions)...)
	if len(out) == 0 && unknownContent(c) {
		out = append(out, message.Part{Kind: message.Other, Raw: slices.Clone(raw)})
	}
	return out, nil
}

// unknownContent reports whether content that has no text may have something else.
func unknownContent(c chatContent) bool {
	switch c.Type {
	case "text", "code", "execution_output", "multimodal_text", "thoughts", "reasoning_recap", "user_editable_context", "":
		return false
	}
	return true
}

func texts(kind message.Kind, values ...string) []message.Part {
	var out []message.Part
	for _, v := range values {
		if v != "" {
			out = append(out, message.Part{Kind: kind, Text: v})
		}
	}
	return out
}

// partOf reads one of the parts: a text, or an object that points at an image, a file or a recording.
func partOf(raw json.RawMessage) ([]message.Part, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case raw[0] == '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return texts(message.Text, text), err
	case raw[0] != '{':
		return nil, errors.New("a part of its content is neither text nor object")
	}
	var o struct {
		Type string `json:"content_type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("a part of its content is not what it should be: %w", err)
	}
	p := message.Part{Kind: message.Other, Text: o.Text, Raw: slices.Clone(raw)}
	if strings.HasPrefix(o.Type, "image") {
		p.Kind = message.Image
	}
	if o.Type == "audio_transcription" {
		return texts(message.Text, o.Text), nil
	}
	return []message.Part{p}, nil
}
