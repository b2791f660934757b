package openbrain_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// strange returns entries that servers would like to change.
func strange() []core.Entry {
	huge := strings.Repeat("ключ 鍵 🗝️ \u2028", 500)
	var out []core.Entry
	add := func(change func(*core.Entry)) {
		e := entry("main", "s", len(out), "plain")
		change(&e)
		out = append(out, e)
	}
	add(func(e *core.Entry) { e.Message.Raw = []byte("{\"a\":\x00\xff\xfe\"\\u0000\"}") })
	add(func(e *core.Entry) { e.Message.Parts[0].Text = "nul \x00 bad \xff\xc0 end" })
	add(func(e *core.Entry) { e.Message.Parts[0].Text = ""; e.Message.Raw = []byte{} })
	add(func(e *core.Entry) { e.Message.Parts = nil; e.Meta = map[string]string{} })
	add(func(e *core.Entry) { e.Message.Parts = []message.Part{} })
	add(func(e *core.Entry) {
		e.Message.Parts[0].Text, e.Message.Raw = huge, []byte(huge+"\x00")
		e.Meta = map[string]string{"k\x00": "v\xff", "base64:x": "base64:!!", "": "", "id": "mine"}
	})
	add(func(e *core.Entry) {
		e.Session, e.Key, e.Fingerprint = "s \xff/?&#%=\x00", "\x00key", "base64:"
		e.Time, e.Turn, e.Tokens = time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), -1, 1<<31
		e.Message.Time = time.Date(2026, 5, 6, 7, 8, 9, 123456789, time.UTC)
	})
	add(func(e *core.Entry) {
		e.Role, e.Type, e.Seq = message.Tool, core.TypeSubagent, 1<<60+1
		e.Message = message.Message{
			Role: message.Tool, ID: "host", Key: "hk", Name: "n", Stop: "toolUse", Type: "custom", Format: "pi", Edited: true,
			Usage: message.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4},
			Parts: []message.Part{
				{Kind: message.ToolResult, Text: "result\x00", CallID: "c\xff", Name: "t", IsError: true, Raw: []byte{0, 255}},
				{Kind: message.ToolCall, CallID: "c", Name: "t", Args: "{not json"},
				{Kind: message.Thinking, Text: "hm", Signature: "sig", Raw: []byte{}},
			},
		}
	})
	return out
}

func TestRoundTrip(t *testing.T) {
	for name, set := range shapes() {
		t.Run(name, func(t *testing.T) {
			srv := openbraintest.New(t, set)
			s := open(t, srv)
			want := strange()
			for _, e := range want {
				mustAppend(t, s, e)
			}
			for _, store := range []*openbrain.Store{s, open(t, srv)} {
				for _, e := range want {
					got, err := store.Get(t.Context(), e.SessionID().Scope(), []string{e.ID})
					if err != nil {
						t.Fatalf("Get(%q): %v", e.ID, err)
					}
					if diff := cmp.Diff([]core.Entry{e}, got); diff != "" {
						t.Errorf("Get(%q) (-want +got):\n%s", e.ID, diff)
					}
				}
			}
			if got := len(all(t, s, agentScope("main"), false, 3)); got != len(want) {
				t.Errorf("Scan returned %d entries, want %d", got, len(want))
			}
		})
	}
}

// shapes are the ways servers are known to answer.
func shapes() map[string]func(*openbraintest.Behavior) {
	type b = openbraintest.Behavior
	return map[string]func(*b){
		"documented":      func(*b) {},
		"bare array":      func(x *b) { x.List, x.Create = "", "id" },
		"results nested":  func(x *b) { x.List, x.Nested, x.Create = "results", true, "thought" },
		"items, numbers":  func(x *b) { x.List, x.NumericIDs, x.ScoreField = "items", true, "score" },
		"data array":      func(x *b) { x.List, x.Create, x.IDField = "data", "data", "thought_id" },
		"data object":     func(x *b) { x.List, x.Total, x.TimeField = "data.thoughts", true, "createdAt" },
		"matches, text":   func(x *b) { x.List, x.MetadataText, x.ScoreField = "matches", true, "distance" },
		"naive captured":  func(x *b) { x.TimeField, x.NaiveTimes = "captured_at", true },
		"record, no body": func(x *b) { x.Create, x.NoContentDelete, x.MergePatch = "record", true, true },
		"no create body":  func(x *b) { x.Create, x.TimeField = "none", "" },
		"thought id only": func(x *b) { x.Create, x.List, x.SearchNoID = "thought_id", "results", true },
		"id in data":      func(x *b) { x.Create, x.List, x.NoGet = "data.id", "data", true },
		"no score":        func(x *b) { x.ScoreField, x.NoGet, x.NoStats = "", true, true },
	}
}

func TestWire(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	e := entry("agent /1", "chat?", 4, "hello\x00 world")
	e.Message.Parts = append(e.Message.Parts, message.Part{Kind: message.Thinking, Text: "secret thought"})
	mustAppend(t, s, e)
	th := srv.Thoughts()[0]
	if th.Source != "openclaw:agent /1" || th.Content != "hello world" {
		t.Errorf("source, content = %q, %q", th.Source, th.Content)
	}
	want := map[string]any{
		"sessionId": "chat?", "turn": 2.0, "role": "user", "type": "message", "source": "openclaw:agent /1",
		"id": "chat?", "entry": e.ID, "v": 2.0,
	}
	if len(th.Metadata) != len(want)+1 || th.Metadata["blob"] == nil {
		t.Errorf("metadata = %v, want these keys and blob: %v", th.Metadata, want)
	}
	for k, v := range want {
		if th.Metadata[k] != v {
			t.Errorf("metadata %s = %#v, want %#v", k, th.Metadata[k], v)
		}
	}
	for _, r := range srv.Requests() {
		if strings.HasSuffix(r.Path, "/") || !r.Authorized {
			t.Errorf("request %s %s: trailing slash or no key", r.Method, r.Path)
		}
	}
}

func TestContentIsClippedBetweenRunes(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv, func(c *openbrain.Config) { c.MaxContent = 64 })
	e := entry("main", "s", 0, strings.Repeat("é", 100)+"x")
	empty := entry("main", "s", 1, " \x00\n")
	mustAppend(t, s, e, empty)
	th := srv.Thoughts()
	if th[0].Content != strings.Repeat("é", 32) {
		t.Errorf("content = %q", th[0].Content)
	}
	if strings.TrimSpace(th[1].Content) == "" {
		t.Error("content is empty, and servers refuse that")
	}
	holds(t, srv, "main", []core.Entry{e, empty})
}

func TestHugeMessage(t *testing.T) {
	srv := openbraintest.New(t)
	e := entry("main", "s", 0, "big")
	e.Message.Raw = []byte(strings.Repeat("\x00\xffа鍵🗝", 200_000))
	mustAppend(t, open(t, srv), e)
	got, err := open(t, srv).Get(t.Context(), agentScope("main"), []string{e.ID})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got[0].Message.Raw, e.Message.Raw) {
		t.Error("raw bytes changed")
	}
}
