package experiment

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// words counts words: figures that can be checked by eye.
func words(s string) int { return len(strings.Fields(s)) }

func TestRecount(t *testing.T) {
	for _, tt := range []struct {
		name, format, raw string
		tokens            int
		calls, results    int
	}{
		{"openai user", "openai", `{"role":"user","name":"speaker","content":"two words"}`, 1 + 2 + 4, 0, 0},
		{"openai blocks", "openai", `{"role":"user","content":[{"type":"text","text":"two words"},{"type":"text","text":"one"}]}`, 1 + 3 + 4, 0, 0},
		{"openai call", "openai", `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"a\": 1}"}}]}`, 1 + 1 + 2 + 4, 1, 0},
		{"openai old call", "openai", `{"role":"assistant","content":"hm","function_call":{"name":"look","arguments":"{}"}}`, 1 + 1 + 1 + 1 + 4, 1, 0},
		{"openai result", "openai", `{"role":"tool","tool_call_id":"a","name":"look","content":"one two three"}`, 1 + 1 + 3 + 4, 0, 1},
		{"pi call", "pi", `{"role":"assistant","content":[{"type":"thinking","thinking":"let us see"},{"type":"toolCall","id":"a","name":"look","arguments":{"a": 1}}]}`, 1 + 3 + 1 + 2 + 4, 1, 0},
		{"pi result", "pi", `{"role":"toolResult","toolCallId":"a","toolName":"look","content":[{"type":"text","text":"one two"}]}`, 1 + 1 + 2 + 4, 0, 1},
		{"pi summary", "pi", `{"role":"compactionSummary","summary":"what was said"}`, 1 + 3 + 4, 0, 0},
		{"anthropic call", "anthropic", `{"role":"assistant","content":[{"type":"text","text":"well"},{"type":"tool_use","id":"a","name":"look","input":{"a": 1}}]}`, 1 + 1 + 1 + 2 + 4, 1, 0},
		{"anthropic result", "anthropic", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"one two"}]},{"type":"text","text":"go on"}]}`, 1 + 2 + 2 + 4, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			codec, err := message.Lookup(tt.format)
			if err != nil {
				t.Fatal(err)
			}
			m, err := codec.Decode([]byte(tt.raw))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := newMeter(words).prompt([]message.Message{m}, tt.format)
			if err != nil || len(got) != 1 {
				t.Fatalf("%d messages, error %v", len(got), err)
			}
			if s := got[0]; s.tokens != tt.tokens || len(s.calls) != tt.calls || len(s.results) != tt.results || s.size != len(tt.raw) {
				t.Errorf("%d tokens, %d calls, %d results, %d bytes; want %d, %d, %d, %d",
					s.tokens, len(s.calls), len(s.results), s.size, tt.tokens, tt.calls, tt.results, len(tt.raw))
			}
		})
	}
}

func TestRecountOfUnknownBytes(t *testing.T) {
	if got := newMeter(words).measure([]byte("no json at all")); got.tokens != 4+overhead {
		t.Errorf("%d tokens, want all of them", got.tokens)
	}
}

func TestCallsOf(t *testing.T) {
	said := func(roles string) []message.Message {
		var out []message.Message
		for _, r := range roles {
			out = append(out, message.New(map[rune]message.Role{'s': message.System, 'u': message.User, 'a': message.Assistant, 't': message.Tool}[r], "x"))
		}
		return out
	}
	for _, tt := range []struct{ roles, want string }{
		{"sua", "2"},
		{"suattata", "2 5+ 7+"},
		{"uu", "1 2"},
		{"uaa", "1"},
		{"uatu", "1 3+ 4"},
		{"ta", "1"},
		{"", ""},
	} {
		var got []string
		for _, c := range callsOf(said(tt.roles)) {
			s := string(rune('0' + c.behind))
			if c.loop {
				s += "+"
			}
			got = append(got, s)
		}
		if g := strings.Join(got, " "); g != tt.want {
			t.Errorf("calls of %q = %q, want %q", tt.roles, g, tt.want)
		}
	}
}

func TestSimHostKeepsPairs(t *testing.T) {
	h := NewSimHost(100, func(m message.Message) int { return words(m.Text()) + 1 })
	call := message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "a", Name: "look"}}}
	result := message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "a", Text: strings.Repeat("word ", 30)}}}
	h.Say(message.New(message.System, "rules"))
	for range 5 {
		h.Say(message.New(message.User, "please look"))
		h.Say(call)
		h.Say(result)
	}
	before := h.Tokens()
	res, err := h.Compact(t.Context(), core.CompactRequest{Budget: 100})
	if err != nil || !res.Compacted || res.TokensBefore != before || res.TokensAfter != h.Tokens() || res.TokensAfter >= before {
		t.Fatalf("%+v, error %v; the transcript costs %d, before %d", res, err, h.Tokens(), before)
	}
	msgs := h.Transcript().Messages
	if msgs[0].Role != message.System || msgs[1].Type != message.CompactionSummary || msgs[2].Role == message.Tool {
		t.Errorf("the transcript begins with %v, %v, %v", msgs[0], msgs[1], msgs[2])
	}
	if h.Compactions() != 1 {
		t.Errorf("%d compactions, want 1", h.Compactions())
	}
}
