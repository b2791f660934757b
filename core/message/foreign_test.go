package message_test

import (
	gocmp "cmp"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core/message"
)

func TestEncodeForeign(t *testing.T) {
	tests := []struct{ from, raw, to, want string }{
		{
			message.FormatPi, `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"text","text":"ok"},{"type":"toolCall","id":"a|b","name":"f","arguments":{"k": 1}}],"stopReason":"toolUse","timestamp":5}`,
			message.FormatOpenAI, `{"role":"assistant","content":"ok","tool_calls":[{"id":"a|b","type":"function","function":{"name":"f","arguments":"{\"k\": 1}"}}]}`,
		},
		{
			message.FormatPi, `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"text","text":""},{"type":"toolCall","id":"a|b","name":"f","arguments":{"k": 1}}]}`,
			message.FormatAnthropic, `{"role":"assistant","content":[{"type":"tool_use","id":"a_b","name":"f","input":{"k": 1}}]}`,
		},
		{
			message.FormatPi, `{"role":"toolResult","toolCallId":"a|b","toolName":"f","content":[{"type":"text","text":"r"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"isError":true}`,
			message.FormatAnthropic, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a_b","content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}],"is_error":true}]}`,
		},
		{
			message.FormatPi, `{"role":"compactionSummary","summary":"long ago","tokensBefore":1}`,
			message.FormatOpenAI, `{"role":"user","content":"long ago"}`,
		},
		{
			message.FormatOpenAI, `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{broken"}}]}`,
			message.FormatAnthropic, `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"arguments":"{broken"}}]}`,
		},
		{
			message.FormatOpenAI, `{"role":"tool","tool_call_id":"c","name":"f","content":"r"}`,
			message.FormatPi, `{"role":"toolResult","toolCallId":"c","toolName":"f","content":[{"type":"text","text":"r"}],"isError":false,"timestamp":0}`,
		},
		{
			message.FormatOpenAI, `{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"input_audio","input_audio":{}}]}`,
			message.FormatPi, `{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"[input_audio omitted]"}],"timestamp":0}`,
		},
		{
			message.FormatOpenAI, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/i.png"}}]}`,
			message.FormatAnthropic, `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/i.png"}}]}`,
		},
		{
			message.FormatAnthropic, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}`,
			message.FormatOpenAI, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`,
		},
		{
			message.FormatAnthropic, `{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"tool_use","id":"t","name":"f"}],"stop_reason":"max_tokens","usage":{"input_tokens":1,"output_tokens":2}}`,
			message.FormatPi, `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"toolCall","id":"t","name":"f","arguments":{}}],"api":"unknown","provider":"unknown","model":"unknown","usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"length","timestamp":0}`,
		},
		{
			message.FormatOpenAI, `{"role":"user","content":[{"type":"image_url","image_url":"https://example.com/i.png"},{"type":"image_url","image_url":{}},{"type":"image_url","image_url":"data:image/png,AAAA"}]}`,
			message.FormatAnthropic, `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/i.png"}},{"type":"text","text":"[image omitted]"},{"type":"text","text":"[image omitted]"}]}`,
		},
		{
			message.FormatPi, `{"role":"toolResult","toolCallId":"c","toolName":"f","content":[{"type":"image"},{"type":"image","data":1,"mimeType":"image/png"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}`,
			message.FormatAnthropic, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"[image omitted]"},{"type":"text","text":"[image omitted]"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}`,
		},
		{
			message.FormatOpenAI, `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"[1, 2]"}},{"id":"d","type":"function","function":{"name":"f","arguments":""}}]}`,
			message.FormatAnthropic, `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"arguments":[1, 2]}},{"type":"tool_use","id":"d","name":"f","input":{}}]}`,
		},
		{
			message.FormatAnthropic, `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f"}]}`,
			message.FormatOpenAI, `{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		},
		{
			message.FormatPi, `{"role":"bashExecution","command":" \n","output":"a\nb"}`,
			message.FormatOpenAI, `{"role":"user","content":"a\nb"}`,
		},
		{
			message.FormatOpenAI, `{"role":"function","name":"f","content":"r"}`,
			message.FormatOpenAI, `{"role":"function","name":"f","content":"r"}`,
		},
	}
	for _, test := range tests {
		if got := encode(t, test.to, decode(t, test.from, test.raw)); got != test.want {
			t.Errorf("%s to %s: %s\n got %s\nwant %s", test.from, test.to, test.raw, got, test.want)
		}
	}
}

func TestEncodeNew(t *testing.T) {
	tests := []struct {
		m    message.Message
		want map[string]string
	}{
		{message.New(message.System, "a\n\"b\""), map[string]string{
			message.FormatOpenAI:    `{"role":"system","content":"a\n\"b\""}`,
			message.FormatAnthropic: `{"role":"system","content":"a\n\"b\""}`,
			message.FormatPi:        `{"role":"system","content":[{"type":"text","text":"a\n\"b\""}],"timestamp":0}`,
		}},
		{message.Message{Role: message.Tool, Key: "k", Parts: []message.Part{{Kind: message.ToolResult, CallID: "c", Name: "f", Text: "r"}}}, map[string]string{
			message.FormatOpenAI:    `{"role":"tool","tool_call_id":"c","name":"f","content":"r"}`,
			message.FormatAnthropic: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}`,
			message.FormatPi:        `{"role":"toolResult","toolCallId":"c","toolName":"f","content":[{"type":"text","text":"r"}],"isError":false,"timestamp":0,"idempotencyKey":"k"}`,
		}},
		{message.Message{Role: message.User, Type: message.CompactionSummary, Parts: []message.Part{{Kind: message.Text, Text: "s"}}}, map[string]string{
			message.FormatOpenAI:    `{"role":"user","content":"s"}`,
			message.FormatAnthropic: `{"role":"user","content":"s"}`,
			message.FormatPi:        `{"role":"compactionSummary","summary":"s","tokensBefore":0,"timestamp":0}`,
		}},
		{message.Message{Role: message.User, Type: "branchSummary", Parts: []message.Part{{Kind: message.Text, Text: "s"}}}, map[string]string{
			message.FormatOpenAI:    `{"role":"user","content":"s"}`,
			message.FormatAnthropic: `{"role":"user","content":"s"}`,
			message.FormatPi:        `{"role":"branchSummary","summary":"s","fromId":"","timestamp":0}`,
		}},
		{message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, Name: "f", Text: "r"}}}, map[string]string{
			message.FormatOpenAI:    `{"role":"function","name":"f","content":"r"}`,
			message.FormatAnthropic: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_f","content":"r"}]}`,
			message.FormatPi:        `{"role":"toolResult","toolCallId":"call_f","toolName":"f","content":[{"type":"text","text":"r"}],"isError":false,"timestamp":0}`,
		}},
		{message.Message{Role: message.Assistant, Stop: "error", Parts: []message.Part{{Kind: message.Thinking, Text: "hm", Signature: "s"}, {Kind: message.Text, Text: "a"}}}, map[string]string{
			message.FormatOpenAI:    `{"role":"assistant","content":"a"}`,
			message.FormatAnthropic: `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"}]}`,
			message.FormatPi:        `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"text","text":"a"}],"api":"unknown","provider":"unknown","model":"unknown","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"error","timestamp":0}`,
		}},
	}
	for _, test := range tests {
		for _, format := range message.Formats() {
			got, err := message.Encode(test.m, format)
			if err != nil || string(got) != test.want[format] {
				t.Errorf("Encode(%+v, %q) = %s, %v, want %s", test.m, format, got, err, test.want[format])
			}
		}
	}
	if _, err := message.Encode(message.New(message.User, ""), "morse"); err == nil {
		t.Error("Encode to an unknown format gave no error")
	}
}

// Every shape of every format can be said in every other, and says the same there.
func TestEncodeEverywhere(t *testing.T) {
	for from, messages := range shapes {
		for _, raw := range messages {
			m := decode(t, from, raw)
			for _, to := range message.Formats() {
				if to == from {
					continue
				}
				var calls, results []message.Part
				for _, piece := range message.Split(m, to) {
					out := encode(t, to, piece)
					if !json.Valid([]byte(out)) {
						t.Fatalf("%s to %s: %s gave invalid JSON %s", from, to, raw, out)
					}
					back := decode(t, to, out)
					calls, results = append(calls, back.Calls()...), append(results, back.Results()...)
				}
				same := cmp.Transformer("said", func(p message.Part) [3]string {
					// Only pi has no place for the address of an image; old functions have no id.
					text := strings.TrimSuffix(p.Text, "\n[image omitted]")
					return [3]string{string(p.Kind), gocmp.Or(p.CallID, "call_get"), text}
				})
				if diff := cmp.Diff(m.Calls(), calls, same); diff != "" {
					t.Errorf("%s to %s: %s: calls (-want +got):\n%s", from, to, raw, diff)
				}
				if diff := cmp.Diff(m.Results(), results, same); diff != "" {
					t.Errorf("%s to %s: %s: results (-want +got):\n%s", from, to, raw, diff)
				}
			}
		}
	}
}

func TestSplit(t *testing.T) {
	const three = `{"role":"user","content":[{"type":"text","text":"before"},{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"2"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"type":"text","text":"after"}]}`
	tests := []struct {
		from, raw, to string
		want          []string
	}{
		{message.FormatAnthropic, three, message.FormatAnthropic, []string{three}},
		{message.FormatAnthropic, three, message.FormatOpenAI, []string{
			`{"role":"tool","tool_call_id":"a","content":"1"}`,
			`{"role":"tool","tool_call_id":"b","content":"2"}`,
			`{"role":"user","content":[{"type":"text","text":"before"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"text","text":"after"}]}`,
		}},
		{message.FormatAnthropic, three, message.FormatPi, []string{
			`{"role":"toolResult","toolCallId":"a","toolName":"","content":[{"type":"text","text":"1"}],"isError":false,"timestamp":0}`,
			`{"role":"toolResult","toolCallId":"b","toolName":"","content":[{"type":"text","text":"2"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"isError":true,"timestamp":0}`,
			`{"role":"user","content":[{"type":"text","text":"before"},{"type":"text","text":"after"}],"timestamp":0}`,
		}},
		{message.FormatPi, `{"role":"toolResult","toolCallId":"a","content":[{"type":"text","text":"1"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}`, message.FormatOpenAI, []string{
			`{"role":"tool","tool_call_id":"a","content":"1"}`,
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`,
		}},
		{message.FormatOpenAI, `{"role":"user","content":"x"}`, message.FormatPi, []string{
			`{"role":"user","content":[{"type":"text","text":"x"}],"timestamp":0}`,
		}},
	}
	for _, test := range tests {
		var got []string
		for _, m := range message.Split(decode(t, test.from, test.raw), test.to) {
			got = append(got, encode(t, test.to, m))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Split to %s of %s (-want +got):\n%s", test.to, test.raw, diff)
		}
	}
}

func TestSplitKeepsTheOriginal(t *testing.T) {
	m := decode(t, message.FormatPi, `{"id":"m1","role":"toolResult","toolCallId":"a","toolName":"f","content":[{"type":"text","text":"1"}],"details":{"d":1},"isError":false}`)
	m = m.WithParts(append(m.Parts, message.Part{Kind: message.ToolResult, CallID: "b", Name: "g", Text: "2"}, message.Part{Kind: message.Text, Text: "and"}))
	var got []string
	for _, piece := range message.Split(m, message.FormatPi) {
		got = append(got, piece.ID+" "+encode(t, message.FormatPi, piece))
	}
	want := []string{
		`m1 {"id":"m1","role":"toolResult","toolCallId":"a","toolName":"f","content":[{"type":"text","text":"1"}],"details":{"d":1},"isError":false}`,
		` {"role":"toolResult","toolCallId":"b","toolName":"g","content":[{"type":"text","text":"2"}],"isError":false,"timestamp":0}`,
		` {"role":"user","content":[{"type":"text","text":"and"}],"timestamp":0}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Split (-want +got):\n%s", diff)
	}
	if got := message.Split(message.New(message.Tool, "alone"), message.FormatOpenAI); len(got) != 1 || got[0].Role != message.User || got[0].Text() != "alone" {
		t.Errorf("Split of a Tool message without results = %+v, want one User message", got)
	}
}

func TestSplitAssistant(t *testing.T) {
	m := decode(t, message.FormatAnthropic, `{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"so"}]}`)
	var got []string
	for _, piece := range message.Split(m, message.FormatOpenAI) {
		got = append(got, encode(t, message.FormatOpenAI, piece))
	}
	want := []string{`{"role":"assistant","content":"so"}`, `{"role":"tool","tool_call_id":"a","content":"1"}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Split (-want +got):\n%s", diff)
	}
}
