package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/hosts/rpc"
)

// burning is a store that can be set on fire.
type burning struct {
	*memory.Store
	lit atomic.Bool
}

func (b *burning) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if b.lit.Load() {
		return core.AppendResult{}, errors.New("disk on fire")
	}
	return b.Store.Append(ctx, entries)
}

// TestQuarantineCrosses: an engine whose turns cannot be stored is set aside, says so to every call that would store or show something, and tries again when it is asked to.
func TestQuarantineCrosses(t *testing.T) {
	t.Parallel()
	store := &burning{Store: memory.New()}
	e := composed(t, nil, func(p *engine.Parts) { p.Store = store })
	c := open(t, newServer(t, one{e}, nil), rpc.ClientOptions{})
	commit := func(key string) error {
		_, err := c.CommitTurn(t.Context(), rpc.CommitTurnParams{Session: sid("s"), AdvancementKey: key, Messages: []json.RawMessage{user("Hello", 1), answer("Hi", 2)}})
		return err
	}
	store.lit.Store(true)
	for range 3 {
		wantCode(t, "a commit", commit("k"), rpc.CodeInternal)
	}
	store.lit.Store(false)
	if e := wantCode(t, "a commit afterwards", commit("k"), rpc.CodeQuarantined); !strings.Contains(e.Message, "commit turn failed 3 times in a row") {
		t.Errorf("the message is %q", e.Message)
	}
	_, err := c.Bootstrap(t.Context(), rpc.BootstrapParams{Session: sid("s")})
	wantCode(t, "bootstrap", err, rpc.CodeQuarantined)
	res, err := c.Assemble(t.Context(), rpc.AssembleParams{Session: sid("s"), Budget: 1000, Transcript: &rpc.TranscriptParams{Messages: []json.RawMessage{user("Hello", 1)}}})
	if err != nil || len(res.Messages) != 1 || !strings.Contains(res.Degraded, "3 times in a row") {
		t.Errorf("assemble: %d messages, degraded %q, %v", len(res.Messages), res.Degraded, err)
	}
	h, err := c.Health(t.Context())
	if err != nil || len(h.Problems) != 1 || !h.Problems[0].Quarantined {
		t.Errorf("health is %+v, %v", h, err)
	}
	if err := c.Retry(t.Context(), rpc.RetryParams{Session: sid("s")}); err != nil {
		t.Fatal(err)
	}
	if err := commit("k"); err != nil {
		t.Errorf("after retry: %v", err)
	}
	wantCode(t, "an engine that is never set aside", open(t, newServer(t, one{&fake{}}, nil), rpc.ClientOptions{}).Retry(t.Context(), rpc.RetryParams{Session: sid("s")}), rpc.CodeUnsupported)
}
