package rpc_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/hosts/rpc"
)

// required is an engine that has what every engine must have, and no more.
type required struct {
	core.ContextEngine
	keys []string
}

func (r *required) Ingest(_ context.Context, req core.IngestRequest) (core.IngestResult, error) {
	if slices.Contains(r.keys, req.IdempotencyKey) {
		return core.IngestResult{Duplicates: 1, IDs: []string{"e"}}, nil
	}
	r.keys = append(r.keys, req.IdempotencyKey)
	return core.IngestResult{Ingested: 1, IDs: []string{"e"}}, nil
}

// TestEngineOfRequiredMembers: a host may say everything to an engine that has the required members alone, and to one that passes everything through.
func TestEngineOfRequiredMembers(t *testing.T) {
	own := &required{ContextEngine: struct{ core.ContextEngine }{&fake{}}}
	for name, e := range map[string]core.ContextEngine{"required": own, "legacy": engine.NewLegacy(nil)} {
		t.Run(name, func(t *testing.T) {
			c := open(t, newServer(t, one{e}, nil), rpc.ClientOptions{})
			ctx, id := t.Context(), sid("s")
			turn := []json.RawMessage{user("one", 1), user("two", 2)}
			call := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			boot, err := c.Bootstrap(ctx, rpc.BootstrapParams{Session: id})
			if call("bootstrap", err); boot.Bootstrapped || boot.Reason == "" {
				t.Errorf("bootstrap = %+v", boot)
			}
			for i, want := range []string{core.Committed, core.Duplicate} {
				if name == "legacy" {
					want = core.Committed // it stores nothing, so nothing is known
				}
				res, err := c.CommitTurn(ctx, rpc.CommitTurnParams{Session: id, AdvancementKey: "k", Messages: turn})
				if call("commitTurn", err); res.Status != want {
					t.Errorf("turn %d: %+v, want %s", i, res, want)
				}
			}
			_, err = c.IngestBatch(ctx, rpc.IngestBatchParams{Session: id, Messages: turn})
			call("ingestBatch", err)
			call("afterTurn", c.AfterTurn(ctx, rpc.AfterTurnParams{Session: id, Messages: turn}))
			_, err = c.Maintain(ctx, rpc.MaintainParams{Session: id, Reason: "turn"})
			call("maintain", err)
			sp, err := c.PrepareSubagentSpawn(ctx, rpc.SpawnParams{Parent: id, Child: sid("child")})
			call("prepareSubagentSpawn", err)
			call("rollbackSubagentSpawn", c.RollbackSubagentSpawn(ctx, rpc.RollbackParams{SpawnID: sp.SpawnID}))
			call("onSubagentEnded", c.OnSubagentEnded(ctx, rpc.SubagentEndedParams{Child: sid("child"), Parent: &id, Reason: "completed"}))
			res, err := c.Assemble(ctx, rpc.AssembleParams{Session: id, Budget: 1000, Transcript: &rpc.TranscriptParams{Messages: turn}})
			if call("assemble", err); name == "legacy" && len(res.Messages) != len(turn) {
				t.Errorf("legacy hands back %d of %d messages", len(res.Messages), len(turn))
			}
		})
	}
	if want := []string{"k/0", "k/1", ""}; !slices.Equal(own.keys, want) {
		t.Errorf("keys = %q, want %q", own.keys, want)
	}
}
