package message_test

import (
	"testing"

	"github.com/contextengine/contextengine/core/message"
)

func TestFingerprintIgnores(t *testing.T) {
	same := [][2]string{
		{`{"role":"user","content":" a\n","timestamp":1,"id":"x"}`, `{"role":"user","content":[{"type":"text","text":"a"}]}`},
		{
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"1","name":"f","arguments":{"a": 1, "b": "x y"}}],"usage":{"input":1}}`,
			`{"role":"assistant","content":[{"type":"toolCall","id":"2","name":"f","arguments":{"a":1,"b":"x y"}}]}`,
		},
		{`{"role":"toolResult","toolCallId":"1","content":"r "}`, `{"role":"toolResult","toolCallId":"2","content":[{"type":"text","text":"r"}],"details":{}}`},
	}
	for _, pair := range same {
		a, b := decode(t, message.FormatPi, pair[0]), decode(t, message.FormatPi, pair[1])
		if message.Fingerprint(a) != message.Fingerprint(b) {
			t.Errorf("fingerprints differ:\n%s\n%s", pair[0], pair[1])
		}
	}
}

func TestFingerprintTellsApart(t *testing.T) {
	part := func(p message.Part) message.Message {
		return message.Message{Role: message.Assistant, Parts: []message.Part{p}}
	}
	messages := []message.Message{
		message.New(message.Assistant, "a"),
		message.New(message.User, "a"),
		message.New(message.User, "b"),
		{Role: message.User, Type: "custom", Parts: []message.Part{{Kind: message.Text, Text: "a"}}},
		{Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: "a"}, {Kind: message.Text, Text: "a"}}},
		part(message.Part{Kind: message.ToolCall, Name: "f", Args: `{"a":1,"b":2}`}),
		part(message.Part{Kind: message.ToolCall, Name: "f", Args: `{"b":2,"a":1}`}),
		part(message.Part{Kind: message.ToolCall, Name: "f", Args: `{"a": 1`}),
		part(message.Part{Kind: message.ToolCall, Name: "f", Args: `{"a": 2`}),
		part(message.Part{Kind: message.ToolCall, Name: "f", Args: `{"a":"1 2"}`}),
		part(message.Part{Kind: message.ToolCall, Name: "f", Args: `{"a":"12"}`}),
		part(message.Part{Kind: message.ToolCall, Name: "ff", Args: `{"a":"12"}`}),
		part(message.Part{Kind: message.ToolResult, Text: "a"}),
		part(message.Part{Kind: message.Image, Raw: []byte("{}")}),
		part(message.Part{Kind: message.Other, Raw: []byte("{}")}),
		part(message.Part{Kind: message.Other, Raw: []byte("{ }")}),
	}
	seen := map[string]int{}
	for i, m := range messages {
		f := message.Fingerprint(m)
		if len(f) != 32 {
			t.Errorf("Fingerprint = %q, want 32 digits", f)
		}
		if j, ok := seen[f]; ok {
			t.Errorf("messages %d and %d have the same fingerprint", j, i)
		}
		seen[f] = i
	}
}

func TestDigest(t *testing.T) {
	messages := []message.Message{message.New(message.User, "a"), message.New(message.Assistant, "b"), message.New(message.User, "a")}
	var d message.Digest
	for i, m := range messages {
		if got := message.DigestOf(messages[:i]); got != d {
			t.Errorf("DigestOf(%d messages) = %q, want %q", i, got, d)
		}
		d = d.Add(message.Fingerprint(m))
	}
	if d == message.DigestOf([]message.Message{messages[0], messages[2], messages[1]}) {
		t.Error("the order of messages makes no difference")
	}
}

func TestFingerprintAllocations(t *testing.T) {
	m := decode(t, message.FormatPi, `{"role":"assistant","content":[{"type":"text","text":"hello there"},{"type":"toolCall","id":"1","name":"f","arguments":{"a":1}}]}`)
	if n := testing.AllocsPerRun(100, func() { message.Fingerprint(m) }); n > 3 {
		t.Errorf("Fingerprint allocates %v times, want at most 3", n)
	}
}
