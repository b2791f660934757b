package imports

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"
)

// encode writes the message as the host did. lossless-claw keeps each block as it was; the shell around them is made anew.
func (r *row) encode(parts []storedPart, at time.Time) ([]byte, error) {
	if !utf8.ValidString(r.content) {
		return nil, errors.New("its content is not valid UTF-8")
	}
	var first partMeta
	if len(parts) > 0 {
		first = parts[0].meta
	}
	role := r.role
	if role == "tool" {
		role = "toolResult"
	}
	var stamp []field
	if !at.IsZero() {
		stamp = []field{{"timestamp", at.UnixMilli()}}
	}
	if first.Command != "" {
		return objectOf(append([]field{{"role", "bashExecution"}, {"command", first.Command}, {"output", cmp.Or(parts[0].text.String, r.content)}}, stamp...)...)
	}
	content, err := r.contentOf(role, parts)
	if err != nil {
		return nil, err
	}
	fields := []field{{"role", role}, {"content", content}}
	if role == "toolResult" {
		fields = append(fields, resultFields(parts)...)
	}
	if first.Provider != "" {
		fields = append(fields, field{"api", first.API}, field{"provider", first.Provider}, field{"model", first.Model})
	}
	if first.Field != "" && first.Reasoning != "" {
		fields = append(fields, field{first.Field, first.Reasoning})
	}
	return objectOf(append(fields, stamp...)...)
}

// resultFields says which call a result answers.
func resultFields(parts []storedPart) []field {
	var id, name string
	failed := false
	for _, p := range parts {
		id = cmp.Or(id, p.callID.String, p.meta.CallID)
		name = cmp.Or(name, p.tool.String, p.meta.Tool)
		failed = failed || p.meta.IsError != nil && *p.meta.IsError
	}
	return []field{{"toolCallId", id}, {"toolName", name}, {"isError", failed}}
}

// contentOf returns a string where the host had one, and blocks otherwise.
func (r *row) contentOf(role string, parts []storedPart) (any, error) {
	var blocks []json.RawMessage
	n := 0
	for _, p := range parts {
		if p.meta.Only {
			continue
		}
		n++
		b, err := p.block(role)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	if n == 0 || n == 1 && parts[0].kind == "text" && len(parts[0].meta.Raw) == 0 {
		text := r.content
		if n == 1 && parts[0].text.Valid {
			text = parts[0].text.String
		}
		if role == "user" || role == "system" {
			return text, nil
		}
		b, err := textBlock(text)
		return arrayOf(b), err
	}
	return arrayOf(blocks...), nil
}

// block returns the block as the host wrote it, or, where that is not kept or is of another host, one made of the columns.
func (p *storedPart) block(role string) (json.RawMessage, error) {
	var raw struct {
		Type string `json:"type"`
	}
	whole := len(p.meta.Raw) > 0 && p.meta.Raw[0] == '{' && json.Unmarshal(p.meta.Raw, &raw) == nil
	switch kind := cmp.Or(raw.Type, p.meta.RawType); kind {
	case "tool_use", "tool-use", "toolUse", "function_call", "functionCall":
		return p.call()
	case "tool_result", "toolResult", "function_call_output":
		return textBlock(p.result())
	}
	switch {
	case whole && raw.Type != "":
		return p.meta.Raw, nil
	case p.kind == "reasoning":
		return objectOf(field{"type", "thinking"}, field{"thinking", p.text.String})
	case p.kind == "tool" && role == "assistant":
		return p.call()
	case p.kind == "tool":
		return textBlock(p.result())
	}
	return textBlock(p.text.String)
}

// call makes the block of a tool call.
func (p *storedPart) call() (json.RawMessage, error) {
	var raw struct {
		ID     string          `json:"id"`
		CallID string          `json:"call_id"`
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"arguments"`
		Input  json.RawMessage `json:"input"`
	}
	if len(p.meta.Raw) > 0 && json.Unmarshal(p.meta.Raw, &raw) != nil {
		raw.ID, raw.Name = "", "" // the columns have the same
	}
	args := json.RawMessage(p.input.String)
	for _, other := range []json.RawMessage{raw.Args, raw.Input, json.RawMessage("{}")} {
		if len(args) == 0 || !json.Valid(args) {
			args = other
		}
	}
	var text string
	if json.Unmarshal(args, &text) == nil && json.Valid([]byte(text)) {
		args = json.RawMessage(text) // some hosts write the arguments as a string
	}
	return objectOf(field{"type", "toolCall"}, field{"id", cmp.Or(p.callID.String, raw.CallID, raw.ID)},
		field{"name", cmp.Or(p.tool.String, raw.Name)}, field{"arguments", args})
}

// result returns what a tool answered: a string is kept as JSON in its column.
func (p *storedPart) result() string {
	var text string
	if p.output.String != "" && json.Unmarshal([]byte(p.output.String), &text) == nil {
		return text
	}
	return cmp.Or(p.output.String, p.text.String)
}

func textBlock(text string) (json.RawMessage, error) {
	return objectOf(field{"type", "text"}, field{"text", text})
}
