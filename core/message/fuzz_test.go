package message_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/contextengine/contextengine/core/message"
)

func FuzzOpenAI(f *testing.F)    { fuzzCodec(f, message.FormatOpenAI) }
func FuzzAnthropic(f *testing.F) { fuzzCodec(f, message.FormatAnthropic) }
func FuzzPi(f *testing.F)        { fuzzCodec(f, message.FormatPi) }

// fuzzCodec checks what a codec promises for all bytes: it rejects them with ErrMalformed, or gives them back; and a
// message it accepted can be edited and written in every format.
func fuzzCodec(f *testing.F, format string) {
	f.Helper()
	for _, messages := range shapes {
		for _, raw := range messages {
			f.Add([]byte(raw))
		}
	}
	f.Add([]byte(`{"role":"assistant","content":"a","refusal":"b","function_call":{"name":"f"},"tool_calls":[{"id":""}]}`))
	f.Add([]byte(" {\"role\":\"user\",\"\\u0063ontent\":\"a\",\"content\":[]}\n"))
	c := codec(f, format)
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := c.Decode(raw)
		if err != nil {
			if !errors.Is(err, message.ErrMalformed) {
				t.Fatalf("Decode = %v, want ErrMalformed", err)
			}
			return
		}
		if got := encode(t, format, m); got != string(bytes.Trim(raw, " \t\r\n")) {
			t.Fatalf("Encode(Decode) = %q, want %q", got, raw)
		}
		if !m.Role.Valid() || len(message.Fingerprint(m)) != 32 {
			t.Fatalf("Decode = %+v", m)
		}
		edited := edit(m, func(p *message.Part) {
			switch p.Kind {
			case message.Text, message.ToolResult:
				p.Text += "\n[edited]"
			case message.ToolCall:
				p.Args = `{"edited":true}`
			}
		})
		out := encode(t, format, edited)
		back := decode(t, format, out)
		if back.Text() != edited.Text() || back.Role != m.Role || len(back.Calls()) != len(m.Calls()) {
			t.Fatalf("edited message %q\nbecame %q: text %q, want %q", raw, out, back.Text(), edited.Text())
		}
		for _, to := range message.Formats() {
			for _, piece := range message.Split(m, to) {
				b, err := codec(t, to).Encode(piece)
				if err != nil {
					// A call outside an assistant message has no place elsewhere.
					if !errors.Is(err, message.ErrMalformed) || piece.Role == message.Assistant {
						t.Fatalf("Encode(%q) to %s: %v", raw, to, err)
					}
					continue
				}
				decode(t, to, string(b))
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(piSession))
	f.Add([]byte("[\n{\"role\":\"user\",\"content\":\"a\"},\n17]"))
	f.Add([]byte(`{"system":"s","messages":[{"role":"user","content":"a"}]}` + "\n" + `{"traj":[{}]}`))
	f.Add([]byte("{\n\"messages\":[\n{\"role\":}]}"))
	f.Add([]byte(`[{"task_id":1,"trial":2,"traj":[{"role":"assistant","content":null}]}]`))
	f.Add([]byte(`{"role":"user","content":"a"}` + "\n" + `{"role":"us`))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := 1 + bytes.Count(data, []byte{'\n'})
		check := func(err error) {
			if e, ok := errors.AsType[*message.LineError](err); !ok || e.Line < 1 || e.Line > lines || !errors.Is(err, message.ErrMalformed) {
				t.Errorf("error %v for %q", err, data)
			}
		}
		faults := 0
		got, err := message.Read(bytes.NewReader(data), message.ReadOptions{KeepGoing: true, OnError: func(err error) {
			faults++
			check(err)
		}})
		if err != nil {
			t.Fatalf("Read = %v, want to keep going", err)
		}
		for _, c := range got {
			if len(c.Lines) != len(c.Messages) {
				t.Fatalf("%d lines for %d messages", len(c.Lines), len(c.Messages))
			}
			for i, m := range c.Messages {
				if c.Lines[i] < 1 || c.Lines[i] > lines {
					t.Errorf("line %d of %d", c.Lines[i], lines)
				}
				encode(t, c.Format, m)
			}
		}
		_, err = message.Read(bytes.NewReader(data), message.ReadOptions{})
		if (err != nil) != (faults > 0) {
			t.Errorf("Read = %v, but %d errors when it keeps going", err, faults)
		}
		if err != nil {
			check(err)
		}
	})
}
