// Package message is the message model every part of the framework shares: what a host calls a message, taken
// apart into role and parts, with the host's original bytes kept beside it.
//
// A decoder (see Codec) makes messages out of a host's bytes; Encode gives the very same bytes back for every
// message that nobody changed, unknown fields and blocks included. A message that was changed (clipped, merged,
// repaired) is rebuilt from its parts around what is left of the original.
//
// Start with Lookup("openai") and its Decode; New builds messages that never had a host.
package message

import (
	"strings"
	"time"
)

// Role says who speaks. Hosts have more names ("toolResult", "developer", "function"); codecs map them to these
// four and restore the host's own name when they encode.
type Role string

// The four roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	// Tool carries tool results, and nothing but results and the text that came with them.
	Tool Role = "tool"
)

// Valid reports whether r is one of the four roles.
func (r Role) Valid() bool {
	return r == System || r == User || r == Assistant || r == Tool
}

// Kind says what a Part is.
type Kind string

// The kinds of parts. A block that a codec does not know is kept as Other, bytes and all.
const (
	Text       Kind = "text"
	Thinking   Kind = "thinking"
	ToolCall   Kind = "tool_call"
	ToolResult Kind = "tool_result"
	Image      Kind = "image"
	Other      Kind = "other"
)

// Part is one block of a message. Which fields mean something follows from Kind:
//
//	Text, Thinking  Text (Thinking also Signature)
//	ToolCall        CallID, Name, Args
//	ToolResult      CallID, Name, Text, IsError
//	Image, Other    Text is a description when there is one; the content is in Raw
type Part struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text,omitempty"`
	// CallID links a tool call with its result. Hosts may reuse an id in a later turn.
	CallID string `json:"callId,omitempty"`
	// Name is the tool's name.
	Name string `json:"name,omitempty"`
	// Args holds the arguments of a tool call as the JSON text the host had. It may be invalid JSON where the
	// model produced such.
	Args    string `json:"args,omitempty"`
	IsError bool   `json:"isError,omitempty"`
	// Signature authenticates a thinking block towards its provider.
	Signature string `json:"signature,omitempty"`
	// Raw is the host's block, verbatim. Whoever changes one of the fields above sets it to nil; Message.WithParts
	// does not do that for them.
	Raw []byte `json:"raw,omitempty"`
}

// Message is one message of a conversation. Treat it as a value: whoever wants another content builds one with WithParts. Copies share its slices, so nobody writes
// to those of a message that was handed on as a copy. A store is where that ends: it keeps slices of its own and returns slices that belong to the caller, whatever
// either side does with theirs (core.Store).
type Message struct {
	// Role is always valid in a decoded message.
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
	// Time is when the host says the message was made, in UTC; zero when it says nothing.
	Time time.Time `json:"time,omitzero"`
	// ID is the host's id of the message or of its transcript entry; empty when it gives none.
	ID string `json:"id,omitempty"`
	// Key is the host's idempotency key; empty when it gives none.
	Key string `json:"key,omitempty"`
	// Name is the speaker's name where the host has one (OpenAI "name" of a user message).
	Name string `json:"name,omitempty"`
	// Stop is the host's stop reason of an assistant message ("stop", "toolUse", "error", "aborted", ...).
	Stop string `json:"stop,omitempty"`
	// Type is the host's own name for a role that is none of the four, such as "compactionSummary",
	// "branchSummary" or "custom"; empty for ordinary messages.
	Type string `json:"type,omitempty"`
	// Usage is what the provider reported for the call that produced this message; zero when nothing was reported.
	Usage Usage `json:"usage,omitzero"`
	// Format names the codec that decoded the message; empty for a message made by New.
	Format string `json:"format,omitempty"`
	// Raw is the message as the host wrote it, without a trailing newline; nil for a message made by New.
	Raw []byte `json:"raw,omitempty"`
	// Edited says that Parts no longer say what Raw says: Encode then rebuilds the content and keeps the rest of
	// Raw's fields.
	Edited bool `json:"edited,omitempty"`
	// Entry is the id of the stored entry that an assembled message shows; it is neither encoded nor stored.
	Entry string `json:"-"`
}

// Usage is a provider's token count of one model call.
type Usage struct {
	Input      int `json:"input,omitempty"`
	Output     int `json:"output,omitempty"`
	CacheRead  int `json:"cacheRead,omitempty"`
	CacheWrite int `json:"cacheWrite,omitempty"`
}

// CompactionSummary is the Type of a message that stands for history the host itself compacted away.
const CompactionSummary = "compactionSummary"

// Filler is the Type of a message that a host made itself to please a provider, or put in the place of one: a first line in front of a history that begins
// with an answer, a result for a call that has none. Nobody said it. Whoever knows a host's fillers sets it before an engine sees the message. No host calls a role so.
const Filler = "contextengine-filler"

// New returns a message with one text part, as the framework itself makes them.
func New(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Kind: Text, Text: text}}}
}

// WithParts returns m with other parts, marked as edited when m has original bytes.
func (m Message) WithParts(parts []Part) Message {
	m.Parts = parts
	m.Edited = m.Raw != nil
	return m
}

// Clone returns a message that shares with m nothing that can be written to. All raw bytes are in one new buffer: two allocations, however many parts.
func (m Message) Clone() Message {
	list := [...]Message{m}
	Own(list[:])
	return list[0]
}

// Own gives messages parts and raw bytes of their own, in place: afterwards they share nothing that can be written to with what they were copied from, or with each other. Two
// allocations, however many they are.
func Own(list []Message) {
	parts, raw := 0, 0
	for i := range list {
		parts, raw = parts+len(list[i].Parts), raw+len(list[i].Raw)
		for p := range list[i].Parts {
			raw += len(list[i].Parts[p].Raw)
		}
	}
	all, buf := make([]Part, 0, parts), make([]byte, 0, raw)
	take := func(raw []byte) []byte {
		if raw == nil {
			return nil
		}
		from := len(buf)
		buf = append(buf, raw...)
		// The capacity ends with the bytes, so that appending to one does not write into the next.
		return buf[from:len(buf):len(buf)]
	}
	for i := range list {
		m := &list[i]
		m.Raw = take(m.Raw)
		if m.Parts == nil {
			continue
		}
		from := len(all)
		all = append(all, m.Parts...)
		m.Parts = all[from:len(all):len(all)]
		for p := range m.Parts {
			m.Parts[p].Raw = take(m.Parts[p].Raw)
		}
	}
}

// Text returns the text of m: text parts and tool results, joined by newlines. Thinking is not text.
func (m Message) Text() string {
	switch len(m.Parts) {
	case 0:
		return ""
	case 1:
		if p := m.Parts[0]; p.Kind == Text || p.Kind == ToolResult {
			return p.Text
		}
		return ""
	}
	var b strings.Builder
	for _, p := range m.Parts {
		if (p.Kind != Text && p.Kind != ToolResult) || p.Text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// Calls returns the tool calls of m in order.
func (m Message) Calls() []Part { return m.ofKind(ToolCall) }

// Results returns the tool results of m in order.
func (m Message) Results() []Part { return m.ofKind(ToolResult) }

// HasCalls reports whether m calls a tool.
func (m Message) HasCalls() bool { return has(m.Parts, ToolCall) }

// HasResults reports whether m carries a tool result.
func (m Message) HasResults() bool { return has(m.Parts, ToolResult) }

func has(parts []Part, k Kind) bool {
	for i := range parts {
		if parts[i].Kind == k {
			return true
		}
	}
	return false
}

func (m Message) ofKind(k Kind) []Part {
	var out []Part
	for _, p := range m.Parts {
		if p.Kind == k {
			out = append(out, p)
		}
	}
	return out
}
