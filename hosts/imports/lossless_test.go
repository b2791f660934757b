package imports_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/hosts/imports"
)

// lcm makes a file as lossless-claw has it, with the tables and columns that an import reads.
func lcm(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lcm.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append([]string{
		`CREATE TABLE conversations (conversation_id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, session_key TEXT, active INTEGER NOT NULL DEFAULT 1)`,
		`CREATE TABLE messages (message_id INTEGER PRIMARY KEY, conversation_id INTEGER NOT NULL, seq INTEGER NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL,
			token_count INTEGER NOT NULL, transcript_entry_id TEXT, created_at TEXT NOT NULL)`,
		`CREATE TABLE message_parts (part_id TEXT PRIMARY KEY, message_id INTEGER NOT NULL, session_id TEXT, part_type TEXT NOT NULL, ordinal INTEGER NOT NULL,
			text_content TEXT, tool_call_id TEXT, tool_name TEXT, tool_input TEXT, tool_output TEXT, tool_error TEXT, metadata TEXT)`,
		`CREATE TABLE summaries (summary_id TEXT PRIMARY KEY, conversation_id INTEGER)`,
	}, statements...) {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLosslessClaw(t *testing.T) {
	t.Parallel()
	path := lcm(t,
		`INSERT INTO conversations VALUES (1, 's-old', 'agent:ada:main', 0), (2, 's-new', 'agent:ada:main', 1), (3, 'plain', NULL, 1)`,
		`INSERT INTO summaries VALUES ('a', 2), ('b', 2)`,
		`INSERT INTO messages VALUES
			(10, 1, 0, 'user', 'before the reset', 4, NULL, '2026-11-20 10:00:00'),
			(20, 2, 1, 'user', 'read it', 2, 'e1', '2026-11-21 10:00:00'),
			(21, 2, 2, 'assistant', 'I will', 2, 'e2', '2026-11-21 10:00:01'),
			(22, 2, 3, 'tool', 'marigold', 2, 'e3', '2026-11-21 10:00:02'),
			(23, 2, 4, 'assistant', '', 2, NULL, '2026-11-21T10:00:03.500Z'),
			(24, 2, 5, 'user', '$ ls', 2, NULL, 'sometime'),
			(30, 3, 1, 'user', 'no parts at all', 2, NULL, '2026-11-21 11:00:00')`,
		`INSERT INTO message_parts (part_id, message_id, part_type, ordinal, text_content, tool_call_id, tool_name, tool_input, tool_output, metadata) VALUES
			('p0', 20, 'text', 0, 'read it', NULL, NULL, NULL, NULL, '{"originalRole":"user"}'),
			('p1', 21, 'reasoning', 0, 'hm', NULL, NULL, NULL, NULL, '{"originalRole":"assistant","modelProvider":"acme","modelApi":"chat","modelId":"m1","rawType":"thinking","raw":{"type":"thinking","thinking":"hm","thinkingSignature":"sig"}}'),
			('p2', 21, 'text', 1, 'I will', NULL, NULL, NULL, NULL, '{"raw":{"type":"text","text":"I will"}}'),
			('p3', 21, 'tool', 2, NULL, 'c1', 'read', '{"path":"note.txt"}', NULL, '{"rawType":"toolCall","raw":{"type":"toolCall","id":"c1","name":"read","arguments":{"path": "note.txt"},"extra":1}}'),
			('p4', 22, 'text', 0, 'marigold', 'c1', 'read', NULL, NULL, '{"originalRole":"toolResult","toolCallId":"c1","toolName":"read","isError":false,"raw":{"type":"text","text":"marigold"},"externalizedFileId":"file_1"}'),
			('p5', 23, 'tool', 0, NULL, 'c2', 'list', '"{\"at\":1}"', NULL, '{"rawType":"function_call","raw":{"type":"function_call","call_id":"c2"}}'),
			('p6', 24, 'text', 0, 'a.txt', NULL, NULL, NULL, NULL, '{"source":"bash-exec","command":"ls"}')`,
	)
	s := memorySink(t)
	r := importFile(t, s, path, imports.Options{})
	wantCounts(t, "import", r, "3 sessions, 7 messages: 7 imported, 0 known, 0 erased, 0 skipped")
	if r.Format != imports.LosslessClaw || r.Left["summaries"] != 2 || r.Left["parts that are kept in files beside the database"] != 1 || r.Untimed != 1 {
		t.Errorf("format %q, left %v, %d without time", r.Format, r.Left, r.Untimed)
	}
	want := `u:read it|a:I willread({"path": "note.txt"})|t:marigold|a:list({"at":1})|u:$ ls` + "\n" + `a.txt`
	if got := s.texts(t, "ada", "agent:ada:main"); got != want {
		t.Errorf("the session holds %q, want %q", got, want)
	}
	e := s.stored(t, "ada", "agent:ada:main")
	wantRaw := `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"sig"},{"type":"text","text":"I will"},` +
		`{"type":"toolCall","id":"c1","name":"read","arguments":{"path": "note.txt"},"extra":1}],"api":"chat","provider":"acme","model":"m1","timestamp":1795255201000}`
	if got := string(e[1].Message.Raw); got != wantRaw {
		t.Errorf("the answer is\n%s, want\n%s", got, wantRaw)
	}
	if m := e[2].Message; m.ID != "e3" || m.Results()[0].CallID != "c1" || m.Results()[0].Name != "read" || !m.Time.Equal(time.Date(2026, 11, 21, 10, 0, 2, 0, time.UTC)) {
		t.Errorf("the result: %+v", m)
	}
	for place, want := range map[[2]string]string{{"ada", "agent:ada:main#s-old"}: "u:before the reset", {"main", "plain"}: "u:no parts at all"} {
		if got := s.texts(t, place[0], place[1]); got != want {
			t.Errorf("session %v holds %q, want %q", place, got, want)
		}
	}
	wantCounts(t, "again", importFile(t, s, path, imports.Options{}), "3 sessions, 7 messages: 0 imported, 7 known, 0 erased, 0 skipped")
}

func TestLosslessClawOldSchema(t *testing.T) {
	t.Parallel()
	path := lcm(t, `ALTER TABLE conversations DROP COLUMN session_key`, `ALTER TABLE conversations DROP COLUMN active`, `ALTER TABLE messages DROP COLUMN transcript_entry_id`,
		`DROP TABLE summaries`, `INSERT INTO conversations VALUES (1, 's')`, `INSERT INTO messages VALUES (1, 1, 1, 'user', 'hello', 1, '2026-11-20 10:00:00')`)
	s := memorySink(t)
	importFile(t, s, path, imports.Options{Agent: "ada"})
	if got := s.texts(t, "ada", "s"); got != "u:hello" {
		t.Errorf("the session holds %q", got)
	}
}

// The same history from two sources is stored once.
func TestSameHistoryTwice(t *testing.T) {
	t.Parallel()
	c := newClaw(t)
	c.session("s1", "agent:ada:work")
	c.conversation("s1")
	s := memorySink(t)
	importFile(t, s, c.path, imports.Options{})
	path := lcm(t, `INSERT INTO conversations VALUES (1, 's1', 'agent:ada:work', 1)`,
		`INSERT INTO messages VALUES (1, 1, 1, 'user', 'What is in the note?', 1, 's1-1', '2026-11-21 19:00:09'), (2, 1, 2, 'assistant', 'It says marigold.', 1, 's1-4', '2026-11-21 19:00:10')`)
	wantCounts(t, "lossless-claw after OpenClaw", importFile(t, s, path, imports.Options{}), "1 sessions, 2 messages: 0 imported, 2 known, 0 erased, 0 skipped")
}

func TestLosslessClawMalformed(t *testing.T) {
	t.Parallel()
	path := lcm(t, `INSERT INTO conversations VALUES (1, 's', NULL, 1)`,
		`INSERT INTO messages VALUES (1, 1, 1, 'user', CAST(x'ff41' AS TEXT), 1, NULL, '2026-11-20 10:00:00'), (2, 1, 2, 'user', 'fine', 1, NULL, '2026-11-20 10:00:01')`)
	if _, err := imports.File(t.Context(), path, memorySink(t), imports.Options{}); !errors.Is(err, imports.ErrMalformed) || !strings.Contains(err.Error(), "message 1 of conversation 1") {
		t.Errorf("%v, want ErrMalformed naming the row", err)
	}
	wantCounts(t, "keeping going", importFile(t, memorySink(t), path, imports.Options{KeepGoing: true}), "1 sessions, 1 messages: 1 imported, 0 known, 0 erased, 1 skipped")
}
