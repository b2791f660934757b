package sqlite_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestPagesEndByBytes: who asks for many entries that are large gets few at a time, and all of them by following Next, within a session and across.
func TestPagesEndByBytes(t *testing.T) {
	s := open(t, config(t))
	const many, size = 12, 300 << 10
	for _, name := range []string{"a", "b"} {
		for _, e := range entries(core.SessionID{Agent: "ada", Session: name}, 0, many) {
			e.Message = message.New(e.Role, strings.Repeat("x", size))
			e.Fingerprint = message.Fingerprint(e.Message)
			mustAppend(t, s, e)
		}
	}
	for _, q := range []core.ScanQuery{
		{Scope: core.Scope{Agent: "ada", Session: "a"}}, {Scope: core.Scope{Agent: "ada", Session: "a"}, Reverse: true},
		{Scope: core.Scope{Agent: "ada"}}, {Scope: core.Scope{Agent: "ada"}, Reverse: true},
	} {
		q.Limit = core.MaxPage
		seen, want := map[string]bool{}, many
		if q.Scope.Session == "" {
			want = 2 * many
		}
		for {
			page, err := s.Scan(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Entries)*size > 2<<20 {
				t.Errorf("%+v: a page of %d entries of %d bytes", q, len(page.Entries), size)
			}
			for _, e := range page.Entries {
				seen[e.Session+e.ID] = true
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		if len(seen) != want {
			t.Errorf("%+v: %d entries are seen, want %d", q, len(seen), want)
		}
	}
}
