package dataset_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment/dataset"
)

func read(t *testing.T, text string, o dataset.Options) []dataset.Session {
	t.Helper()
	sessions, err := dataset.Read(strings.NewReader(text), "dir/file.json", o)
	if err != nil {
		t.Fatal(err)
	}
	return sessions
}

func TestLoCoMo(t *testing.T) {
	sessions := read(t, `[{"qa": [], "sample_id": "conv-1", "conversation": {"speaker_a": "Ana", "speaker_b": "Ben",
		"session_2_date_time": "1:05 pm on 3 May, 2025", "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "Back again"}],
		"session_1_date_time": "9:00 am on 1 May, 2025", "session_1": [
			{"speaker": "Ana", "dia_id": "D1:1", "text": "Look", "blip_caption": "a boat"}, {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice"}]}}]`, dataset.Options{})
	if len(sessions) != 1 || sessions[0].Name() != "file.json#conv-1" || len(sessions[0].Messages) != 3 {
		t.Fatalf("%+v", sessions)
	}
	for i, want := range []struct {
		role       message.Role
		name, text string
		at         time.Time
	}{
		{message.User, "Ana", "Look [image: a boat]", time.Date(2025, 5, 1, 9, 0, 0, 0, time.UTC)},
		{message.Assistant, "Ben", "Nice", time.Date(2025, 5, 1, 9, 0, 1, 0, time.UTC)},
		{message.Assistant, "Ben", "Back again", time.Date(2025, 5, 3, 13, 5, 0, 0, time.UTC)},
	} {
		m := sessions[0].Messages[i]
		if m.Role != want.role || m.Name != want.name || m.Text() != want.text || !m.Time.Equal(want.at) || m.Raw == nil {
			t.Errorf("message %d = %+v, want %+v", i, m, want)
		}
	}
}

func TestBEAM(t *testing.T) {
	sessions := read(t, `[{"batch_number": 1, "turns": [[{"role": "user", "id": 0, "time_anchor": "March-03-2024", "content": "Hello"},
		{"role": "assistant", "id": 1, "content": "Hi"}]]}]`, dataset.Options{})
	m := sessions[0].Messages
	if len(m) != 2 || m[0].Role != message.User || m[1].Text() != "Hi" || m[1].Time.Sub(m[0].Time) != time.Second || m[0].Time.Year() != 2024 {
		t.Errorf("%+v", m)
	}
}

func TestTeamChat(t *testing.T) {
	sessions := read(t, `{"version": "1", "conversation_list": [
		{"message_id": "m1", "create_time": "2025-02-01T02:00:00Z", "sender": "u1", "sender_name": "Li", "content": "早"},
		{"message_id": "m2", "create_time": "2025-02-01T02:01:00Z", "sender": "u2", "content": {"file": "a.pdf"}}]}`, dataset.Options{})
	m := sessions[0].Messages
	if len(m) != 2 || m[0].Name != "Li" || m[0].ID != "m1" || m[1].Name != "u2" || !strings.Contains(m[1].Text(), "a.pdf") {
		t.Errorf("%+v", m)
	}
}

const runs = `[{"task_id": 1, "trial": 0, "traj": [{"role": "system", "content": "policy"}, {"role": "user", "content": "one"}]},
	{"task_id": 2, "trial": 0, "traj": [{"role": "system", "content": "policy"}, {"role": "user", "content": "two"}]},
	{"task_id": 3, "trial": 0, "traj": [{"role": "system", "content": "other"}, {"role": "user", "content": "three"}]}]`

func TestJoin(t *testing.T) {
	if n := len(read(t, runs, dataset.Options{})); n != 3 {
		t.Errorf("%d sessions, want 3", n)
	}
	sessions := read(t, runs, dataset.Options{Join: true})
	var texts []string
	for _, m := range sessions[0].Messages {
		texts = append(texts, m.Text())
	}
	if got, want := strings.Join(texts, " "), "policy one two other three"; len(sessions) != 1 || got != want {
		t.Errorf("%d sessions, %q, want one with %q", len(sessions), got, want)
	}
}

func TestMalformed(t *testing.T) {
	const text = `{"role":"user","content":"a"}
{"role":"user",
{"role":"user","content":"b"}
`
	_, err := dataset.Read(strings.NewReader(text), "x.jsonl", dataset.Options{})
	if line, ok := errors.AsType[*message.LineError](err); !ok || line.Line != 2 || line.File != "x.jsonl" {
		t.Errorf("error %v, want one of line 2", err)
	}
	var seen []error
	sessions := read(t, text, dataset.Options{KeepGoing: true, OnError: func(err error) { seen = append(seen, err) }})
	if len(seen) != 1 || len(sessions[0].Messages) != 2 {
		t.Errorf("errors %v, %d messages; want one, and two", seen, len(sessions[0].Messages))
	}
	if _, err := dataset.Read(strings.NewReader(`[{"conversation": 5}]`), "x.json", dataset.Options{}); err == nil {
		t.Error("a broken collection is no error")
	}
}
