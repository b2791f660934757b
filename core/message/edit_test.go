package message_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/message"
)

// edit replaces what the parts of kind say, as an editor does: new text, no Raw.
func edit(m message.Message, change func(*message.Part)) message.Message {
	parts := slices.Clone(m.Parts)
	for i := range parts {
		before := parts[i]
		change(&parts[i])
		if p := parts[i]; p.Text != before.Text || p.Args != before.Args || p.CallID != before.CallID || p.IsError != before.IsError {
			parts[i].Raw = nil
		}
	}
	return m.WithParts(parts)
}

func setText(s string) func(*message.Part) {
	return func(p *message.Part) {
		if p.Kind == message.Text || p.Kind == message.ToolResult {
			p.Text = s
		}
	}
}

func setArgs(s string) func(*message.Part) {
	return func(p *message.Part) {
		if p.Kind == message.ToolCall {
			p.Args = s
		}
	}
}

func TestEncodeEdited(t *testing.T) {
	tests := []struct {
		name, format, raw string
		change            func(*message.Part)
		want              string
	}{
		{
			"string content", message.FormatOpenAI,
			`{ "z":1e400 , "role":"user", "content" : "long" ,"x":"` + "\xff" + `" }`, setText("s<"),
			`{ "z":1e400 , "role":"user", "content" : "s<" ,"x":"` + "\xff" + `" }`,
		},
		{
			"the last of duplicates", message.FormatOpenAI,
			`{"role":"user","content":"first","content":"second"}`, setText("s"),
			`{"role":"user","content":"first","content":"s"}`,
		},
		{
			"blocks beside the edited one", message.FormatOpenAI,
			`{"role":"user","content":[{"type":"text","text":"long"}, {"type":"new", "v": 1}],"x":2}`, setText("s"),
			`{"role":"user","content":[{"type":"text","text":"s"},{"type":"new", "v": 1}],"x":2}`,
		},
		{
			"arguments keep the call's other fields and the null content", message.FormatOpenAI,
			`{"content":null,"role":"assistant","tool_calls":[{"id":"a","function":{"arguments":"{}","name":"f"},"extra":{"sig": 1},"type":"function"}],"y":0}`, setArgs(`{"k":1}`),
			`{"content":null,"role":"assistant","tool_calls":[{"id":"a","function":{"arguments":"{\"k\":1}","name":"f"},"extra":{"sig": 1},"type":"function"}],"y":0}`,
		},
		{
			"custom call", message.FormatOpenAI,
			`{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"long"}}]}`, setArgs("s"),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"s"}}]}`,
		},
		{
			"function_call", message.FormatOpenAI,
			`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"},"y":0}`, setArgs("[]"),
			`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"[]"},"y":0}`,
		},
		{
			"refusal becomes content", message.FormatOpenAI,
			`{"role":"assistant","content":null,"refusal":"no"}`, setText("s"),
			`{"role":"assistant","content":"s","refusal":null}`,
		},
		{
			"result", message.FormatOpenAI,
			`{"role":"tool","x":1,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image_url","image_url":{}}],"tool_call_id":"c"}`, setText("s"),
			`{"role":"tool","x":1,"content":[{"type":"text","text":"s"},{"type":"image_url","image_url":{}}],"tool_call_id":"c"}`,
		},
		{
			"id of a result", message.FormatOpenAI,
			`{"role":"tool","content": "x" ,"tool_call_id":"c"}`, func(p *message.Part) { p.CallID = "d" },
			`{"role":"tool","content": "x" ,"tool_call_id":"d"}`,
		},
		{
			"anthropic text", message.FormatAnthropic,
			`{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"long"}],"usage":{"input_tokens": 1}}`, setText("s"),
			`{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"s"}],"usage":{"input_tokens": 1}}`,
		},
		{
			"anthropic result keeps its images and marks", message.FormatAnthropic,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"},{"type":"image","source":{}}],"cache_control":{}},{"type":"document"}]}`, setText("s"),
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"s"},{"type":"image","source":{}}],"cache_control":{}},{"type":"document"}]}`,
		},
		{
			"anthropic result turned into an error", message.FormatAnthropic,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}`, func(p *message.Part) { p.Text, p.IsError = "s", true },
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"s","is_error":true}]}`,
		},
		{
			"anthropic input that is no object", message.FormatAnthropic,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{},"x":1}]}`, setArgs("{cut"),
			`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"arguments":"{cut"},"x":1}]}`,
		},
		{
			"pi string", message.FormatPi,
			`{"role":"user","content":"long","__openclaw":{"a": 1}}`, setText("s"),
			`{"role":"user","content":"s","__openclaw":{"a": 1}}`,
		},
		{
			"pi call", message.FormatPi,
			`{"role":"assistant","content":[{"type":"toolCall","id":"t","name":"f","arguments":{},"partialJson":"{}","thoughtSignature":"g"}],"model":"m"}`, setArgs(`{"k":1}`),
			`{"role":"assistant","content":[{"type":"toolCall","id":"t","name":"f","arguments":{"k":1},"thoughtSignature":"g"}],"model":"m"}`,
		},
		{
			"pi result", message.FormatPi,
			`{"role":"toolResult","toolCallId":"t","toolName":"f","content":[{"type":"text","text":"a"},{"type":"image","data":"A","mimeType":"m"},{"type":"text","text":"b"}],"details":{"d": 1},"isError":false}`, setText("s"),
			`{"role":"toolResult","toolCallId":"t","toolName":"f","content":[{"type":"text","text":"s"},{"type":"image","data":"A","mimeType":"m"}],"details":{"d": 1},"isError":false}`,
		},
		{
			"pi summary", message.FormatPi,
			`{"role":"compactionSummary","summary":"long","tokensBefore":12}`, setText("s"),
			`{"role":"compactionSummary","summary":"s","tokensBefore":12}`,
		},
		{
			"pi shell", message.FormatPi,
			`{"role":"bashExecution","command":"ls","output":"long","exitCode":0}`, setText("$ ls\ns"),
			`{"role":"bashExecution","command":"ls","output":"s","exitCode":0}`,
		},
		{
			"pi shell, cut in the command", message.FormatPi,
			`{"role":"bashExecution","command":"cat <<EOF","output":"long","exitCode":0}`, setText("$ cat [...]"),
			`{"role":"bashExecution","command":"","output":"$ cat [...]","exitCode":0}`,
		},
		{
			"pi shell, said otherwise", message.FormatPi,
			`{"role":"bashExecution","output":"long","command":"ls"}`, setText("[a listing]"),
			`{"role":"bashExecution","output":"[a listing]","command":""}`,
		},
		{
			"nothing but the mark", message.FormatPi,
			`{"role":"toolResult","toolCallId":"t", "content":[ {"type":"text","text":"a"}, {"type":"text","text":"b"} ]}`, func(*message.Part) {},
			`{"role":"toolResult","toolCallId":"t", "content":[ {"type":"text","text":"a"}, {"type":"text","text":"b"} ]}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := edit(decode(t, test.format, test.raw), test.change)
			if got := encode(t, test.format, m); got != test.want {
				t.Errorf("Encode = %s\nwant     %s", got, test.want)
			}
			if string(m.Raw) != test.raw {
				t.Errorf("the original changed to %s", m.Raw)
			}
		})
	}
}

func TestEncodeRemovesCalls(t *testing.T) {
	m := decode(t, message.FormatOpenAI, `{"role":"assistant","content":"text","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}],"tail":1}`)
	got := encode(t, message.FormatOpenAI, m.WithParts(m.Parts[:1]))
	if want := `{"role":"assistant","content":"text","tail":1}`; got != want {
		t.Errorf("Encode = %s, want %s", got, want)
	}
	m = decode(t, message.FormatOpenAI, `{"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}],"role":"assistant","content":"text"}`)
	got = encode(t, message.FormatOpenAI, m.WithParts(m.Parts[:1]))
	if want := `{"role":"assistant","content":"text"}`; got != want {
		t.Errorf("Encode = %s, want %s", got, want)
	}
}

func TestEncodeMixedBlocks(t *testing.T) {
	// An unedited block stays verbatim beside one that was dropped.
	m := decode(t, message.FormatAnthropic, `{"role":"user","content":[{"type":"text", "text":"a\u0062"},{"type":"text","text":"c"}]}`)
	got := encode(t, message.FormatAnthropic, m.WithParts(m.Parts[:1]))
	if want := `{"role":"user","content":[{"type":"text", "text":"a\u0062"}]}`; got != want {
		t.Errorf("Encode = %s, want %s", got, want)
	}
}

func TestEncodeErrors(t *testing.T) {
	two := message.Message{Role: message.Tool, Parts: []message.Part{
		{Kind: message.ToolResult, CallID: "a"}, {Kind: message.ToolResult, CallID: "b"},
	}}
	beside := message.Message{Role: message.Tool, Parts: []message.Part{
		{Kind: message.ToolResult, CallID: "a"}, {Kind: message.Text, Text: "and"},
	}}
	user := message.Message{Role: message.User, Parts: []message.Part{{Kind: message.ToolResult, CallID: "a"}}}
	for _, format := range []string{message.FormatOpenAI, message.FormatPi} {
		for _, m := range []message.Message{two, beside, user, message.New(message.Tool, "no result")} {
			_, err := codec(t, format).Encode(m)
			if !errors.Is(err, message.ErrMalformed) || !strings.Contains(err.Error(), "Split") {
				t.Errorf("%s: Encode(%v) = %v, want ErrMalformed and the hint to use Split", format, m.Parts, err)
			}
		}
	}
	for _, format := range message.Formats() {
		for _, m := range []message.Message{
			{Role: "owner"},
			{Role: message.User, Parts: []message.Part{{Kind: message.ToolCall, Name: "f"}}},
			{Role: message.User, Format: format, Raw: []byte("{"), Edited: true},
		} {
			if _, err := codec(t, format).Encode(m); !errors.Is(err, message.ErrMalformed) {
				t.Errorf("%s: Encode(%+v) = %v, want ErrMalformed", format, m, err)
			}
		}
	}
}

// An original of another role has nothing that fits.
func TestEncodeOtherRole(t *testing.T) {
	m := decode(t, message.FormatOpenAI, `{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`)
	m = m.WithParts(m.Parts[:1])
	m.Role = message.User
	if got, want := encode(t, message.FormatOpenAI, m), `{"role":"user","content":"a"}`; got != want {
		t.Errorf("Encode = %s, want %s", got, want)
	}
}
