// Command generate writes the example conversation of package transcript. The same program writes the same bytes.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"
)

// step is one answer of the model that calls a tool, with the tool's result.
type step struct {
	say, tool string
	args      map[string]string
	result    string
	failed    bool
}

// turn is what a user asks, and what happens until the answer.
type turn struct {
	user   string
	steps  []step
	answer string
}

func main() {
	output := flag.String("output", "example.jsonl", "file to write")
	flag.Parse()
	data, err := write(scenario())
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*output, data, 0o600); err != nil {
		log.Fatal(err)
	}
}

type block struct {
	Type      string            `json:"type"`
	Text      string            `json:"text,omitempty"`
	ID        string            `json:"id,omitempty"`
	Name      string            `json:"name,omitempty"`
	Arguments map[string]string `json:"arguments,omitempty"`
}

type body struct {
	Role       string  `json:"role"`
	Content    []block `json:"content"`
	ToolCallID string  `json:"toolCallId,omitempty"`
	ToolName   string  `json:"toolName,omitempty"`
	IsError    *bool   `json:"isError,omitempty"`
	StopReason string  `json:"stopReason,omitempty"`
	Timestamp  int64   `json:"timestamp"`
}

type entry struct {
	Type      string    `json:"type"`
	ID        string    `json:"id"`
	Timestamp time.Time `json:"timestamp"`
	CWD       string    `json:"cwd,omitempty"`
	Message   *body     `json:"message,omitempty"`
}

// writer appends entries, with a clock that moves like an afternoon of work.
type writer struct {
	bytes.Buffer
	now time.Time
	n   int
	err error
}

func (w *writer) entry(e entry) {
	w.n++
	if e.Timestamp = w.now; e.ID == "" {
		e.ID = fmt.Sprintf("m%04d", w.n)
	}
	if e.Message != nil {
		e.Message.Timestamp = w.now.UnixMilli()
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *writer) message(after time.Duration, m body) {
	w.now = w.now.Add(after)
	w.entry(entry{Type: "message", Message: &m})
}

func write(turns []turn) ([]byte, error) {
	w := &writer{now: time.Date(2026, 3, 3, 13, 0, 0, 0, time.UTC)}
	w.entry(entry{Type: "session", ID: "afternoon", CWD: "/home/ines/tidetable"})
	call := 0
	for _, t := range turns {
		w.message(4*time.Minute, body{Role: "user", Content: []block{{Type: "text", Text: t.user}}})
		for _, s := range t.steps {
			call++
			id := fmt.Sprintf("call_%03d", call)
			var content []block
			if s.say != "" {
				content = append(content, block{Type: "text", Text: s.say})
			}
			content = append(content, block{Type: "toolCall", ID: id, Name: s.tool, Arguments: s.args})
			w.message(6*time.Second, body{Role: "assistant", Content: content, StopReason: "toolUse"})
			w.message(time.Second, body{
				Role: "toolResult", ToolCallID: id, ToolName: s.tool, IsError: &s.failed, Content: []block{{Type: "text", Text: s.result}},
			})
		}
		w.message(9*time.Second, body{Role: "assistant", Content: []block{{Type: "text", Text: t.answer}}, StopReason: "stop"})
	}
	return w.Bytes(), w.err
}
