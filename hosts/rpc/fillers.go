package rpc

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// filler is a kind of line that a runtime puts into its transcripts itself. Nobody said it: it is not stored, and a transcript is not matched by it.
type filler struct {
	role message.Role
	// text is all that the message says. failed wants a tool's result to be marked as an error.
	text   string
	failed bool
	// common texts may come from a tool as well. The runtime names its own results in their details, and leaves these out where it shows its history: a result
	// with details that do not say so is the tool's.
	common bool
	// field is a field of the message that is true; text is then not looked at.
	field string
	// why says what the runtime makes it for.
	why string
}

// fillersOf lists them by the format that the runtime's messages have. Texts that a runtime puts in front of something that was said, such as
// "[Inter-session message]", are none: what was said is behind them.
func fillersOf(format string) []filler {
	if format != message.FormatPi {
		return nil
	}
	return []filler{
		{role: message.User, text: "(session bootstrap)", why: "in front of a history that begins with an answer, which some providers refuse; its time is always now"},
		{role: message.User, field: "runtimeContextCarrier", why: "carries what the runtime itself tells the model, and is made anew for every call"},
		{role: message.User, text: "[empty content omitted]", why: "in the place of a message without content, which some providers refuse"},
		{role: message.User, text: "[tool results omitted]", why: "in the place of results whose calls are gone"},
		{role: message.Assistant, text: "[tool calls omitted]", why: "in the place of calls that got no result"},
		{role: message.Assistant, text: "[assistant reasoning omitted]", why: "in the place of a message that was nothing but reasoning without a valid signature"},
		{role: message.Assistant, text: "[assistant turn failed before producing content]", why: "in the place of an answer that never came"},
		{
			role: message.Tool, text: "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair.", failed: true,
			why: "a result for a call that has none: failed turns, and histories that were cut",
		},
		{role: message.Tool, text: "aborted", failed: true, common: true, why: "the same for the OpenAI Responses protocol"},
		{role: message.Tool, text: "No result provided", failed: true, common: true, why: "the same on the way to other providers"},
		{role: message.Tool, text: "[empty content omitted]", why: "in the place of a result without content"},
		{role: message.Tool, text: "[Old tool result content cleared]", why: "in the place of a result that was pruned from what is sent, not from what happened"},
		{role: message.Tool, text: "[image removed during context pruning]", why: "the same for a result that was an image"},
	}
}

// marked sets the type of a message that is one of the fillers.
func marked(m message.Message, fillers []filler) message.Message {
	if m.Type != "" {
		return m
	}
	for i := range fillers {
		if fillers[i].is(&m) {
			m.Type = message.Filler
			break
		}
	}
	return m
}

func (f *filler) is(m *message.Message) bool {
	if m.Role != f.role {
		return false
	}
	if f.field != "" {
		return hasTrue(m.Raw, f.field)
	}
	if len(m.Parts) != 1 || m.Parts[0].Kind != message.Text && m.Parts[0].Kind != message.ToolResult {
		return false
	}
	p := &m.Parts[0]
	return strings.TrimSpace(p.Text) == f.text && (!f.failed || p.IsError) && (!f.common || !ofATool(m.Raw))
}

// missingResult is the detail by which the runtime knows results that it made itself.
const missingResult = "openclawSyntheticMissingToolResult"

// ofATool reports whether a result has details, and they do not say that the runtime made it.
func ofATool(raw []byte) bool {
	details := fieldOf(raw, "details")
	return details != nil && string(details) != "null" && !hasTrue(details, missingResult)
}

// hasTrue reports whether a field of a JSON object is true.
func hasTrue(raw []byte, field string) bool { return string(fieldOf(raw, field)) == "true" }

// fieldOf returns a field of a JSON object, nil when there is none.
func fieldOf(raw []byte, field string) json.RawMessage {
	if !bytes.Contains(raw, []byte(field)) {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields[field]
}
