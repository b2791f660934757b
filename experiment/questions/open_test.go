package questions_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment/questions"
)

func open(t *testing.T, elem ...string) *questions.Dataset {
	t.Helper()
	d, err := questions.Open(filepath.Join(append([]string{"testdata"}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// asked writes the questions of a conversation so that they can be compared.
func asked(c questions.Conversation) []string {
	var out []string
	for _, q := range c.Questions {
		out = append(out, q.Category+"|"+q.Text+"|"+q.Answer+"|"+strings.Join(q.Evidence, " "))
	}
	return out
}

func TestLoCoMo(t *testing.T) {
	d := open(t, "locomo.json")
	if d.Name != "locomo.json" || d.Format != "locomo" || d.Unit != questions.WholeMessage || len(d.Conversations) != 1 {
		t.Fatalf("%+v", d)
	}
	c := d.Conversations[0]
	if c.ID != "conv-1" || c.Messages() != 3 || len(c.Sessions) != 2 || c.Sessions[1].ID != "session_3" {
		t.Fatalf("sessions are %+v", c.Sessions)
	}
	m := c.Sessions[0].Messages
	if m[0].ID != "D1:1" || m[0].Role != message.User || m[0].Name != "Ana" || m[0].Text() != "I named the boat Wren. [image: a small boat]" ||
		!m[1].Time.Equal(time.Date(2025, 5, 1, 9, 1, 0, 0, time.UTC)) {
		t.Errorf("messages are %+v", m)
	}
	want := []string{
		"single-hop|What is the boat called?|Wren|D1:1",
		"multi-hop|Where does Ben work, and how is it?|at the bakery, hard|D1:2 D3:1",
		"temporal|What year is it?|2025|D1:1",
		"adversarial|What did Ben name the boat?||D1:1",
		"open-domain|Is anything else known?|no|",
	}
	if diff := cmp.Diff(want, asked(c)); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"multi-hop", "temporal", "single-hop", "adversarial"}, d.Categories()); diff != "" {
		t.Errorf("categories (-want +got):\n%s", diff)
	}
	if d.Measured() != 4 || d.Groups[0].Has("adversarial") || !d.Groups[1].Has("adversarial") {
		t.Errorf("%d measured, groups %+v", d.Measured(), d.Groups)
	}
	notes := []string{
		"2 of the names in evidence are of no turn that is there and are passed over",
		"1 of the questions name no evidence that is there and are left out",
	}
	if diff := cmp.Diff(notes, d.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestBEAM(t *testing.T) {
	all, one := open(t, "beam"), open(t, "beam", "1")
	if len(all.Conversations) != 2 || all.Unit != questions.Passage || len(one.Conversations) != 1 {
		t.Fatalf("%d and %d conversations", len(all.Conversations), len(one.Conversations))
	}
	c := all.Conversations[0]
	if c.ID != "1" || len(c.Sessions) != 2 || c.Sessions[1].ID != "batch-1" {
		t.Fatalf("%+v", c)
	}
	m := c.Sessions[1].Messages
	if m[1].ID != "3" || m[1].Role != message.Assistant || !m[1].Time.Equal(time.Date(2024, 3, 15, 0, 2, 0, 0, time.UTC)) {
		t.Errorf("%+v", m)
	}
	want := []string{
		"abstention|Who comes along?||",
		"contradiction_resolution|Where to?|Oslo|0",
		"knowledge_update|What is the budget?|900 euros|2 3",
	}
	if diff := cmp.Diff(want, asked(c)); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	if all.Digest() == one.Digest() || one.Digest() != open(t, "beam", "1").Digest() {
		t.Error("a digest does not tell data sets apart, or one from itself")
	}
}

// Files beside the chats, such as a licence, are none of them.
func TestBEAMBesideFiles(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.CopyFS(dir, os.DirFS("testdata/beam")), os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("as you like"), 0o600)); err != nil {
		t.Fatal(err)
	}
	d, err := questions.Open(dir)
	if err != nil || len(d.Conversations) != 2 {
		t.Errorf("Open = %v, want the 2 conversations", err)
	}
}

func TestLines(t *testing.T) {
	d := open(t, "own.jsonl")
	c := d.Conversations[0]
	if d.Format != "jsonl" || len(d.Conversations) != 2 || c.ID != "1" || len(c.Sessions) != 2 || c.Messages() != 3 {
		t.Fatalf("%+v", d)
	}
	m := c.Sessions[0].Messages
	if m[0].Name != "Ana" || !m[0].Time.Equal(time.Date(2025, 5, 5, 9, 0, 0, 0, time.UTC)) || m[1].Role != message.Assistant || !m[1].Time.IsZero() {
		t.Errorf("%+v", m)
	}
	if diff := cmp.Diff([]string{"names|What is the boat called?|Wren|m1"}, asked(c)); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

const (
	aMessage  = `{"id":"m1","text":"hello"}` + "\n"
	aQuestion = `{"question":"what?","evidence":["m1"]}` + "\n"
)

// TestErrors: errors name file, place and field, and what to do, and nothing of the content.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"x.jsonl", aMessage + `{"question":"what?","evidence":["m9"]}`, `line 2: field "evidence": "m9" is the id of no message of conversation "1": name messages of the same conversation: invalid`},
		{"x.jsonl", aMessage + `{"question":"what?"}`, `line 2: field "evidence": it is missing: list the ids of the messages that hold the answer, or give [] for a question that is not measured: invalid`},
		{"x.jsonl", aMessage + aMessage, `line 2: field "id": it is missing, or another message of the conversation has it: give each message an id of its own: invalid`},
		{"x.jsonl", `{"id":"m1","text":" "}`, `line 1: field "text": it is empty: leave the message out: invalid`},
		{"x.jsonl", `{"id":"m1","text":"secret","role":"robot"}`, `line 1: field "role": "robot" is none of user, assistant, system, tool: invalid`},
		{"x.jsonl", `{"id":"m1","text":"secret","time":"today"}`, `line 1: field "time": not a time such as "2025-05-05T09:00:00Z" (RFC 3339): invalid`},
		{"x.jsonl", `{"id":"m1","text":"secret","sesion":"s"}`, `line 1: unknown field "sesion", did you mean "session"? (a message has: conversation, session, id, role, name, time, text): invalid`},
		{"x.jsonl", `{"id":"m1"}`, `line 1: neither "text" nor "question" is there: a line is a message, which has "text", or a question, which has "question": invalid`},
		{"x.jsonl", `{"id":"m1","text":5}`, `line 1: field "text": found a JSON number, want text: invalid`},
		{"x.jsonl", aMessage + `{"question":"what?","evidence":"m1"}`, `line 2: field "evidence": found a JSON string, want a list: invalid`},
		{"x.jsonl", aMessage + `{"question":`, `line 2: not JSON at byte 12: check that the file is complete: invalid`},
		{"x.jsonl", aMessage, `no question with evidence: name the messages that hold the answer in the field "evidence": invalid`},
		{"x.jsonl", `{"question":"what?","evidence":[]}`, `no messages: a data set needs conversations and questions about them: invalid`},
		{"x.jsonl", "\n", `the file is empty: invalid`},
		{"chat.json", `[]`, `this is one of the two files of a BEAM chat: give the folder that holds chat.json and pq.json: invalid`},
		{"x.json", `[{"qa":[]}]`, `sample 0: field "conversation": it is missing: LoCoMo's samples have "conversation" and "qa"; for data of your own use JSON lines: invalid`},
		{"x.json", `[{"sample_id":"s","conversation":{"session_1":[{"speaker":"A","text":"secret"}]}}]`,
			`sample 0 (s): session_1[0]: field "dia_id": it is empty: evidence names turns by it: invalid`},
		{"x.json", `[{"conversation":{"session_1_date_time":"noon","session_1":[]}}]`, `sample 0: session_1_date_time: not a time such as "1:56 pm on 8 May, 2023": invalid`},
		{"x.json", `[{"conversation":{},"qa":[{"question":"q","category":9}]}]`, `sample 0: qa[0]: field "category": must be 1 to 5: invalid`},
	} {
		path := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := questions.Open(path)
		if err == nil || !errors.Is(err, core.ErrInvalid) || !strings.HasSuffix(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
			t.Errorf("%s\ngot  %v\nwant ...%s", c.text, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v tells what the file says", err)
		}
	}
}

func TestErrorsOfFolders(t *testing.T) {
	empty := t.TempDir()
	half := t.TempDir()
	if err := os.WriteFile(filepath.Join(half, "chat.json"), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := t.TempDir()
	for name, text := range map[string]string{"chat.json": `[{"turns":[[{"role":"user","id":1,"content":"a"},{"role":"user","id":1,"content":"b"}]]}]`, "pq.json": `{}`} {
		if err := os.WriteFile(filepath.Join(bad, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{
		empty: "the folder holds no data set",
		half:  "a BEAM chat is a folder with chat.json and pq.json",
		bad:   `chat.json": batch 0: turns[0][1]: field "id": it is missing or there twice`,
	} {
		if _, err := questions.Open(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := questions.Open(filepath.Join(empty, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that the file is not there", err)
	}
}

func FuzzOpen(f *testing.F) {
	for _, name := range []string{"locomo.json", "own.jsonl", "beam/1/chat.json", "beam/1/pq.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(aMessage + aQuestion))
	pq, err := os.ReadFile("testdata/beam/1/pq.json")
	if err != nil {
		f.Fatal(err)
	}
	chat, err := os.ReadFile("testdata/beam/1/chat.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, d := range questions.Parsed(data, chat, pq) {
			for _, c := range d.Conversations {
				known := map[string]bool{}
				for _, s := range c.Sessions {
					for _, m := range s.Messages {
						known[m.ID] = true
					}
				}
				for _, q := range c.Questions {
					for _, id := range q.Evidence {
						if !known[id] {
							t.Errorf("evidence %q is no message", id)
						}
					}
				}
			}
			if d.Measured() == 0 {
				t.Error("a data set without questions to measure is no error")
			}
		}
	})
}
