package message_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/message"
)

var card = regexp.MustCompile(`\d{4}-\d{4}`)

func hide(text string) string { return card.ReplaceAllString(text, "[card]") }

func TestRedact(t *testing.T) {
	for name, c := range map[string]struct{ format, raw, want string }{
		"text":         {message.FormatOpenAI, `{"role": "user",  "content":"pay 1234-5678 now"}`, `{"role": "user",  "content":"pay [card] now"}`},
		"nothing":      {message.FormatOpenAI, `{"role":"user","content":"pay\u0020now"}`, `{"role":"user","content":"pay\u0020now"}`},
		"escaped":      {message.FormatOpenAI, `{"role":"user","content":"\u0031234-5678"}`, `{"role":"user","content":"[card]"}`},
		"ids stay":     {message.FormatOpenAI, `{"role":"tool","tool_call_id":"1234-5678","content":"1234-5678"}`, `{"role":"tool","tool_call_id":"1234-5678","content":"[card]"}`},
		"arguments":    {message.FormatOpenAI, `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"n\":\"1234-5678\"}"}}]}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"n\":\"[card]\"}"}}]}`},
		"other fields": {message.FormatPi, `{"role":"toolResult","toolCallId":"c","toolName":"f","content":[{"type":"text","text":"ok"}],"details":{"deep":["1234-5678"]},"timestamp":7}`, `{"role":"toolResult","toolCallId":"c","toolName":"f","content":[{"type":"text","text":"ok"}],"details":{"deep":["[card]"]},"timestamp":7}`},
		"blocks":       {message.FormatAnthropic, `{"role":"user","content":[{"type":"text","text":"1234-5678"},{"type":"text","text":"b"}]}`, `{"role":"user","content":[{"type":"text","text":"[card]"},{"type":"text","text":"b"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			codec, err := message.Lookup(c.format)
			if err != nil {
				t.Fatal(err)
			}
			m, err := codec.Decode([]byte(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			r := message.Redact(m, hide)
			got, err := codec.Encode(r)
			if err != nil || string(got) != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
			if message.Fingerprint(message.Redact(r, hide)) != message.Fingerprint(r) {
				t.Error("a second time changes something")
			}
			if b, err := json.Marshal(r.Parts); err != nil || strings.Contains(strings.ReplaceAll(string(b), `"callId":"1234-5678"`, ""), "1234-5678") {
				t.Errorf("parts: %s", b)
			}
		})
	}
}

func TestRedactMessageOfOurOwn(t *testing.T) {
	m := message.Redact(message.New(message.User, "1234-5678"), hide)
	if m.Text() != "[card]" || m.Edited || m.Raw != nil {
		t.Errorf("got %+v", m)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add(`{"role":"user","content":"1234-5678"}`)
	f.Add(`{"role":"assistant","content":[{"type":"x","y":["1234-5678",{"z":"\"1234-5678"}]}]}`)
	f.Add(`{"role":"user","content":"{\"a\":\"1234-5678\"}"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		for _, format := range message.Formats() {
			codec, err := message.Lookup(format)
			if err != nil {
				t.Fatal(err)
			}
			m, err := codec.Decode([]byte(raw))
			if err != nil {
				continue
			}
			r := message.Redact(m, hide)
			b, err := codec.Encode(r)
			if err != nil || !json.Valid(b) {
				t.Fatalf("%s: %q, %v", format, b, err)
			}
			if card.MatchString(r.Text()) {
				t.Fatalf("%s: still there: %q", format, r.Text())
			}
		}
	})
}
