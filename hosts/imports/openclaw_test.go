package imports_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/contextengine/contextengine/hosts/imports"
)

// claw is an agent's file as the host writes it: the tables that an import reads, with the columns of schema version 23.
type claw struct {
	t    *testing.T
	db   *sql.DB
	path string
	at   int64
}

func newClaw(t *testing.T) *claw {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agents", "ada", "agent", "openclaw-agent.sqlite")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := &claw{t: t, db: db, path: path, at: 1_795_000_000_000}
	for _, s := range []string{
		`CREATE TABLE schema_meta (meta_key TEXT PRIMARY KEY, role TEXT, schema_version INTEGER, agent_id TEXT)`,
		`CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT NOT NULL, entry_json TEXT)`,
		`CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT NOT NULL, previous_session_id TEXT, created_at INTEGER NOT NULL)`,
		`CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL, event_zstd BLOB,
			event_utf8_bytes INTEGER, navigation_json TEXT, PRIMARY KEY (session_id, seq))`,
		`CREATE TABLE session_transcript_active_events (session_id TEXT, active_position INTEGER, event_seq INTEGER, message_position INTEGER,
			context_eligible INTEGER, PRIMARY KEY (session_id, active_position))`,
		`CREATE TABLE session_transcript_index_state (session_id TEXT PRIMARY KEY, indexed_seq INTEGER, leaf_event_id TEXT, needs_rebuild INTEGER DEFAULT 0)`,
		`CREATE TABLE session_transcript_archives (session_id TEXT, generation TEXT, session_key TEXT, reason TEXT, encoding TEXT, archive_blob BLOB,
			archive_sha256 TEXT, archive_name TEXT, created_at INTEGER)`,
		`CREATE TABLE session_transcript_cold_archives (session_id TEXT PRIMARY KEY, generation TEXT, archive_name TEXT, archive_sha256 TEXT, storage TEXT, archive_blob BLOB)`,
		`INSERT INTO schema_meta VALUES ('primary', 'agent', 23, 'ada')`,
	} {
		c.exec(s)
	}
	return c
}

func (c *claw) exec(query string, args ...any) {
	c.t.Helper()
	if _, err := c.db.Exec(query, args...); err != nil {
		c.t.Fatal(err)
	}
}

// session makes a session the current one of its key.
func (c *claw) session(id, key string) {
	c.t.Helper()
	c.at += 1000
	c.exec("INSERT INTO session_windows VALUES (?, ?, NULL, ?)", id, key, c.at)
	c.exec("INSERT OR REPLACE INTO session_nodes VALUES (?, ?, '{}')", key, id)
}

func (c *claw) event(session string, seq int, text string) {
	c.t.Helper()
	c.at += 1000
	c.exec("INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?, ?, ?, ?)", session, seq, text, c.at)
}

// stored wraps data as Zstandard without compressing it.
func stored(data []byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, uint32(len(data)))
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), 100_000)
		last := 0
		if n == len(data) {
			last = 1
		}
		head := n<<3 | last
		out = append(out, byte(head), byte(head>>8), byte(head>>16))
		out = append(out, data[:n]...)
		data = data[n:]
	}
	return out
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// said is an event with a message. Time counts seconds.
func event(id, parent, role, text string, second int) string {
	up := "null"
	if parent != "" {
		up = `"` + parent + `"`
	}
	key := ""
	if role == "user" {
		key = `,"idempotencyKey":"` + id + `:user"`
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-11-21T19:00:%02d.000Z","message":{"role":%q,"content":[{"type":"text","text":%q}],"timestamp":%d%s}}`,
		id, up, second, role, text, 1_795_287_600_000+int64(second)*1000, key)
}

const headerLine = `{"type":"session","version":4,"id":"s1","timestamp":"2026-11-21T19:00:00.000Z","cwd":"/w"}`

// conversation fills a session: two turns with a tool call, an answer that was made anew, and entries of other types.
func (c *claw) conversation(id string) {
	c.t.Helper()
	large := event(id+"-5", id+"-4", "assistant", strings.Repeat("a long answer ", 500), 5)
	lines := []string{
		headerLine,
		event(id+"-1", "", "user", "What is in the note?", 1),
		fmt.Sprintf(`{"type":"message","id":"%[1]s-2","parentId":"%[1]s-1","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"note.txt"}}],"stopReason":"toolUse","timestamp":1795287602000}}`, id),
		fmt.Sprintf(`{"type":"message","id":"%[1]s-3","parentId":"%[1]s-2","message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"marigold"}],"isError":false,"timestamp":1795287603000}}`, id),
		fmt.Sprintf(`{"type":"custom","customType":"snapshot","data":{},"id":"%[1]s-x","parentId":"%[1]s-3"}`, id),
		event(id+"-b", id+"-x", "assistant", "an answer nobody kept", 4),
		event(id+"-4", id+"-x", "assistant", "It says marigold.", 4),
	}
	for i, l := range lines {
		c.event(id, i, l)
	}
	c.exec("INSERT INTO transcript_events (session_id, seq, event_zstd, event_utf8_bytes, created_at) VALUES (?, 7, ?, ?, 0)", id, stored([]byte(large)), len(large))
}

func TestOpenClaw(t *testing.T) {
	t.Parallel()
	c := newClaw(t)
	c.session("old", "agent:ada:work")
	c.event("old", 0, event("o1", "", "user", "an earlier conversation", 0))
	c.session("new", "agent:ada:work")
	c.conversation("new")
	c.session("empty", "agent:ada:empty")
	// The file is open for writing, and its newest rows are in the write-ahead log.
	s := memorySink(t)
	r := importFile(t, s, c.path, imports.Options{})
	wantCounts(t, "import", r, "2 sessions, 6 messages: 6 imported, 0 known, 0 erased, 0 skipped")
	if r.Format != imports.OpenClaw || r.Left["messages on branches that the host does not show"] != 1 {
		t.Errorf("format %q, left %v, want openclaw and one message on a branch", r.Format, r.Left)
	}
	want := `u:What is in the note?|a:read({"path":"note.txt"})|t:marigold|a:It says marigold.|a:` + strings.Repeat("a long answer ", 500)
	if got := s.texts(t, "ada", "agent:ada:work"); got != want {
		t.Errorf("the session holds %.200q, want %.200q", got, want)
	}
	if got := s.texts(t, "ada", "agent:ada:work#old"); got != "u:an earlier conversation" {
		t.Errorf("the session before it holds %q", got)
	}
	e := s.stored(t, "ada", "agent:ada:work")
	if m := e[0].Message; m.ID != "new-1" || m.Key != "new-1:user" || !m.Time.Equal(time.UnixMilli(1_795_287_601_000)) || !e[0].Time.Equal(m.Time) {
		t.Errorf("id %q, key %q, time %v of the first message are not the host's", m.ID, m.Key, m.Time)
	}
	if raw := string(e[1].Message.Raw); raw != `{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"note.txt"}}],"stopReason":"toolUse","timestamp":1795287602000}` {
		t.Errorf("original bytes %s", raw)
	}
	wantCounts(t, "again", importFile(t, s, c.path, imports.Options{}), "2 sessions, 6 messages: 0 imported, 6 known, 0 erased, 0 skipped")
	wantCounts(t, "with branches", importFile(t, s, c.path, imports.Options{Branches: true}), "3 sessions, 7 messages: 1 imported, 6 known, 0 erased, 0 skipped")
	if got := s.texts(t, "ada", "agent:ada:work#new-b"); got != "a:an answer nobody kept" {
		t.Errorf("the branch holds %q", got)
	}
}

func TestOpenClawIndex(t *testing.T) {
	t.Parallel()
	c := newClaw(t)
	c.session("s1", "agent:ada:work")
	c.conversation("s1")
	// The host's own index says that the other answer is shown.
	for i, seq := range []int{1, 2, 3, 4, 5} {
		c.exec("INSERT INTO session_transcript_active_events VALUES ('s1', ?, ?, NULL, 1)", i, seq)
	}
	c.exec("INSERT INTO session_transcript_index_state VALUES ('s1', 7, 's1-b', 0)")
	s := memorySink(t)
	importFile(t, s, c.path, imports.Options{})
	if got := s.texts(t, "ada", "agent:ada:work"); !strings.HasSuffix(got, "t:marigold|a:an answer nobody kept") {
		t.Errorf("by an index that is up to date: %q", got)
	}
	c.exec("UPDATE session_transcript_index_state SET needs_rebuild = 1")
	s = memorySink(t)
	importFile(t, s, c.path, imports.Options{})
	if got := s.texts(t, "ada", "agent:ada:work"); strings.Contains(got, "nobody kept") {
		t.Errorf("by an index that is not: %.100q", got)
	}
}

func TestOpenClawArchives(t *testing.T) {
	t.Parallel()
	c := newClaw(t)
	archive := func(id, reason, text string) {
		blob := stored([]byte(headerLine + "\n" + event(id+"-1", "", "user", text, 1) + "\n"))
		c.exec("INSERT INTO session_transcript_archives VALUES (?, 'g', 'agent:ada:work', ?, 'zstd', ?, ?, ?, 0)", id, reason, blob, sumOf(blob), id)
	}
	archive("r", "reset", "before the reset")
	archive("d", "deleted", "deleted by somebody")
	cold := func(id, text string, inFile bool) {
		c.session(id, "agent:ada:"+id)
		row := jsonText(t, map[string]any{"kind": "event", "row": map[string]any{"seq": 1, "event_json": event(id+"-1", "", "user", text, 1), "created_at": 0}})
		aside := jsonText(t, map[string]any{"kind": "event", "row": map[string]any{"seq": 2, "event_json": event(id+"-2", "", "user", "not shown", 2), "created_at": 0}})
		blob := stored([]byte(`{"kind":"header","version":1,"sessionId":"` + id + `","generation":"g"}` + "\n" + row + "\n" + aside + "\n" + `{"kind":"active","row":{"active_position":0,"event_seq":1}}` + "\n"))
		name := sumOf(blob) + ".jsonl.zst"
		if !inFile {
			c.exec("INSERT INTO session_transcript_cold_archives VALUES (?, 'g', ?, ?, 'sqlite', ?)", id, name, sumOf(blob), blob)
			return
		}
		c.exec("INSERT INTO session_transcript_cold_archives VALUES (?, 'g', ?, ?, 'file', NULL)", id, name, sumOf(blob))
		dir := filepath.Join(filepath.Dir(filepath.Dir(c.path)), "sessions", "cold")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), blob, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cold("c1", "idle, in the database", false)
	cold("c2", "idle, in a file", true)
	s := memorySink(t)
	r := importFile(t, s, c.path, imports.Options{})
	wantCounts(t, "import", r, "3 sessions, 3 messages: 3 imported, 0 known, 0 erased, 0 skipped")
	if r.Left["sessions that were deleted in the host"] != 1 {
		t.Errorf("left %v, want one deleted session", r.Left)
	}
	for session, want := range map[string]string{
		"agent:ada:work#r": "u:before the reset", "agent:ada:c1": "u:idle, in the database", "agent:ada:c2": "u:idle, in a file",
	} {
		if got := s.texts(t, "ada", session); got != want {
			t.Errorf("session %q holds %q, want %q", session, got, want)
		}
	}
	c.exec("UPDATE session_transcript_cold_archives SET archive_sha256 = ? WHERE session_id = 'c1'", strings.Repeat("0", 64))
	if _, err := imports.File(t.Context(), c.path, memorySink(t), imports.Options{}); !errors.Is(err, imports.ErrMalformed) || !strings.Contains(err.Error(), `session "c1"`) {
		t.Errorf("an archive with another checksum: %v, want ErrMalformed naming its session", err)
	}
}

func TestOpenClawMalformed(t *testing.T) {
	t.Parallel()
	c := newClaw(t)
	c.session("s1", "agent:ada:work")
	c.conversation("s1")
	c.event("s1", 8, `{"type":"message","id":"s1-6","parentId":"s1-5","message":{"role":`)
	c.exec("INSERT INTO transcript_events (session_id, seq, event_zstd, event_utf8_bytes, created_at) VALUES ('s1', 9, x'28b52ffd00', 9, 0)")
	c.event("s1", 10, event("s1-7", "s1-5", "user", "after the fault", 7))
	_, err := imports.File(t.Context(), c.path, memorySink(t), imports.Options{})
	if !errors.Is(err, imports.ErrMalformed) || !strings.Contains(err.Error(), `openclaw-agent.sqlite: session "s1", event 9`) {
		t.Errorf("%v, want ErrMalformed naming file and event", err)
	}
	s := memorySink(t)
	r := importFile(t, s, c.path, imports.Options{KeepGoing: true})
	wantCounts(t, "keeping going", r, "1 sessions, 6 messages: 6 imported, 0 known, 0 erased, 2 skipped")
	if !strings.HasSuffix(s.texts(t, "ada", "agent:ada:work"), "u:after the fault") {
		t.Error("what stands behind the fault is missing")
	}
}
