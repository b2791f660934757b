package imports

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTree(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		nodes [][2]string
		leaf  string
		path  []string
		runs  [][]string
	}{
		"a line":              {[][2]string{{"a", ""}, {"b", "a"}}, "b", []string{"a", "b"}, nil},
		"a fork":              {[][2]string{{"a", ""}, {"b", "a"}, {"c", "b"}, {"d", "a"}, {"e", "b"}}, "d", []string{"a", "d"}, [][]string{{"b", "c"}, {"e"}}},
		"two roots":           {[][2]string{{"a", ""}, {"b", ""}}, "b", []string{"b"}, [][]string{{"a"}}},
		"a parent missing":    {[][2]string{{"b", "a"}}, "b", nil, [][]string{{"b"}}},
		"a circle":            {[][2]string{{"a", "b"}, {"b", "a"}}, "b", nil, [][]string{{"b", "a"}}},
		"no leaf":             {[][2]string{{"a", ""}}, "", nil, [][]string{{"a"}}},
		"a leaf not there":    {[][2]string{{"a", ""}}, "x", nil, [][]string{{"a"}}},
		"the same node twice": {[][2]string{{"a", ""}, {"b", "a"}, {"a", "b"}}, "b", []string{"a", "b"}, nil},
	} {
		tree := newTree()
		for _, n := range tt.nodes {
			tree.add(n[0], n[1])
		}
		tree.leaf = tt.leaf
		path, ok := tree.path()
		if ok != (tt.path != nil) || !slices.Equal(path, tt.path) {
			t.Errorf("%s: path %v, %v, want %v", name, path, ok, tt.path)
		}
		if diff := cmp.Diff(tt.runs, tree.branches(path)); diff != "" {
			t.Errorf("%s: branches (-want +got):\n%s", name, diff)
		}
	}
}

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]place{
		"/x/talk.jsonl":                      {session: "talk"},
		"/x/talk.jsonl.gz":                   {session: "talk"},
		"-":                                  {session: "import"},
		"/x/agents/ada/sessions/s1.jsonl":    {agent: "ada", session: "s1"},
		"/x/agents/ada/other/s1.jsonl":       {session: "s1"},
		"/x/agents/a/sessions/deep/s1.jsonl": {session: "s1"},
	} {
		if got := placeOf(name); got.place != want || got.fixed {
			t.Errorf("placeOf(%q) = %+v, want %+v", name, got, want)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"x"}}`))
	f.Add([]byte(`{"type":"compaction","id":"1","summary":"s","tokensBefore":3}`))
	f.Add([]byte(`{"kind":"event","row":{"seq":1,"event_json":"{}"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		messages, err := messagesOf(b)
		if err == nil && len(messages) > 1 {
			t.Errorf("%d messages of one event", len(messages))
		}
		for _, m := range messages {
			if !m.Role.Valid() {
				t.Errorf("role %q", m.Role)
			}
		}
		events, shown, err := coldEvents(b)
		if err == nil {
			aside(events, shown)
		}
	})
}

func FuzzLossless(f *testing.F) {
	f.Add("assistant", "text", "tool", "hello", `{"raw":{"type":"toolCall","id":"c","name":"n","arguments":{}}}`)
	f.Add("tool", "out", "text", "x", `{"toolCallId":"c","isError":true}`)
	f.Add("user", "u", "text", "x", `{"command":"ls"}`)
	f.Fuzz(func(t *testing.T, role, content, kind, text, meta string) {
		p := storedPart{kind: kind, text: sql.NullString{String: text, Valid: text != ""}, input: sql.NullString{String: text, Valid: true}}
		_ = json.Unmarshal([]byte(meta), &p.meta)
		r := row{role: role, content: content, created: "2026-01-01 00:00:00"}
		m, err := r.message([]storedPart{p})
		if err != nil {
			return
		}
		if !m.Role.Valid() || !json.Valid(m.Raw) {
			t.Errorf("role %q, bytes %q", m.Role, m.Raw)
		}
		if kind == "text" && len(p.meta.Raw) == 0 && p.meta.RawType == "" && !p.meta.Only && p.meta.Command == "" && text != "" && utf8.ValidString(text) &&
			role != "compactionSummary" && role != "branchSummary" && role != "bashExecution" && !strings.Contains(m.Text(), text) {
			t.Errorf("text %q became %q", text, m.Text())
		}
	})
}
