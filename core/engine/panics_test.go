package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestSessionAfterAPanic: a session can be used after a call in which the counter panicked.
func TestSessionAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
			p.Counter = func(text string) int {
				if broken && len(text) > 1000 {
					panic("no such token")
				}
				return 1
			}
		})
		func() {
			defer func() { _ = recover() }()
			f.ingest(user(strings.Repeat("x", 300<<10)))
		}()
		broken = false
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := f.engine.Ingest(ctx, core.IngestRequest{Session: f.id, Message: user("hi")}); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the session stays locked: %v", err)
		}
	})
}
