package message_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core/message"
)

// outline writes conversations as text: "id format" and, for each message, "line role text".
func outline(conversations []message.Conversation) string {
	var b strings.Builder
	for _, c := range conversations {
		fmt.Fprintf(&b, "[%s %s]", c.ID, c.Format)
		for i, m := range c.Messages {
			fmt.Fprintf(&b, " %d:%s:%s", c.Lines[i], m.Role, strings.ReplaceAll(m.Text(), "\n", "|"))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const piSession = `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05Z","cwd":"/x"}
{"type":"model_change","provider":"p"}

{"type":"message","id":"e1","parentId":null,"timestamp":"2026-01-02T03:04:06Z","message":{"role":"user","content":"hi"}}
{"type":"message","id":"e2","timestamp":"2026-01-02T03:04:07Z","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"ho"}],"timestamp":1700000000000}}
{"type":"compaction","id":"e3","timestamp":"2026-01-02T03:04:08Z","summary":"so far \ud83d\ude00","firstKeptEntryId":"e2","tokensBefore":99}
{"type":"compaction","id":"e4"}
{"type":"somethingNew","content":"ignored"}
`

func TestReadShapes(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"empty", " \n", ""},
		{"pi session", piSession, "[s1 pi] 4:user:hi 5:assistant:ho 6:user:so far \U0001F600\n"},
		{
			"two pi sessions", piSession + `{"type":"session","id":"s2"}` + "\n",
			"[s1 pi] 4:user:hi 5:assistant:ho 6:user:so far \U0001F600\n[s2 pi]\n",
		},
		{
			"pi session without a header", `{"type":"message","message":{"role":"user","content":"hi"}}`,
			"[ pi] 1:user:hi\n",
		},
		{
			"lines of messages", "\xef\xbb\xbf{\"role\":\"user\",\"content\":\"a\"}\r\n\r\n{\"role\":\"assistant\",\"content\":\"b\"}",
			"[ openai] 1:user:a 3:assistant:b\n",
		},
		{
			"lines of pi messages", `{"role":"user","content":"a"}` + "\n" + `{"role":"toolResult","toolCallId":"t","content":[{"type":"text","text":"b"}]}`,
			"[ pi] 1:user:a 2:tool:b\n",
		},
		{
			"array of messages over lines", "\n[\n  {\"role\":\"user\",\n   \"content\":\"a\"},\n  {\"role\":\"tool\",\"content\":\"b\"}\n]\n",
			"[ openai] 3:user:a 5:tool:b\n",
		},
		{
			"array in one line", `[{"role":"user","content":"a"},{"role":"user","content":"b"}]`,
			"[ openai] 1:user:a 1:user:b\n",
		},
		{
			"arrays of messages in lines", `[{"role":"user","content":"a"}]` + "\n" + `[{"role":"user","content":"b"}]`,
			"[0 openai] 1:user:a\n[1 openai] 2:user:b\n",
		},
		{
			"one object over lines", "{\n \"id\":\"c1\",\n \"messages\":[\n{\"role\":\"user\",\"content\":\"a\"}\n]}",
			"[c1 openai] 4:user:a\n",
		},
		{
			"objects in lines", `{"messages":[{"role":"user","content":"a"}]}` + "\n" + `{"id":7,"messages":[{"role":"user","content":"b"}],"tools":[]}` + "\n" + `{"messages":[]}`,
			"[0 openai] 1:user:a\n[7 openai] 2:user:b\n[2 openai]\n",
		},
		{
			"anthropic request", `{"model":"m","messages":[{"role":"user","content":"a"}],"system":[{"type":"text","text":"be"},{"type":"text","text":"brief"}]}`,
			"[ anthropic] 1:system:be|brief 1:user:a\n",
		},
		{
			"anthropic blocks", `[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}]`,
			"[ anthropic] 1:user:a 1:assistant: 1:tool:r\n",
		},
		{
			"openai with a system beside it", `{"system":"s","messages":[{"role":"user","content":"a"},{"role":"tool","content":"r"}]}`,
			"[ openai] 1:system:s 1:user:a 1:tool:r\n",
		},
		{
			"tau-bench", "[{\"task_id\":4,\"trial\":1,\"reward\":0.0,\"traj\":[{\"role\":\"user\",\"content\":\"a\"}]},\n{\"traj\":[\n{\"role\":\"user\",\"content\":\"b\"}]}]",
			"[4/1 openai] 1:user:a\n[1 openai] 3:user:b\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := message.Read(strings.NewReader(test.input), message.ReadOptions{Name: "f"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, outline(got)); diff != "" {
				t.Errorf("Read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadEntryFields(t *testing.T) {
	got, err := message.Read(strings.NewReader(piSession), message.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := got[0].Messages
	if m[0].ID != "e1" || !m[0].Time.Equal(time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)) || string(m[0].Raw) != `{"role":"user","content":"hi"}` {
		t.Errorf("first message = %+v, want id and time of its entry and the inner bytes", m[0])
	}
	if m[1].ID != "m2" || !m[1].Time.Equal(time.UnixMilli(1700000000000)) {
		t.Errorf("second message: id %q, time %v, want its own", m[1].ID, m[1].Time)
	}
	const summary = `{"role":"compactionSummary","summary":"so far \ud83d\ude00","tokensBefore":99,"timestamp":1767323048000}`
	if m[2].Type != message.CompactionSummary || m[2].ID != "e3" || string(m[2].Raw) != summary {
		t.Errorf("compaction = %s, want %s", m[2].Raw, summary)
	}
}

func TestReadForcedFormat(t *testing.T) {
	const input = `{"role":"user","content":[{"type":"text","text":"a"}]}`
	got, err := message.Read(strings.NewReader(input), message.ReadOptions{Format: message.FormatPi})
	if err != nil || got[0].Format != message.FormatPi {
		t.Errorf("Read = %+v, %v, want format pi", got, err)
	}
	if _, err := message.Read(strings.NewReader(input), message.ReadOptions{Format: "morse"}); err == nil {
		t.Error("Read with an unknown format gave no error")
	}
}

func TestReadErrors(t *testing.T) {
	const good = `{"role":"user","content":"a"}` + "\n"
	tests := []struct{ name, input, want, rest string }{
		{"garbage", good + "garbage\n" + good, "t.jsonl:2: expected a JSON object, found text that is not JSON", "[ openai] 1:user:a 3:user:a\n"},
		{"torn last line", good + good + `{"role":"user","con`, "t.jsonl:3: expected a JSON object, found the end of the input", "[ openai] 1:user:a 2:user:a\n"},
		{"torn pi line", piSession + `{"type":"message","message":{"role":"us`, "t.jsonl:9: expected a JSON object, found the end of the input", "[s1 pi] 4:user:hi 5:assistant:ho 6:user:so far \U0001F600\n"},
		{"unknown role", good + "\n" + `{"role":"owner"}` + "\n" + good, `t.jsonl:3: expected "role" to be one of system, developer, user, assistant, tool, function, found "owner"`, "[ openai] 1:user:a 4:user:a\n"},
		{"no message", `{"type":"message","message":"x"}` + "\n", `t.jsonl:1: expected "message" to be an object, found a string`, ""},
		{"some other object", `{"a":1}`, `t.jsonl:1: expected a message, a session entry, or an object with "messages" or "traj", found an object that is none of them`, ""},
		{"element of an array", "[\n{\"role\":\"user\",\"content\":\"a\"},\n17,\n{\"role\":\"user\",\n\"content\":\"b\"}]", "t.jsonl:3: expected a JSON object, found a number", "[ openai] 2:user:a 4:user:b\n"},
		{"torn array", "[\n{\"role\":\"user\",\"content\":\"a\"},\n{\"role\":\"user\",\n\"conte", "t.jsonl:4: expected a JSON array, found the end of the input", "[ openai] 2:user:a\n"},
		{"array with a fault", "[\n{\"role\":\"user\",\"content\":\"a\"},\n{\"role\":\"user\",\n\"content\" \"b\"}]", "t.jsonl:4: expected a JSON array, found invalid character '\"' after object key", "[ openai] 2:user:a\n"},
		{"object with a fault", "{\n\"messages\":[\n{\"role\":}]}", "t.jsonl:3: expected a JSON object, found invalid character '}' looking for beginning of value", ""},
		{"message of a list", "{\n\"messages\":[\n{\"role\":\"user\",\"content\":\"a\"},\n{\"content\":\"\"}]}", `t.jsonl:4: expected a message with a "role", found an object without`, "[ openai] 3:user:a\n"},
		{"list of no array", `{"messages":{}}`, `t.jsonl:1: expected a message, a session entry, or an object with "messages" or "traj", found an object that is none of them`, ""},
		{"block", `{"messages":[{"role":"user","content":[1]}]}`, `t.jsonl:1: expected a JSON object in content[0], found a number`, "[ openai]\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := message.Read(strings.NewReader(test.input), message.ReadOptions{Name: "t.jsonl"})
			if got != nil || err == nil || err.Error() != test.want || !errors.Is(err, message.ErrMalformed) {
				t.Errorf("Read = %v, %v\nwant error %s", got, err, test.want)
			}
			if got := fmt.Sprintf("%T", err); got != "*message.LineError" { // itself, not wrapped
				t.Errorf("the error is a %s, want *message.LineError", got)
			}
			var passed []string
			got, err = message.Read(strings.NewReader(test.input), message.ReadOptions{
				Name: "t.jsonl", KeepGoing: true,
				OnError: func(err error) { passed = append(passed, err.Error()) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, passed); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.rest, outline(got)); diff != "" {
				t.Errorf("the rest (-want +got):\n%s", diff)
			}
		})
	}
}

// The first error of the file is returned, though syntax is checked before messages are decoded.
func TestReadFirstError(t *testing.T) {
	const input = `{"role":"owner"}` + "\n" + `torn`
	_, err := message.Read(strings.NewReader(input), message.ReadOptions{})
	if e, ok := errors.AsType[*message.LineError](err); !ok || e.Line != 1 {
		t.Errorf("Read = %v, want the error of line 1", err)
	}
	var lines []int
	got, err := message.Read(strings.NewReader(input), message.ReadOptions{KeepGoing: true, OnError: func(err error) {
		e, _ := errors.AsType[*message.LineError](err)
		lines = append(lines, e.Line)
	}})
	if err != nil || len(got) != 0 || !cmp.Equal(lines, []int{1, 2}) {
		t.Errorf("Read = %v, %v, errors of lines %v, want lines 1 and 2", got, err, lines)
	}
	if _, err := message.Read(strings.NewReader(input), message.ReadOptions{KeepGoing: true}); err != nil {
		t.Errorf("Read without OnError = %v", err)
	}
}

func TestReadIOError(t *testing.T) {
	broken := errors.New("broken pipe")
	_, err := message.Read(io.MultiReader(strings.NewReader(piSession), iotest.ErrReader(broken)), message.ReadOptions{Name: "f", KeepGoing: true})
	if !errors.Is(err, broken) || errors.Is(err, message.ErrMalformed) {
		t.Errorf("Read = %v, want the reader's error", err)
	}
}

func TestReadLongLine(t *testing.T) {
	// Far beyond every buffer of the standard library; the code knows no limit, so more would test the memory alone.
	const size = 8 << 20
	line := `{"role":"user","content":"` + strings.Repeat("x", size) + `"}`
	got, err := message.Read(strings.NewReader(line), message.ReadOptions{})
	if err != nil || len(got) != 1 || len(got[0].Messages) != 1 || len(got[0].Messages[0].Text()) != size {
		t.Errorf("a line of %d bytes was not read: %v", size, err)
	}
}

func TestReadDetects(t *testing.T) {
	tests := []struct{ message, want string }{
		{`{"role":"user","content":"a"}`, message.FormatOpenAI},
		{`{"role":"user","content":[{"type":"text","text":"a"}]}`, message.FormatOpenAI},
		{`{"role":"developer","content":"a"}`, message.FormatOpenAI},
		{`{"role":"assistant","content":null,"function_call":{"name":"f"}}`, message.FormatOpenAI},
		{`{"role":"user","content":[{"type":"image_url","image_url":{}}]}`, message.FormatOpenAI},
		{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"input_audio"}]}`, message.FormatOpenAI},
		{`{"role":"assistant","content":"a","stop_reason":"end_turn"}`, message.FormatAnthropic},
		{`{"role":"assistant","content":[{"type":"thinking","thinking":"a"}]}`, message.FormatAnthropic},
		{`{"role":"assistant","content":[{"type":"redacted_thinking"}]}`, message.FormatAnthropic},
		{`{"role":"user","content":[{"type":"document"}]}`, message.FormatAnthropic},
		{`{"role":"user","content":[{"type":"image","source":{}}]}`, message.FormatAnthropic},
		{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`, message.FormatAnthropic},
		{`{"role":"assistant","content":"a","stopReason":"stop"}`, message.FormatPi},
		{`{"role":"assistant","content":[{"type":"thinking","thinkingSignature":"a"}]}`, message.FormatPi},
		{`{"role":"assistant","content":[{"type":"toolCall","id":"a"}]}`, message.FormatPi},
		{`{"role":"user","content":[{"type":"image","data":"","mimeType":""}]}`, message.FormatPi},
		{`{"role":"compactionSummary","summary":"a"}`, message.FormatPi},
	}
	for _, test := range tests {
		got, err := message.Read(strings.NewReader(`{"role":"user","content":"a"}`+"\n"+test.message), message.ReadOptions{})
		if err != nil || len(got) != 1 || got[0].Format != test.want {
			t.Errorf("Read(%s) = %s, %v, want format %s", test.message, outline(got), err, test.want)
		}
	}
}
