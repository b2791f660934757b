package conformance

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// entrySpec describes a generated entry.
type entrySpec struct {
	// Who selects the session: 0 and 1 are sessions of one agent, 2 is a session of another agent with the name of session 0.
	Who  int
	Text textKind
	Size int
	// Shape selects role, parts, type and metadata.
	Shape int
}

func (s entrySpec) String() string {
	return fmt.Sprintf("who=%d text=%s size=%d shape=%d", s.Who, s.Text, s.Size, s.Shape)
}

func genEntry(r *rand.Rand) entrySpec {
	size := r.Intn(12)
	if r.Intn(60) == 0 {
		size = 20000
	}
	return entrySpec{Who: r.Intn(3), Text: textKind(r.Intn(int(textKinds))), Size: size, Shape: r.Intn(24)}
}

// sessionOf returns the session that a Who stands for.
func sessionOf(who int) core.SessionID {
	switch who {
	case 1:
		return core.SessionID{Agent: "agent-a", Session: "other"}
	case 2:
		return core.SessionID{Agent: "agent-b", Session: "main"}
	}
	return core.SessionID{Agent: "agent-a", Session: "main"}
}

func (s entrySpec) session() core.SessionID { return sessionOf(s.Who) }

// oddBytes cannot be stored as text by accident.
var oddBytes = []byte("{\"role\":\"user\",\x00\xff\xfe\xc3\x28\xed\xa0\x80 \r\n\"}\\u0000")

// epoch is the time of the first generated entry.
var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// fullShape is the shape of an entry with every field in use.
const fullShape = 24

// entry builds entry n of a store, at position seq of its session.
func (s entrySpec) entry(n int, seq int64) core.Entry {
	id := s.session()
	text := makeText(markOf(s.Who, n), s.Text, s.Size, n, nil)
	if s.Shape == fullShape {
		e := fullEntry(n, id)
		e.Seq, e.Message.Parts[0].Text = seq, text
		return e
	}
	m := message.New(message.User, text)
	switch s.Shape % 6 {
	case 1:
		m.Role = message.Assistant
		m.Parts = append(m.Parts, message.Part{Kind: message.ToolCall, CallID: "call/1", Name: "read", Args: `{"path": "a\u0000b",  "n":1e3}`})
		m.Stop, m.Usage = "toolUse", message.Usage{Input: 5, CacheRead: 2}
	case 2:
		m.Role = message.Tool
		m.Parts = []message.Part{{Kind: message.ToolResult, CallID: "call/1", Name: "read", Text: text, IsError: true}}
	case 3:
		m.Format, m.Raw, m.Edited = message.FormatPi, bytes.Clone(oddBytes), s.Shape%2 == 0
		m.Parts = append(m.Parts, message.Part{Kind: message.Other, Raw: append([]byte{0, 0xff}, byte(n))})
	case 4:
		m.Role = message.Assistant
		m.Parts = append(m.Parts, message.Part{Kind: message.Thinking, Text: "because", Signature: "c2ln"})
		m.Time, m.ID, m.Key, m.Name = epoch, "host-1", "host-key", "kim"
	case 5:
		m.Type, m.Format, m.Raw = message.CompactionSummary, message.FormatPi, []byte{}
		m.Raw = []byte("{}")
	}
	e := core.Entry{
		ID: fmt.Sprintf("E-%d_%d", s.Who, n), Agent: id.Agent, Session: id.Session, Seq: seq, Turn: seq / 3, Role: m.Role,
		Type: core.TypeMessage, Time: epoch.Add(time.Duration(n) * 1500 * time.Millisecond), Tokens: 4 + len(text)/4,
		Key: fmt.Sprintf("key:%d", n), Fingerprint: message.Fingerprint(m), Message: m,
	}
	if s.Shape%5 == 1 {
		e.Meta = map[string]string{"turn": "3", "source": "a \"quoted\" 'value'", "uni": "界", "empty": ""}
	}
	if s.Shape == 23 {
		e.Type = core.TypeHeartbeat
	}
	return e
}

// sameEntries compares lists of entries and describes the first difference.
func sameEntries(got, want []core.Entry) string {
	for i := range min(len(got), len(want)) {
		if d := sameEntry(got[i], want[i]); d != "" {
			return fmt.Sprintf("entry %d: %s", i, d)
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("got %d entries %v, want %d %v", len(got), idsOf(got), len(want), idsOf(want))
	}
	return ""
}

func sameEntry(got, want core.Entry) string {
	if d := differs(got, want); d != "" {
		return fmt.Sprintf("of entry %q%s", want.ID, d)
	}
	// The same moment on another clock has another day, and another text.
	for what, at := range map[string][2]time.Time{"Time": {got.Time, want.Time}, "Message.Time": {got.Message.Time, want.Message.Time}} {
		if elsewhere(at[0]) && !elsewhere(at[1]) {
			return fmt.Sprintf("of entry %q.%s is %v, want it in UTC", want.ID, what, at[0])
		}
	}
	return ""
}

// elsewhere reports whether a time is told by a clock that is not that of UTC.
func elsewhere(t time.Time) bool {
	_, offset := t.Zone()
	return offset != 0
}

func idsOf(entries []core.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.ID
	}
	return out
}

// sameIDs compares ids and describes the first difference.
func sameIDs(got, want []string) string {
	if slices.Equal(got, want) {
		return ""
	}
	const shown = 12
	return fmt.Sprintf("got %d ids %q, want %d %q", len(got), got[:min(len(got), shown)], len(want), want[:min(len(want), shown)])
}

// cloneEntries copies as deep as a store could reach.
func cloneEntries(in []core.Entry) []core.Entry {
	out := slices.Clone(in)
	for i := range out {
		out[i].Meta = maps.Clone(out[i].Meta)
		out[i].Message.Raw = bytes.Clone(out[i].Message.Raw)
		out[i].Message.Parts = slices.Clone(out[i].Message.Parts)
		for j := range out[i].Message.Parts {
			out[i].Message.Parts[j].Raw = bytes.Clone(out[i].Message.Parts[j].Raw)
		}
	}
	return out
}

// fullEntry is an entry with every field in use.
func fullEntry(n int, id core.SessionID) core.Entry {
	var e core.Entry
	filled(&e)
	p := plainEntry(n, id, int64(n))
	e.ID, e.Agent, e.Session, e.Seq, e.Key, e.Type, e.Role = p.ID, p.Agent, p.Session, p.Seq, p.Key, core.TypeMessage, message.Assistant
	e.Time = epoch.Add(time.Duration(n) * time.Second)
	e.Message.Role, e.Message.Format, e.Message.Raw = message.Assistant, message.FormatPi, bytes.Clone(oddBytes)
	kinds := []message.Kind{message.Text, message.Thinking, message.ToolCall, message.ToolResult, message.Image, message.Other}
	part := e.Message.Parts[0]
	e.Message.Parts = nil
	for _, k := range kinds {
		p := part
		p.Kind, p.Raw = k, append([]byte{0, 0xff}, k...)
		e.Message.Parts = append(e.Message.Parts, p)
	}
	return e
}
