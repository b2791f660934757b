package history

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/datadir"
)

// readData returns a file of the real data, which is no part of the repository.
func readData(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(datadir.File(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t *testing.T, format string, raw []byte) message.Message {
	t.Helper()
	codec, err := message.Lookup(format)
	if err != nil {
		t.Fatal(err)
	}
	m, err := codec.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// replay holds every prefix that could have been a call of the model to the promises of Apply.
func replay(t *testing.T, msgs []message.Message, step int) {
	t.Helper()
	if testing.Short() {
		step *= 3
	}
	for k := len(msgs); k > 0; k -= step {
		if why := broken(msgs[:k]); why != "" {
			t.Fatalf("the first %d of %d messages: %s", k, len(msgs), why)
		}
	}
}

func TestRealCodingSession(t *testing.T) {
	var msgs []message.Message
	for line := range bytes.Lines(readData(t, "pi/large-session.jsonl")) {
		var entry struct {
			Type    string          `json:"type"`
			Message json.RawMessage `json:"message"`
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Type == "message" {
			msgs = append(msgs, decode(t, message.FormatPi, entry.Message))
		}
	}
	replay(t, msgs, 97)

	policy, err := PolicyFor(ProviderAnthropic)
	if err != nil {
		t.Fatal(err)
	}
	if len(Check(msgs, policy)) == 0 {
		t.Error("Check found nothing in a session with calls that have no result")
	}
	out := Apply(msgs, policy)
	codec, err := message.Lookup(message.FormatPi)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range out {
		raw, err := codec.Encode(m)
		if err != nil {
			t.Fatalf("message %d cannot be written: %v", i, err)
		}
		if back := decode(t, message.FormatPi, raw); message.Fingerprint(back) != message.Fingerprint(m) {
			t.Errorf("message %d reads differently once written:\n%s%s", i, outline([]message.Message{m}), outline([]message.Message{back}))
		}
	}
	t.Logf("%d messages in, %d out", len(msgs), len(out))
}

func TestRealAgentRuns(t *testing.T) {
	var runs []struct {
		Traj []json.RawMessage `json:"traj"`
	}
	if err := json.Unmarshal(readData(t, "tau-bench/airline-dev.json"), &runs); err != nil {
		t.Fatal(err)
	}
	for i, run := range runs {
		if testing.Short() && i > 10 {
			break
		}
		var msgs []message.Message
		for _, raw := range run.Traj {
			msgs = append(msgs, decode(t, message.FormatOpenAI, raw))
		}
		replay(t, msgs, 29)
	}
}
