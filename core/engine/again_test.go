package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestIngestAgain: a call that is made again with its key stores nothing more, also over a restart and behind other calls; the same messages under another key
// are said again, and other messages under the same key are not lost.
func TestIngestAgain(t *testing.T) {
	f := newFixture(t)
	batch := func(key string, messages ...message.Message) core.IngestResult {
		t.Helper()
		res, err := f.engine.IngestBatch(t.Context(), core.IngestBatchRequest{Session: f.id, Messages: messages, IdempotencyKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	first := batch("one", user("ok"), user("ok"))
	batch("two", user("more"))
	f.restart()
	again := batch("one", user("ok"), user("ok"))
	if again.Ingested != 0 || again.Duplicates != 2 || again.IDs[0] != first.IDs[0] || again.IDs[1] != first.IDs[1] {
		t.Errorf("called again: %+v, want the entries of the first call, %+v", again, first)
	}
	if got := shown(f.assemble(1000)); got != "ok | ok | more" {
		t.Errorf("the conversation is %q", got)
	}
	if res := batch("three", user("ok")); res.Ingested != 1 {
		t.Errorf("another call: %+v, want it stored", res)
	}
	if res := batch("one", user("something else")); res.Ingested != 1 {
		t.Errorf("another message under a key that was used: %+v, want it stored", res)
	}
	_, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("x"), IdempotencyKey: strings.Repeat("x", 257)})
	if !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a key without end: error %v, want core.ErrInvalid", err)
	}
}
