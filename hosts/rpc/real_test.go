package rpc_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/rpc"
	"github.com/contextengine/contextengine/internal/datadir"
)

// A real session, handed over as a host does: what the store keeps is what the host sent, byte for byte and once, and hardly anything
// is sent twice.
func TestRealSession(t *testing.T) {
	t.Parallel()
	path := datadir.File(t, "pi/large-session.jsonl")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	conversations, err := message.Read(file, message.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var list []json.RawMessage
	for _, m := range conversations[0].Messages {
		if m.Format != message.FormatPi || m.Type == message.CompactionSummary {
			continue
		}
		list = append(list, m.Raw)
	}
	if len(list) < 100 {
		t.Fatalf("%s has %d messages", path, len(list))
	}
	e := composed(t, nil)
	tapped := attach(t, newServer(t, one{e}, nil))
	c := rpc.NewClient(tapped, struct{ *tap }{tapped}, rpc.ClientOptions{})
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Initialize(t.Context(), rpc.InitializeParams{Client: rpc.Program{Name: "x"}, Format: "pi"}); err != nil {
		t.Fatal(err)
	}
	v := rpc.NewConversation(c, sid("s"), "")
	const step = 20
	size := 0
	for n := 0; n < len(list); n = min(n+step, len(list)) {
		for _, m := range list[n:min(n+step, len(list))] {
			size += len(m)
		}
		if _, _, err := v.Assemble(t.Context(), list[:min(n+step, len(list))], rpc.AssembleParams{Budget: 60_000, Prompt: "go on"}); err != nil {
			t.Fatalf("with %d messages: %v", n, err)
		}
	}
	tapped.mu.Lock()
	sent := tapped.sent.Len()
	tapped.mu.Unlock()
	t.Logf("%d messages of %d bytes, %d bytes sent", len(list), size, sent)
	if sent > size*3/2 {
		t.Errorf("%d bytes were sent for %d", sent, size)
	}
	next := 0
	q := core.ScanQuery{Scope: sid("s").Scope(), Limit: core.MaxPage}
	for {
		page, err := e.Store().Scan(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range page.Entries {
			if next >= len(list) || string(entry.Message.Raw) != string(list[next]) {
				t.Fatalf("entry %d is not the host's message", next)
			}
			next++
		}
		if page.Next == "" {
			break
		}
		q.Cursor = page.Next
	}
	if next != len(list) {
		t.Errorf("%d of %d messages are stored", next, len(list))
	}
}
