package openbrain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

func textOnly(c *openbrain.Config) { c.Keep = openbrain.KeepText }

// said returns a message as OpenClaw writes it, about as long as people and models write.
func said(t *testing.T, session string, seq int) core.Entry {
	t.Helper()
	text := fmt.Sprintf("Turn %d: the kite number %d hangs in the %s, says \"nobody\";\nplease look it up again.", seq, seq*seq, strings.Repeat("old oak by the river and the mill ", seq%9))
	raw := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%s}],"timestamp":%d,"idempotencyKey":"run-%d"}`, quote(t, text), 1_700_000_000_000+seq*977, seq*7919)
	switch seq % 4 {
	case 1:
		raw = fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s},{"type":"toolCall","id":"call_%d","name":"read","arguments":{"path":"/srv/kites/%d.txt"}}],"api":"openai-completions",`+
			`"provider":"local","model":"small","usage":{"input":%d,"output":91,"cacheRead":0,"cacheWrite":0,"totalTokens":%d,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","timestamp":%d}`,
			quote(t, text), seq*31337, seq, 900+seq, 991+seq, 1_700_000_000_000+seq*977)
	case 2:
		raw = fmt.Sprintf(`{"role":"toolResult","toolCallId":"call_%d","toolName":"read","content":[{"type":"text","text":%s}],"isError":false,"timestamp":%d}`,
			(seq-1)*31337, quote(t, strings.Repeat(text+"\n", 5)), 1_700_000_000_000+seq*977)
	}
	codec, err := message.Lookup(message.FormatPi)
	if err != nil {
		t.Fatal(err)
	}
	m, err := codec.Decode([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return core.Entry{
		ID: fmt.Sprintf("0198f2c4d5e6-%04d", seq), Agent: "main", Session: session, Seq: int64(seq), Turn: int64(seq / 4), Role: m.Role, Type: core.TypeMessage,
		Time: m.Time, Tokens: len(text)/4 + 4, Key: fmt.Sprintf("t:%d:%s", seq, message.Fingerprint(m)), Fingerprint: message.Fingerprint(m), Message: m,
		Meta: map[string]string{"turnKey": fmt.Sprintf("turn-%d", seq/4)},
	}
}

func quote(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSizes: what a thought takes on the server, beside what was said.
func TestSizes(t *testing.T) {
	for _, session := range []string{"agent:main:main", "agent:main:subagent:5e1b7f0c-3e55-4c0e-9d2a-0b8d6f3a1c77"} {
		for _, keep := range []string{openbrain.KeepAll, openbrain.KeepText} {
			srv := openbraintest.New(t, openbraintest.Strict(100, false))
			s := open(t, srv, func(c *openbrain.Config) { c.Keep = keep })
			var entries []core.Entry
			for i := range 200 {
				entries = append(entries, said(t, session, i))
				mustAppend(t, s, entries[i])
			}
			all, said := 0, 0
			i := 0
			for _, r := range srv.Requests() {
				if r.Method != "POST" || r.Path != "/v1/thoughts" {
					continue
				}
				text := len(entries[i].Text())
				all, said = all+len(r.Body), said+text
				if limit := text*3/2 + 300; keep == openbrain.KeepText && len(r.Body) > limit {
					t.Errorf("%s: a thought of %d bytes takes %d, limit %d: %s", session, text, len(r.Body), limit, r.Body)
				}
				i++
			}
			if i != 200 {
				t.Errorf("%s, %s: %d thoughts were sent, want 200", session, keep, i)
			}
			if limit := said*5/2 + 200*300; all > limit {
				t.Errorf("%s, %s: a session of %d bytes takes %d, limit %d", session, keep, said, all, limit)
			}
			t.Logf("%s, %s: %.2f times the content and %d bytes a thought", session, keep, float64(all)/float64(said), (all-said)/200)
		}
	}
}

// TestTextNeverLists: with a store in front, the documented calls are all that is used, and none of them lists more than the newest.
func TestTextNeverLists(t *testing.T) {
	for name, srv := range map[string]*openbraintest.Server{
		"refuses": openbraintest.New(t, openbraintest.Strict(20, false)), "cuts": openbraintest.New(t, openbraintest.Strict(20, true)),
	} {
		s := open(t, srv, textOnly)
		ids := map[string]string{}
		for i := range 130 {
			e := said(t, "agent:main:main", i)
			if i >= 100 {
				e.Session = "another"
			}
			res := mustAppend(t, s, e)
			ids[e.ID] = res.IDs[0]
		}
		hits, err := s.Search(t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: "kite number 9 of turn 3", Limit: 3})
		if err != nil || len(hits) == 0 || hits[0].Entry.ID != said(t, "agent:main:main", 3).ID {
			t.Errorf("%s: Search = %v, %v", name, hits, err)
		}
		srv.Forget()
		again := open(t, srv, textOnly)
		if n, err := again.Delete(t.Context(), agentScope("main"), []string{ids[said(t, "", 3).ID], ids[said(t, "", 104).ID]}); n != 2 || err != nil {
			t.Errorf("%s: Delete = %d, %v", name, n, err)
		}
		if err := again.Update(t.Context(), agentScope("main"), ids[said(t, "", 105).ID], core.Change{Type: core.TypeErased}); err != nil {
			t.Errorf("%s: erasing one: %v", name, err)
		}
		if n := len(srv.Requests()); n != 3 {
			t.Errorf("%s: %d requests to erase three messages", name, n)
		}
		srv.Forget()
		if err := again.EraseSession(t.Context(), core.SessionID{Agent: "main", Session: "agent:main:main"}); err != nil {
			t.Errorf("%s: EraseSession: %v", name, err)
		}
		if n := len(srv.Requests()); n > 5 {
			t.Errorf("%s: %d requests to erase a session", name, n)
		}
		if n := len(srv.Thoughts()); n != 28 {
			t.Errorf("%s: %d thoughts left, want 28", name, n)
		}
	}
}

// TestTextAfterALostAnswer: what was stored without an answer is found among the newest thoughts, and not stored again.
func TestTextAfterALostAnswer(t *testing.T) {
	srv := openbraintest.New(t, openbraintest.Strict(20, true))
	s := open(t, srv, textOnly, noRetries, func(c *openbrain.Config) { c.Timeout = 50 * time.Millisecond })
	for i, do := range []openbraintest.Action{
		openbraintest.Then(openbraintest.Reset), openbraintest.Then(openbraintest.Stall), openbraintest.Then(openbraintest.Broken), openbraintest.Reset, openbraintest.Broken, openbraintest.TooMany(1),
	} {
		srv.Inject(openbraintest.Fault{Do: do, Times: -1})
		e := said(t, "s", i)
		if _, err := s.Append(t.Context(), []core.Entry{e}); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("fault %d: Append = %v, want ErrUnavailable", i, err)
		}
		srv.Heal()
		mustAppend(t, s, e)
		mustAppend(t, open(t, srv, textOnly), e) // another process that does not know
		if n := len(srv.Thoughts()); n != i+1 {
			t.Fatalf("fault %d: %d thoughts, want %d", i, n, i+1)
		}
	}
}

// TestTextIsReadBack: who has lost the store in front gets the text back.
func TestTextIsReadBack(t *testing.T) {
	srv := openbraintest.New(t, openbraintest.Strict(100, false))
	s := open(t, srv, textOnly)
	var want []string
	for i := range 12 {
		e := said(t, "s", i)
		mustAppend(t, s, e)
		want = append(want, fmt.Sprint(e.ID, e.Seq, e.Role, e.Text(), e.Time))
	}
	var got []string
	for _, e := range all(t, open(t, srv), agentScope("main"), false, 5) {
		got = append(got, fmt.Sprint(e.ID, e.Seq, e.Role, e.Text(), e.Time))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}
