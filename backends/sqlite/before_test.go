package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/imports"
)

// before is what the files under testdata hold: before.db is a store to which it was appended, own.jsonl the store's export, walked.jsonl what
// imports.Export made of a store in memory. They were written by the first program that had one encoding for each of the three.
func before(t *testing.T) []core.Entry {
	t.Helper()
	all := entries(ann, 0, 3)
	for n := range 3 {
		all = append(all, chat(t, ann, n+3))
	}
	odd := entry(ann, 6)
	odd.Role, odd.Meta = "", map[string]string{"\xfe": "x", "b": ""}
	odd.Message = message.Message{
		Role: message.Assistant, ID: "\xfd", Raw: []byte(`{"content":"as \"quoted\" text, with \u00e9"}`), Time: odd.Time, Usage: message.Usage{Input: -1}, Edited: true,
		Parts: []message.Part{
			{Kind: "new", Text: "as \"quoted\" text, with é", Raw: []byte{0}, IsError: true}, {Kind: message.ToolCall, CallID: "c", Args: "\xff", Raw: []byte("content")},
		},
	}
	return append(all, odd)
}

func TestFilesFromBefore(t *testing.T) {
	want := before(t)
	check := func(t *testing.T, s core.Store) {
		t.Helper()
		var got []core.Entry
		for e, err := range core.All(t.Context(), s, ann.Scope(), false) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	read := func(t *testing.T, name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	open := func(t *testing.T, data []byte) *sqlite.Store {
		t.Helper()
		cfg := sqlite.DefaultConfig()
		cfg.Path = filepath.Join(t.TempDir(), "before.db")
		if data != nil {
			if err := os.WriteFile(cfg.Path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := sqlite.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	t.Run("store", func(t *testing.T) { check(t, open(t, read(t, "before.db"))) })
	for _, name := range []string{"own.jsonl", "walked.jsonl"} {
		t.Run(name, func(t *testing.T) {
			s := open(t, nil)
			if _, err := s.Import(t.Context(), bytes.NewReader(read(t, name)), nil); err != nil {
				t.Fatal(err)
			}
			check(t, s)
			m := memory.New()
			if _, err := imports.Restore(t.Context(), m, bytes.NewReader(read(t, name)), nil); err != nil {
				t.Fatal(err)
			}
			check(t, m)
		})
	}
}
