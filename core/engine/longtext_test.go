package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestLongTextAfterTheEnd: a call returns when its ctx has ended while a tokenizer goes on counting a long text, which no tokenizer can be stopped at. Whoever
// asks again has the same count, and Dispose waits for it.
func TestLongTextAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts, release := atomic.Int32{}, make(chan struct{})
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
			p.Counter = func(text string) int {
				if len(text) > 1<<20 {
					counts.Add(1)
					<-release
				}
				return wordCounter(text)
			}
		})
		long := message.Message{Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: strings.Repeat("word ", 1<<18)}}}
		ended := func(call func(ctx context.Context) error) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			go func() { synctest.Wait(); cancel() }()
			if err := call(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want that of ctx", err)
			}
		}
		ingest := func(ctx context.Context) error {
			_, err := f.engine.Ingest(ctx, core.IngestRequest{Session: f.id, Message: long})
			return err
		}
		assemble := func(ctx context.Context) error {
			_, err := f.engine.Assemble(ctx, core.AssembleRequest{Session: f.id, Budget: 300})
			return err
		}
		ended(ingest)
		ended(ingest)
		long.Parts[0].Raw = []byte("the caller's again") // who returned left nothing that is read
		if n := counts.Load(); n != 1 {
			t.Errorf("%d counts are under way, want 1", n)
		}
		close(release)
		long.Parts[0].Raw = nil
		if err := ingest(t.Context()); err != nil || counts.Load() != 1 {
			t.Errorf("after %d counts error %v, want 1 count and none", counts.Load(), err)
		}

		f.restart()
		release = make(chan struct{})
		ended(assemble)
		close(release)
		if err := assemble(t.Context()); err != nil || counts.Load() != 2 {
			t.Errorf("after %d counts error %v, want 2 counts and none", counts.Load(), err)
		}

		f.restart()
		release = make(chan struct{})
		ended(ingest)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.engine.Dispose(over); !errors.Is(err, context.Canceled) {
			t.Errorf("Dispose while a count is under way: error %v, want that of ctx", err)
		}
		close(release)
	})
}
