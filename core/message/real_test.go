package message_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/datadir"
)

// readReal reads a file of the real data, which is not part of the repository.
func readReal(t *testing.T, name string) ([]byte, []message.Conversation) {
	t.Helper()
	data, err := os.ReadFile(datadir.File(t, name))
	if err != nil {
		t.Fatal(err)
	}
	conversations, err := message.Read(bytes.NewReader(data), message.ReadOptions{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return data, conversations
}

// roundTrip holds every message against the bytes of the file, found by a reader of its own.
func roundTrip(t *testing.T, c message.Conversation, want []json.RawMessage) {
	t.Helper()
	if len(c.Messages) != len(want) {
		t.Fatalf("%s: %d messages, want %d", c.ID, len(c.Messages), len(want))
	}
	for i, m := range c.Messages {
		if got := encode(t, c.Format, m); got != string(want[i]) {
			t.Errorf("%s: message of line %d came back as %.200s", c.ID, c.Lines[i], got)
		}
		edited := edit(m, func(p *message.Part) {
			if p.Kind == message.Text || p.Kind == message.ToolResult {
				p.Text += " [edited]"
			}
		})
		if got := decode(t, c.Format, encode(t, c.Format, edited)); got.Text() != edited.Text() || len(got.Calls()) != len(m.Calls()) {
			t.Errorf("%s: message of line %d lost something when edited", c.ID, c.Lines[i])
		}
		for _, to := range message.Formats() {
			for _, piece := range message.Split(m, to) {
				decode(t, to, encode(t, to, piece))
			}
		}
	}
}

func TestRealPiSession(t *testing.T) {
	data, conversations := readReal(t, filepath.Join("pi", "large-session.jsonl"))
	var want []json.RawMessage
	for line := range bytes.Lines(data) {
		var entry struct {
			Type    string
			Message json.RawMessage
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Type == "message" {
			want = append(want, entry.Message)
		}
	}
	if len(conversations) != 1 || conversations[0].Format != message.FormatPi {
		t.Fatalf("%d conversations, want one of pi", len(conversations))
	}
	roundTrip(t, conversations[0], want)
	calls := 0
	for _, m := range conversations[0].Messages {
		calls += len(m.Calls())
	}
	if calls != 391 { // as its documentation says
		t.Errorf("%d tool calls, want 391", calls)
	}
}

func TestRealTauBench(t *testing.T) {
	data, conversations := readReal(t, filepath.Join("tau-bench", "airline-dev.json"))
	var runs []struct{ Traj []json.RawMessage }
	if err := json.Unmarshal(data, &runs); err != nil {
		t.Fatal(err)
	}
	if len(conversations) != len(runs) {
		t.Fatalf("%d conversations, want %d", len(conversations), len(runs))
	}
	for i, c := range conversations {
		if c.Format != message.FormatOpenAI {
			t.Errorf("%s: format %q, want openai", c.ID, c.Format)
		}
		roundTrip(t, c, runs[i].Traj)
	}
}
