package message_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/contextengine/contextengine/core/message"
)

// shapes are messages of every shape a codec knows, by format.
var shapes = map[string][]string{
	message.FormatOpenAI: {
		`{"role":"system","content":"be brief"}`,
		`{"role":"developer","content":[{"type":"text","text":"be brief"}],"x":1}`,
		`{"role":"user","name":"ann","content":"hello \ud83d\ude00 <b>"}`,
		`{ "content" : "spaces" , "role" : "user" , "n" : 1e400 }`,
		`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}},{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}},{"type":"new"}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"a\": 1}"},"extra":{"s":"t"}},{"id":"c2","type":"custom","custom":{"name":"run","input":"free text"}}]}`,
		`{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{broken"}}]}`,
		`{"role":"assistant","content":null,"function_call":{"name":"get","arguments":"{}"}}`,
		`{"role":"assistant","content":null,"refusal":"I will not."}`,
		`{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`,
		`{"role":"assistant","tool_calls":[{"id":"c9","type":"later"}]}`,
		`{"role":"tool","tool_call_id":"c1","name":"get","content":"done"}`,
		`{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"https://example.com/i.png"}}]}`,
		`{"role":"function","name":"get","content":"done"}`,
		`{"role":"user","content":"first","content":"second"}`,
		"{\"role\":\"user\",\"content\":\"bad \xff\xfe bytes \\u0000 \\ud800\",\"k\xff\":0.10}",
		`{"role":"user","content":"t","timestamp":"2026-01-02T03:04:05.678+01:00","id":"m1"}`,
	},
	message.FormatAnthropic: {
		`{"role":"user","content":"hello"}`,
		`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"document","source":{"type":"text","data":"d"}}]}`,
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"xx"},{"type":"text","text":"ok"},{"type":"tool_use","id":"t1","name":"get","input":{"b": 1, "a":[1,2]},"cache_control":null}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"},{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"https://example.com/i.png"}},{"type":"text","text":"b"}]},{"type":"text","text":"and now?"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}`,
		`{"role":"system","content":"be brief"}`,
		`{"role":"assistant","content":[]}`,
	},
	message.FormatPi: {
		`{"role":"user","content":"hello","timestamp":1700000000123,"idempotencyKey":"k1","__openclaw":{"senderIsOwner":true}}`,
		`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"timestamp":1700000000123}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"thinking","thinkingSignature":"only"},{"type":"text","text":"ok"},{"type":"toolCall","id":"t1","name":"get","arguments":{"a": 1},"partialJson":"{\"a\": 1}","thoughtSignature":"z"}],"api":"x","provider":"p","model":"m","usage":{"input":10,"output":2,"cacheRead":3,"cacheWrite":4,"cost":{"total":0.001}},"stopReason":"toolUse","responseId":"r1","timestamp":1700000000123}`,
		`{"role":"toolResult","toolCallId":"t1","toolName":"get","content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"b"}],"details":{"diff":"x"},"isError":true,"timestamp":1700000000123}`,
		`{"role":"toolResult","toolCallId":"t1","toolName":"get","content":"plain","isError":false}`,
		`{"role":"compactionSummary","summary":"long ago","tokensBefore":12345,"timestamp":1700000000123}`,
		`{"role":"branchSummary","summary":"elsewhere","fromId":"x","timestamp":1700000000123}`,
		`{"role":"custom","customType":"note","content":"remember","display":true,"details":{}}`,
		`{"role":"bashExecution","command":"ls","output":"a\nb","exitCode":0,"cancelled":false,"timestamp":1}`,
		`{"role":"fromTheFuture","content":[{"type":"text","text":"hi"}],"more":[1,2]}`,
		`{"role":"fromTheFuture"}`,
	},
}

func codec(tb testing.TB, format string) message.Codec {
	tb.Helper()
	c, err := message.Lookup(format)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func decode(tb testing.TB, format, raw string) message.Message {
	tb.Helper()
	m, err := codec(tb, format).Decode([]byte(raw))
	if err != nil {
		tb.Fatalf("Decode(%s): %v", raw, err)
	}
	return m
}

func encode(tb testing.TB, format string, m message.Message) string {
	tb.Helper()
	b, err := codec(tb, format).Encode(m)
	if err != nil {
		tb.Fatalf("Encode: %v", err)
	}
	return string(b)
}

func TestRoundTrip(t *testing.T) {
	for format, messages := range shapes {
		for _, raw := range messages {
			input := []byte("\n " + raw + " \r\n")
			m, err := codec(t, format).Decode(input)
			if err != nil {
				t.Errorf("%s: Decode(%s): %v", format, raw, err)
				continue
			}
			for i := range input {
				input[i] = 'x' // the message must not depend on the caller's bytes
			}
			if got := encode(t, format, m); got != raw {
				t.Errorf("%s: Encode(Decode) = %s, want %s", format, got, raw)
			}
			if !m.Role.Valid() || m.Format != format || m.Edited {
				t.Errorf("%s: Decode(%s) = role %q, format %q, edited %v", format, raw, m.Role, m.Format, m.Edited)
			}
			for _, p := range m.Parts {
				if !bytes.Contains([]byte(raw), p.Raw) {
					t.Errorf("%s: part %q is not verbatim from %s", format, p.Raw, raw)
				}
			}
		}
	}
}

// noRaw compares what messages say, not the bytes they were made from.
var noRaw = cmp.Options{
	cmpopts.IgnoreFields(message.Message{}, "Raw", "Format"),
	cmpopts.IgnoreFields(message.Part{}, "Raw"),
	cmpopts.EquateEmpty(),
}

func TestDecode(t *testing.T) {
	at := time.UnixMilli(1700000000123).UTC()
	tests := []struct {
		format string
		shape  int
		want   message.Message
	}{
		{message.FormatOpenAI, 1, message.Message{Role: message.System, Parts: []message.Part{{Kind: message.Text, Text: "be brief"}}}},
		{message.FormatOpenAI, 2, message.Message{Role: message.User, Name: "ann", Parts: []message.Part{{Kind: message.Text, Text: "hello \U0001F600 <b>"}}}},
		{message.FormatOpenAI, 4, message.Message{Role: message.User, Parts: []message.Part{
			{Kind: message.Text, Text: "look"}, {Kind: message.Image}, {Kind: message.Other}, {Kind: message.Other},
		}}},
		{message.FormatOpenAI, 5, message.Message{Role: message.Assistant, Parts: []message.Part{
			{Kind: message.ToolCall, CallID: "c1", Name: "get", Args: `{"a": 1}`},
			{Kind: message.ToolCall, CallID: "c2", Name: "run", Args: "free text"},
		}}},
		{message.FormatOpenAI, 7, message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, Name: "get", Args: "{}"}}}},
		{message.FormatOpenAI, 8, message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.Text, Text: "I will not."}}}},
		{message.FormatOpenAI, 12, message.Message{Role: message.Tool, Parts: []message.Part{
			{Kind: message.ToolResult, CallID: "c1", Text: "a\nb"}, {Kind: message.Image},
		}}},
		{message.FormatOpenAI, 14, message.Message{Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: "second"}}}},
		{message.FormatOpenAI, 16, message.Message{
			Role: message.User, ID: "m1", Time: time.Date(2026, 1, 2, 2, 4, 5, 678e6, time.UTC),
			Parts: []message.Part{{Kind: message.Text, Text: "t"}},
		}},
		{message.FormatAnthropic, 2, message.Message{
			Role: message.Assistant, ID: "msg_1", Stop: "tool_use", Usage: message.Usage{Input: 10, Output: 2, CacheRead: 3, CacheWrite: 4},
			Parts: []message.Part{
				{Kind: message.Thinking, Text: "hm", Signature: "sig"}, {Kind: message.Other}, {Kind: message.Text, Text: "ok"},
				{Kind: message.ToolCall, CallID: "t1", Name: "get", Args: `{"b": 1, "a":[1,2]}`},
			},
		}},
		{message.FormatAnthropic, 3, message.Message{Role: message.Tool, Parts: []message.Part{
			{Kind: message.ToolResult, CallID: "t1", Text: "done"},
			{Kind: message.ToolResult, CallID: "t2", Text: "a\nb", IsError: true},
			{Kind: message.Text, Text: "and now?"},
		}}},
		{message.FormatPi, 0, message.Message{Role: message.User, Key: "k1", Time: at, Parts: []message.Part{{Kind: message.Text, Text: "hello"}}}},
		{message.FormatPi, 2, message.Message{
			Role: message.Assistant, Stop: "toolUse", Time: at, Usage: message.Usage{Input: 10, Output: 2, CacheRead: 3, CacheWrite: 4},
			Parts: []message.Part{
				{Kind: message.Thinking, Text: "hm", Signature: "s"}, {Kind: message.Thinking, Signature: "only"}, {Kind: message.Text, Text: "ok"},
				{Kind: message.ToolCall, CallID: "t1", Name: "get", Args: `{"a": 1}`},
			},
		}},
		{message.FormatPi, 3, message.Message{Role: message.Tool, Time: at, Parts: []message.Part{
			{Kind: message.ToolResult, CallID: "t1", Name: "get", Text: "a\nb", IsError: true}, {Kind: message.Image},
		}}},
		{message.FormatPi, 5, message.Message{Role: message.User, Type: message.CompactionSummary, Time: at, Parts: []message.Part{{Kind: message.Text, Text: "long ago"}}}},
		{message.FormatPi, 8, message.Message{Role: message.User, Type: "bashExecution", Time: time.UnixMilli(1).UTC(), Parts: []message.Part{{Kind: message.Text, Text: "$ ls\na\nb"}}}},
		{message.FormatPi, 9, message.Message{Role: message.User, Type: "fromTheFuture", Parts: []message.Part{{Kind: message.Text, Text: "hi"}}}},
	}
	for _, test := range tests {
		raw := shapes[test.format][test.shape]
		if diff := cmp.Diff(test.want, decode(t, test.format, raw), noRaw); diff != "" {
			t.Errorf("%s: Decode(%s) (-want +got):\n%s", test.format, raw, diff)
		}
	}
}

func TestDecodeMalformed(t *testing.T) {
	tests := []struct{ format, raw, want string }{
		{message.FormatOpenAI, ``, "expected a JSON object, found nothing"},
		{message.FormatOpenAI, `[]`, "expected a JSON object, found an array"},
		{message.FormatOpenAI, `null`, "expected a JSON object, found null"},
		{message.FormatOpenAI, `not json`, "expected a JSON object, found text that is not JSON"},
		{message.FormatOpenAI, `{"role":"user"`, "expected a JSON object, found the end of the input"},
		{message.FormatOpenAI, `{"role":"user"} {}`, "expected a JSON object, found more bytes after the value"},
		{message.FormatOpenAI, `{"role":"user" "content":""}`, "expected a JSON object, found invalid character"},
		{message.FormatOpenAI, "{\"role\":\"user\",\"content\":\"\x00\"}", "expected a JSON object, found invalid character"},
		{message.FormatOpenAI, `{"content":""}`, `expected "role" to be one of system, developer, user, assistant, tool, function, found nothing`},
		{message.FormatOpenAI, `{"role":"owner"}`, `found "owner"`},
		{message.FormatOpenAI, `{"role":1}`, `expected "role" to be a string, found a number`},
		{message.FormatOpenAI, `{"role":"user","content":{}}`, `expected "content" to be a string or an array of blocks, found an object`},
		{message.FormatOpenAI, `{"role":"user","content":["x"]}`, `expected a JSON object in content[0], found a string`},
		{message.FormatOpenAI, `{"role":"user","content":[{"type":"text","text":1}]}`, `expected "text" to be a string in content[0], found a number`},
		{message.FormatOpenAI, `{"role":"assistant","tool_calls":{}}`, `expected a JSON array, found an object`},
		{message.FormatOpenAI, `true`, "expected a JSON object, found a boolean"},
		{message.FormatOpenAI, `{"role":"` + strings.Repeat("a", 39) + "\u00e9" + strings.Repeat("b", 9) + `"}`, `found "` + strings.Repeat("a", 39) + `..."`},
		{message.FormatOpenAI, `{"role":"` + strings.Repeat("a", 40) + `"}`, `found "` + strings.Repeat("a", 40) + `"`},
		{message.FormatOpenAI, `{"role":"user","content":"","name":7}`, `expected "name" to be a string, found a number`},
		{message.FormatOpenAI, `{"role":"tool","content":"","tool_call_id":[]}`, `expected "tool_call_id" to be a string, found an array`},
		{message.FormatOpenAI, `{"role":"assistant","tool_calls":[{"id":1}]}`, `expected "id" to be a string in tool_calls[0], found a number`},
		{message.FormatOpenAI, `{"role":"assistant","tool_calls":[{"id":"c"},{"function":{"name":{}}}]}`, `expected "name" to be a string in tool_calls[1], found an object`},
		{message.FormatOpenAI, `{"role":"assistant","function_call":{"name":true}}`, `expected "name" to be a string in function_call, found a boolean`},
		{message.FormatAnthropic, `{"role":false,"content":""}`, `expected "role" to be a string, found a boolean`},
		{message.FormatAnthropic, `{"role":"assistant","content":[{"type":"tool_use","id":7}]}`, `expected "id" to be a string in content[0], found a number`},
		{message.FormatAnthropic, `{"role":"assistant","content":[{"type":"tool_use","name":7}]}`, `expected "name" to be a string in content[0], found a number`},
		{message.FormatAnthropic, `{"role":"user","content":[{"type":"tool_result","content":[1]}]}`, `expected a JSON object in content[0] in tool_result in content[0], found a number`},
		{message.FormatPi, `{"role":1}`, `expected "role" to be a string, found a number`},
		{message.FormatPi, `{"role":"compactionSummary","summary":[]}`, `expected "summary" to be a string, found an array`},
		{message.FormatPi, `{"role":"user","content":{}}`, `expected "content" to be a string or an array of blocks, found an object`},
		{message.FormatPi, `{"role":"toolResult","toolName":[]}`, `expected "toolName" to be a string, found an array`},
		{message.FormatAnthropic, `{"role":"user"}`, `expected "content" to be a string or an array of blocks, found nothing`},
		{message.FormatAnthropic, `{"role":"tool","content":""}`, `expected "role" to be one of user, assistant, system, found "tool"`},
		{message.FormatAnthropic, `{"role":"user","content":[{"type":"tool_result","tool_use_id":7}]}`, `expected "tool_use_id" to be a string in content[0], found a number`},
		{message.FormatPi, `{"summary":"x"}`, `expected "role" to be a name`},
		{message.FormatPi, `{"role":"toolResult","toolCallId":[]}`, `expected "toolCallId" to be a string, found an array`},
		{message.FormatPi, strings.Repeat(`{"a":`, 20000), "exceeded max depth"},
	}
	for _, test := range tests {
		_, err := codec(t, test.format).Decode([]byte(test.raw))
		if !errors.Is(err, message.ErrMalformed) {
			t.Errorf("%s: Decode(%.60s) = %v, want ErrMalformed", test.format, test.raw, err)
			continue
		}
		if !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "message: decode "+test.format+": ") {
			t.Errorf("%s: Decode(%.60s) = %q, want %q in it", test.format, test.raw, err, test.want)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, format := range message.Formats() {
		if got := codec(t, format).Name(); got != format {
			t.Errorf("Lookup(%q).Name() = %q", format, got)
		}
	}
	if _, err := message.Lookup("morse"); err == nil {
		t.Error("Lookup(morse) gave no error")
	}
}

func TestDecodeTime(t *testing.T) {
	tests := []struct {
		raw  string
		want time.Time
	}{
		{`1700000000123`, time.UnixMilli(1700000000123)},
		{`1700000000123.7`, time.UnixMilli(1700000000123)},
		{`-1000`, time.UnixMilli(-1000)},
		{`"2026-01-02T03:04:05Z"`, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		{`0`, time.Time{}},
		{`1e300`, time.Time{}},
		{`-1e14`, time.Time{}},
		{`3e14`, time.Time{}},
		{`1e400`, time.Time{}},
		{`"yesterday"`, time.Time{}},
		{`"9999-12-31T23:59:59-05:00"`, time.Time{}},
		{`{}`, time.Time{}},
	}
	for _, test := range tests {
		m := decode(t, message.FormatPi, `{"role":"user","content":"","timestamp":`+test.raw+`}`)
		if !m.Time.Equal(test.want) || m.Time.IsZero() != test.want.IsZero() {
			t.Errorf("timestamp %s: Time = %v, want %v", test.raw, m.Time, test.want)
		}
		// A message is stored as JSON, which knows four digits of a year.
		if _, err := m.Time.MarshalJSON(); err != nil {
			t.Errorf("timestamp %s: %v", test.raw, err)
		}
	}
}
