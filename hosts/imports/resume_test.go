package imports_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/imports"
)

// long is a chat of n messages, every third of which says the same.
func long(n int) string {
	var b strings.Builder
	for i := range n {
		text := "ok"
		if i%3 != 0 {
			text = fmt.Sprintf("message %d", i)
		}
		fmt.Fprintf(&b, `{"role":%q,"content":%q}`+"\n", []string{"user", "assistant"}[i%2], text)
	}
	return b.String()
}

// contents are the messages of a session, without what is made when they are stored.
func (s *sink) contents(t *testing.T, agent, session string) []message.Message {
	t.Helper()
	var out []message.Message
	for _, e := range s.stored(t, agent, session) {
		out = append(out, e.Message)
	}
	return out
}

func TestResume(t *testing.T) {
	t.Parallel()
	text := long(1000)
	whole := memorySink(t)
	importText(t, whole, "long.jsonl", text, imports.Options{})
	for _, after := range []int{0, 1, 2, 3} {
		s := memorySink(t)
		s.failAfter = after
		r, err := imports.Data(t.Context(), "long.jsonl", []byte(text), s, imports.Options{})
		if !errors.Is(err, core.ErrUnavailable) || r.Imported != after*256 {
			t.Fatalf("after %d batches: %v, %d imported, want ErrUnavailable and those of the batches before", after, err, r.Imported)
		}
		s.failAfter = -1
		r = importText(t, s, "long.jsonl", text, imports.Options{})
		wantCounts(t, "resumed", r, fmt.Sprintf("1 sessions, 1000 messages: %d imported, %d known, 0 erased, 0 skipped", 1000-after*256, after*256))
		if diff := cmp.Diff(whole.contents(t, "main", "long"), s.contents(t, "main", "long")); diff != "" {
			t.Errorf("a session whose import was interrupted after %d batches differs (-whole +resumed):\n%.500s", after, diff)
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := memorySink(t)
	o := imports.Options{Progress: func(p imports.Progress) {
		if p.Total != 1000 {
			t.Errorf("progress %+v, want a total of 1000", p)
		}
		if p.Messages == 500 {
			cancel()
		}
	}}
	r, err := imports.Data(ctx, "long.jsonl", []byte(long(1000)), s, o)
	if !errors.Is(err, context.Canceled) || r.Imported != 256 || r.Messages > 501 {
		t.Errorf("%v, %s; want it to stop after 500 messages", err, counts(r))
	}
	c := newClaw(t)
	c.session("s1", "agent:ada:work")
	c.conversation("s1")
	if _, err := imports.File(ctx, c.path, s, imports.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a database: %v, want context.Canceled", err)
	}
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	importText(t, s, "long.jsonl", long(10), imports.Options{})
	wantCounts(t, "dry run", importText(t, s, "long.jsonl", long(30), imports.Options{DryRun: true}), "1 sessions, 30 messages: 20 imported, 10 known, 0 erased, 0 skipped")
	if n := len(s.stored(t, "main", "long")); n != 10 {
		t.Errorf("%d messages are stored after a dry run, want 10", n)
	}
}

// A host's engine ran already, and has stored the newest turns.
func TestAfterTheHost(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	codec, err := message.Lookup(message.FormatPi)
	if err != nil {
		t.Fatal(err)
	}
	var turn []message.Message
	for _, raw := range []string{
		`{"role":"user","content":[{"type":"text","text":"third"}],"timestamp":1795287603000,"idempotencyKey":"e3:user"}`,
		`{"role":"assistant","content":[{"type":"text","text":"ok"}],"timestamp":1795287604000}`,
	} {
		m, err := codec.Decode([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		turn = append(turn, m)
	}
	id := core.SessionID{Agent: "ada", Session: "agent:ada:work"}
	if _, err := s.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: id, AdvancementKey: "t1", Messages: turn}); err != nil {
		t.Fatal(err)
	}
	c := newClaw(t)
	c.session("s1", id.Session)
	for i, e := range []string{
		headerLine, event("e1", "", "user", "first", 1), event("e2", "e1", "assistant", "ok", 2), event("e3", "e2", "user", "third", 3),
		event("e4", "e3", "assistant", "ok", 4), event("e5", "e4", "user", "fifth", 5),
	} {
		c.event("s1", i, e)
	}
	r := importFile(t, s, c.path, imports.Options{})
	wantCounts(t, "import", r, "1 sessions, 5 messages: 3 imported, 2 known, 0 erased, 0 skipped")
	if got := s.texts(t, "ada", id.Session); got != "u:third|a:ok|u:fifth" {
		t.Errorf("the session holds %q, want what the host had and what came later", got)
	}
	if got := s.texts(t, "ada", id.Session+"#earlier"); got != "u:first|a:ok" {
		t.Errorf("beside it: %q, want what came earlier", got)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "#earlier") {
		t.Errorf("notes %q", r.Notes)
	}
	wantCounts(t, "again", importFile(t, s, c.path, imports.Options{}), "1 sessions, 5 messages: 0 imported, 5 known, 0 erased, 0 skipped")
}

// What was erased does not come back, however it was stored.
func TestErasedStaysErased(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	c := newClaw(t)
	c.session("s1", "agent:ada:work")
	c.conversation("s1")
	importFile(t, s, c.path, imports.Options{})
	live := core.SessionID{Agent: "ada", Session: "live"}
	turn := []message.Message{message.New(message.User, "a secret"), message.New(message.Assistant, "kept")}
	if _, err := s.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: live, AdvancementKey: "t1", Messages: turn}); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []core.Scope{{Agent: "ada", Session: "agent:ada:work"}, live.Scope()} {
		if _, err := s.engine.Forget(t.Context(), engine.ForgetRequest{Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	wantCounts(t, "imported before", importFile(t, s, c.path, imports.Options{}), "1 sessions, 5 messages: 0 imported, 0 known, 5 erased, 0 skipped")
	text := `{"role":"user","content":"a secret"}` + "\n" + `{"role":"user","content":"never seen"}` + "\n"
	r := importText(t, s, "live.jsonl", text, imports.Options{Agent: "ada"})
	wantCounts(t, "came by the host", r, "1 sessions, 2 messages: 1 imported, 0 known, 1 erased, 0 skipped")
	for _, e := range s.stored(t, "ada", "") {
		if strings.Contains(e.Text(), "secret") || strings.Contains(string(e.Message.Raw), "marigold") {
			t.Errorf("%q is back in session %q", e.Text(), e.Session)
		}
	}
}

// Rules for redaction hold for what is imported; what they changed is known again.
func TestRedaction(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	cfg := engine.DefaultConfig()
	cfg.Redact = []engine.RedactRule{{Name: "number", Pattern: `\d{4}`}}
	s.engine = engineOver(t, s.store, cfg)
	text := `{"role":"user","content":"my number is 1234"}` + "\n"
	for i, want := range []string{"1 imported", "0 imported, 1 known"} {
		if got := counts(importText(t, s, "c.jsonl", text, imports.Options{})); !strings.Contains(got, want) {
			t.Errorf("time %d: %s, want %s", i+1, got, want)
		}
	}
	if e := s.stored(t, "main", "c"); strings.Contains(string(e[0].Message.Raw)+e[0].Text(), "1234") {
		t.Errorf("stored %q", e[0].Text())
	}
}
