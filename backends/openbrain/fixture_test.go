package openbrain_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// noSleep skips waits, so that no test depends on time.
func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// open returns a store for a server. Its log must never show the key.
func open(t *testing.T, srv *openbraintest.Server, change ...func(*openbrain.Config)) *openbrain.Store {
	t.Helper()
	cfg := openbrain.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = srv.URL(), srv.Key()
	for _, c := range change {
		c(&cfg)
	}
	log := &bytes.Buffer{}
	s, err := openbrain.Open(t.Context(), cfg, openbrain.WithSleep(noSleep),
		openbrain.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if strings.Contains(log.String(), srv.Key()) {
			t.Error("the log shows the key")
		}
	})
	return s
}

func entry(agent, session string, seq int, text string) core.Entry {
	m := message.New(message.User, text)
	return core.Entry{
		ID: fmt.Sprintf("%s-%s-%d", agent, session, seq), Agent: agent, Session: session, Seq: int64(seq), Turn: int64(seq / 2),
		Role: m.Role, Type: core.TypeMessage, Time: time.Date(2026, 1, 2, 3, 4, seq, 567_000_000, time.UTC), Tokens: len(text)/4 + 4,
		Key: fmt.Sprintf("key-%d", seq), Fingerprint: message.Fingerprint(m), Message: m,
	}
}

func run(agent, session string, from, to int) []core.Entry {
	var out []core.Entry
	for i := from; i < to; i++ {
		out = append(out, entry(agent, session, i, fmt.Sprintf("word%d shared", i)))
	}
	return out
}

func mustAppend(t *testing.T, s core.Store, entries ...core.Entry) core.AppendResult {
	t.Helper()
	res, err := s.Append(t.Context(), entries)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	return res
}

// all returns a scope's entries, read in pages of that size.
func all(t *testing.T, s core.Store, scope core.Scope, reverse bool, limit int) []core.Entry {
	t.Helper()
	var out []core.Entry
	q := core.ScanQuery{Scope: scope, Reverse: reverse, Limit: limit}
	for {
		page, err := s.Scan(t.Context(), q)
		if err != nil {
			t.Fatalf("Scan: %v", err)
		}
		if len(page.Entries) > limit {
			t.Fatalf("Scan returned %d entries, limit %d", len(page.Entries), limit)
		}
		out = append(out, page.Entries...)
		if page.Next == "" {
			return out
		}
		q.Cursor = page.Next
	}
}

func agentScope(agent string) core.Scope { return core.Scope{Agent: agent} }

// holds fails unless the agent's entries, as a store of its own sees them, are exactly these.
func holds(t *testing.T, srv *openbraintest.Server, agent string, want []core.Entry) {
	t.Helper()
	got := all(t, open(t, srv), agentScope(agent), false, core.MaxPage)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries of %q (-want +got):\n%s", agent, diff)
	}
}

func ids(entries []core.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}
