package experiment

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// overhead is what a message costs besides its texts, in tokens.
const overhead = 4

// clippedText is what a text costs that an engine shortened as far as it makes sense, in tokens.
const clippedText = 100

// sent is a message as a model is sent it: what its bytes say, read without the codecs.
type sent struct {
	sum  [sha256.Size]byte
	size int
	role string
	// tokens is what the bytes cost, floor what they would cost with every text and result shortened.
	tokens, floor  int
	calls, results []string
	blank          bool
}

// meter reads and counts encoded messages. It remembers what it has seen and is safe for concurrent use.
type meter struct {
	count core.TokenCounter
	mu    sync.Mutex
	seen  map[[sha256.Size]byte]sent
	// pieces are what messages were measured as. Most of a prompt stood in the one before, and encoding it anew takes longer than all else.
	pieces map[uint64][]sent
	seed   maphash.Seed
}

func newMeter(count core.TokenCounter) *meter {
	return &meter{count: count, seen: make(map[[sha256.Size]byte]sent), pieces: make(map[uint64][]sent), seed: maphash.MakeSeed()}
}

// encode writes m as its host would send it; format is for messages that the engine made.
func encode(m message.Message, format string) ([][]byte, error) {
	if m.Format != "" {
		format = m.Format
	}
	pieces := message.Split(m, format)
	out := make([][]byte, 0, len(pieces))
	for _, p := range pieces {
		raw, err := message.Encode(p, format)
		if err != nil {
			return nil, fmt.Errorf("experiment: encode: %w", err)
		}
		out = append(out, raw)
	}
	return out, nil
}

// prompt measures messages; at holds for each measured one the index of the message it came from.
func (t *meter) prompt(msgs []message.Message, format string) (out []sent, at []int, err error) {
	for i := range msgs {
		key := t.key(&msgs[i], format)
		t.mu.Lock()
		pieces, ok := t.pieces[key]
		t.mu.Unlock()
		if !ok {
			raws, err := encode(msgs[i], format)
			if err != nil {
				return nil, nil, err
			}
			for _, raw := range raws {
				pieces = append(pieces, t.measure(raw))
			}
			t.mu.Lock()
			t.pieces[key] = pieces
			t.mu.Unlock()
		}
		for _, s := range pieces {
			out, at = append(out, s), append(at, i)
		}
	}
	return out, at, nil
}

// key is a hash of all that encode looks at.
func (t *meter) key(m *message.Message, format string) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	text := func(s string) {
		maphash.WriteComparable(&h, len(s))
		h.WriteString(s)
	}
	for _, s := range []string{format, m.Format, string(m.Role), m.ID, m.Key, m.Name, m.Stop, m.Type} {
		text(s)
	}
	maphash.WriteComparable(&h, m.Usage)
	maphash.WriteComparable(&h, [2]int64{m.Time.Unix(), int64(m.Time.Nanosecond())})
	maphash.WriteComparable(&h, [2]int{len(m.Raw), len(m.Parts)})
	maphash.WriteComparable(&h, m.Edited)
	h.Write(m.Raw)
	for i := range m.Parts {
		p := &m.Parts[i]
		for _, s := range []string{string(p.Kind), p.Text, p.CallID, p.Name, p.Args, p.Signature} {
			text(s)
		}
		maphash.WriteComparable(&h, p.IsError)
		maphash.WriteComparable(&h, len(p.Raw))
		h.Write(p.Raw)
	}
	return h.Sum64()
}

// measure reads one encoded message.
func (t *meter) measure(raw []byte) sent {
	sum := sha256.Sum256(raw)
	t.mu.Lock()
	s, ok := t.seen[sum]
	t.mu.Unlock()
	if ok {
		return s
	}
	s = t.read(raw)
	s.sum, s.size = sum, len(raw)
	t.mu.Lock()
	t.seen[sum] = s
	t.mu.Unlock()
	return s
}

// call is a tool call in any of the formats.
type wireCall struct {
	ID       string `json:"id"`
	Function *struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	Custom *struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
}

// block is a content block in any of the formats.
type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Refusal   string          `json:"refusal"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Name       string          `json:"name"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []wireCall      `json:"tool_calls"`
	Function   json.RawMessage `json:"function_call"`
	ToolCallID string          `json:"tool_call_id"`
	ResultOf   string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Summary    string          `json:"summary"`
	Command    string          `json:"command"`
	Output     string          `json:"output"`
	Refusal    string          `json:"refusal"`
}

// read counts what a model reads of a message: role, text, tool names, arguments and results.
func (t *meter) read(raw []byte) sent {
	var m wireMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		// Nothing the verification knows: all of it counts.
		n := t.count(string(raw)) + overhead
		return sent{tokens: n, floor: n}
	}
	r := reader{t: t}
	r.fixed(m.Role)
	r.s.role = m.Role
	switch m.Role {
	case "tool", "function", "toolResult":
		r.s.role = "tool"
		id := m.ToolCallID + m.ResultOf
		if id == "" {
			id = byName(m.Name + m.ToolName)
		}
		r.s.results = append(r.s.results, id)
		r.fixed(m.Name)
		r.fixed(m.ToolName)
	}
	for _, text := range []string{m.Summary, m.Command, m.Output, m.Refusal} {
		r.text(text)
	}
	r.content(m.Content)
	for _, c := range m.ToolCalls {
		r.s.calls = append(r.s.calls, c.ID)
		if c.Function != nil {
			r.fixed(c.Function.Name)
			r.arguments(c.Function.Arguments)
		}
		if c.Custom != nil {
			r.fixed(c.Custom.Name)
			r.fixed(c.Custom.Input)
		}
	}
	var f struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if len(m.Function) > 0 && json.Unmarshal(m.Function, &f) == nil && f.Name != "" {
		r.s.calls = append(r.s.calls, byName(f.Name))
		r.fixed(f.Name)
		r.arguments(f.Arguments)
	}
	r.s.tokens += overhead
	r.s.floor += overhead
	r.s.blank = !r.said && len(r.s.calls) == 0 && len(r.s.results) == 0
	return r.s
}

// byName pairs calls and results of hosts that give calls no ids.
func byName(name string) string { return "name:" + name }

type reader struct {
	t    *meter
	s    sent
	said bool
}

// fixed counts what no engine may shorten.
func (r *reader) fixed(text string) {
	n := r.t.count(text)
	r.s.tokens += n
	r.s.floor += n
}

// text counts what an engine may shorten.
func (r *reader) text(text string) {
	n := r.t.count(text)
	r.s.tokens += n
	r.s.floor += min(n, clippedText)
	r.said = r.said || strings.TrimSpace(text) != ""
}

// arguments counts the arguments of a call: JSON, or a string that holds it.
func (r *reader) arguments(raw json.RawMessage) {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		r.fixed(s)
		return
	}
	r.fixed(string(raw))
}

// content counts a string or a list of blocks.
func (r *reader) content(raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		r.text(s)
		return
	}
	var blocks []wireBlock
	if json.Unmarshal(raw, &blocks) != nil {
		r.text(string(raw))
		return
	}
	for _, b := range blocks {
		switch b.Type {
		case "toolCall", "tool_use":
			r.s.calls = append(r.s.calls, b.ID)
			r.fixed(b.Name)
			r.arguments(b.Arguments)
			r.arguments(b.Input)
		case "tool_result":
			r.s.results = append(r.s.results, b.ToolUseID)
			r.content(b.Content)
		case "thinking":
			r.fixed(b.Thinking)
		case "image", "image_url", "input_audio", "document":
			r.said = true
		default:
			r.text(b.Text)
			r.text(b.Refusal)
		}
	}
}
