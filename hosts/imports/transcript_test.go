package imports_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/imports"
)

const chatLines = `{"role":"system","content":"be brief"}
{"role":"user","content":"ok"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}
{"role":"tool","tool_call_id":"c1","content":"seen"}
{"role":"assistant","content":"ok"}
{"role":"user","content":"ok"}
`

func TestTranscript(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	r := importText(t, s, "dir/talk.jsonl", chatLines, imports.Options{Agent: "ada"})
	wantCounts(t, "import", r, "1 sessions, 6 messages: 6 imported, 0 known, 0 erased, 0 skipped")
	if r.Untimed != 6 || r.Format != imports.Transcript {
		t.Errorf("%d without time, format %q", r.Untimed, r.Format)
	}
	want := `s:be brief|u:ok|a:look({"at":1})|t:seen|a:ok|u:ok`
	if got := s.texts(t, "ada", "talk"); got != want {
		t.Errorf("the session holds %q, want %q", got, want)
	}
	// The file has grown by a message that says the same as two before it.
	longer := chatLines + `{"role":"user","content":"ok"}` + "\n"
	wantCounts(t, "after it grew", importText(t, s, "talk.jsonl", longer, imports.Options{Agent: "ada"}), "1 sessions, 7 messages: 1 imported, 6 known, 0 erased, 0 skipped")
	wantCounts(t, "again", importText(t, s, "talk.jsonl", longer, imports.Options{Agent: "ada"}), "1 sessions, 7 messages: 0 imported, 7 known, 0 erased, 0 skipped")
}

func TestSeveralChats(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	text := `{"id":"one","messages":[{"role":"user","content":"first"}]}` + "\n" + `{"messages":[{"role":"user","content":"second"}]}` + "\n"
	importText(t, s, "chats.jsonl", text, imports.Options{})
	if got := s.texts(t, "main", "chats#one") + "," + s.texts(t, "main", "chats#1"); got != "u:first,u:second" {
		t.Errorf("sessions hold %q", got)
	}
	if _, err := imports.Data(t.Context(), "chats.jsonl", []byte(text), memorySink(t), imports.Options{Session: "mine"}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("one name for two sessions: %v, want ErrInvalid", err)
	}
}

func TestSessionFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "agents", "bob", "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("sessions.json", `{"agent:bob:main":{"sessionId":"s1"},"agent:bob:other":{"sessionId":"s9"}}`)
	text := headerLine + "\n" + event("1", "", "user", "hello", 1) + "\n" + event("b", "1", "assistant", "not kept", 2) + "\n" + event("2", "1", "assistant", "hi", 3) + "\n"
	s := memorySink(t)
	r := importFile(t, s, put("s1.jsonl", text), imports.Options{})
	wantCounts(t, "a session that the index knows", r, "1 sessions, 2 messages: 2 imported, 0 known, 0 erased, 0 skipped")
	if got := s.texts(t, "bob", "agent:bob:main"); got != "u:hello|a:hi" {
		t.Errorf("the session holds %q", got)
	}
	importFile(t, s, put("s2.jsonl.zst", string(stored([]byte(strings.Replace(text, `"s1"`, `"s2"`, 1))))), imports.Options{Branches: true})
	if got := s.texts(t, "bob", "s2") + "," + s.texts(t, "bob", "s2#b"); got != "u:hello|a:hi,a:not kept" {
		t.Errorf("a compressed session that it does not know holds %q", got)
	}
	// A parent is missing: nobody can tell what is shown, so all of it is taken.
	lost := headerLine + "\n" + event("3", "gone", "user", "a", 1) + "\n" + event("4", "3", "assistant", "b", 2) + "\n"
	wantCounts(t, "a broken tree", importFile(t, s, put("s3.jsonl", strings.Replace(lost, `"s1"`, `"s3"`, 1)), imports.Options{}), "1 sessions, 2 messages: 2 imported, 0 known, 0 erased, 0 skipped")
}

func TestMalformedLines(t *testing.T) {
	t.Parallel()
	text := strings.Replace(chatLines, `{"role":"tool","tool_call_id":"c1","content":"seen"}`, `{"role":"tool","tool`, 1)
	_, err := imports.Data(t.Context(), "talk.jsonl", []byte(text), memorySink(t), imports.Options{})
	if !errors.Is(err, imports.ErrMalformed) || !strings.Contains(err.Error(), "talk.jsonl:4: expected") {
		t.Errorf("%v, want ErrMalformed naming the line", err)
	}
	s := memorySink(t)
	r := importText(t, s, "talk.jsonl", text, imports.Options{KeepGoing: true})
	wantCounts(t, "keeping going", r, "1 sessions, 5 messages: 5 imported, 0 known, 0 erased, 1 skipped")
	if len(r.Skipped) != 1 || r.Skipped[0].Place != "talk.jsonl:4" || strings.Contains(r.Skipped[0].Reason, "seen") {
		t.Errorf("skipped %+v", r.Skipped)
	}
	// The line was mended: it belongs in front of what is stored, so it goes beside it, and stays there.
	for i, want := range []string{"6 messages: 1 imported, 5 known", "6 messages: 0 imported, 6 known"} {
		if got := counts(importText(t, s, "talk.jsonl", chatLines, imports.Options{})); !strings.Contains(got, want) {
			t.Errorf("mended, time %d: %s, want %s", i+1, got, want)
		}
	}
	if got := s.texts(t, "main", "talk#earlier"); got != "t:seen" {
		t.Errorf("beside the session: %q", got)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "x.sqlite")
	if err := os.WriteFile(file, append([]byte("SQLite format 3\x00"), make([]byte, 100)...), 0o600); err != nil {
		t.Fatal(err)
	}
	store := sqliteStore(t)
	for _, tt := range []struct {
		name, path string
		from       imports.Format
		want       string
	}{
		{"a folder", dir, "", "is a folder"},
		{"nothing", filepath.Join(dir, "absent"), "", "no such file"},
		{"a broken database", file, "", "x.sqlite"},
		{"a store of ours", store.Path(), "", "store of this program"},
		{"another format", store.Path(), imports.OpenClaw, "store of this program"},
	} {
		if _, err := imports.File(t.Context(), tt.path, memorySink(t), imports.Options{From: tt.from}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	for from, want := range map[imports.Format]string{"opnclaw": "is not one of", imports.LosslessClaw: "is not the SQLite file"} {
		if _, err := imports.Data(t.Context(), "x", []byte("{}"), memorySink(t), imports.Options{From: from}); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("from %q: %v, want ErrInvalid", from, err)
		}
	}
}
