package rpc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// formatOf returns the codec of a call's messages.
func formatOf(field, own, connection string) (message.Codec, error) {
	name := cmp.Or(own, connection)
	if name == "" {
		return nil, badField(field, "name the messages' format here or in initialize ("+strings.Join(message.Formats(), ", ")+")")
	}
	c, err := message.Lookup(name)
	if err != nil {
		return nil, badField(field, "must be one of "+strings.Join(message.Formats(), ", "))
	}
	return c, nil
}

// decodeMessages reads messages; field names the array in errors. One that is missing or null is no empty one: it would say that there are no messages any more.
func decodeMessages(c message.Codec, field string, raw []json.RawMessage) ([]message.Message, error) {
	if raw == nil {
		return nil, badField(field, "is required: give an array, an empty one where there are no messages")
	}
	out, fillers := make([]message.Message, len(raw)), fillersOf(c.Name())
	for i := range raw {
		m, err := decodeMessage(c, fmt.Sprintf("%s[%d]", field, i), raw[i], fillers)
		if err != nil {
			return nil, err
		}
		out[i] = m
	}
	return out, nil
}

func decodeMessage(c message.Codec, field string, raw json.RawMessage, fillers []filler) (message.Message, error) {
	m, err := c.Decode(raw)
	if err != nil {
		return message.Message{}, badField(field, err.Error())
	}
	return marked(m, fillers), nil
}

// encoded are the messages of a result in a host's format. A message of the engine's may need several of the host's.
type encoded struct {
	raw []json.RawMessage
	// at is where each of the engine's messages begins in raw, and behind the last the length of raw.
	at []int
	// whole says that each message is one.
	whole bool
}

// encodeMessages writes an engine's messages. Those that came in this format and were not changed come out byte for byte.
func encodeMessages(c message.Codec, messages []message.Message) (encoded, error) {
	e := encoded{at: make([]int, 0, len(messages)+1), whole: true, raw: make([]json.RawMessage, 0, len(messages))}
	for i := range messages {
		e.at = append(e.at, len(e.raw))
		if m := &messages[i]; m.Format == c.Name() && m.Raw != nil && !m.Edited { // as its codec would do, without a copy
			e.raw = append(e.raw, oneLine(m.Raw))
			continue
		}
		parts := message.Split(messages[i], c.Name())
		e.whole = e.whole && len(parts) == 1
		for _, m := range parts {
			raw, err := c.Encode(m)
			if err != nil {
				return encoded{}, fmt.Errorf("messages[%d]: %w", i, err)
			}
			e.raw = append(e.raw, oneLine(raw))
		}
	}
	e.at = append(e.at, len(e.raw))
	return e, nil
}

// assembled returns the result in the host's terms; messages and items are left to the caller.
func (e encoded) assembled(res core.AssembleResult, explain bool) AssembleResult {
	out := AssembleResult{
		EstimatedTokens: res.EstimatedTokens, SystemPromptAddition: res.SystemPromptAddition, PromptAuthority: res.PromptAuthority,
		Epoch: res.Epoch, Stepped: res.Stepped, CompactionDue: res.CompactionDue, Warnings: res.Warnings, Degraded: res.Degraded,
	}
	if n := res.RecallLen; n > 0 && res.RecallAt >= 0 && res.RecallAt+n < len(e.at) {
		out.RecallAt = e.at[res.RecallAt]
		out.RecallLen = e.at[res.RecallAt+n] - out.RecallAt
	}
	if explain {
		for _, ch := range res.Choices {
			if ch.Message >= 0 && ch.Message < len(e.at) {
				ch.Message = e.at[ch.Message]
			}
			out.Choices = append(out.Choices, ch)
		}
	}
	return out
}
