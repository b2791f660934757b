package builtin

import (
	"context"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// unconfigured is an engine that lacks what only an operator can give. Every call returns the error that says so, from
// Bootstrap on.
type unconfigured struct {
	id  string
	err error
}

var (
	_ core.ContextEngine = unconfigured{}
	_ core.Bootstrapper  = unconfigured{}
	_ core.BatchIngester = unconfigured{}
	_ core.TurnCommitter = unconfigured{}
	_ core.AfterTurner   = unconfigured{}
	_ core.Maintainer    = unconfigured{}
	_ core.SubagentHost  = unconfigured{}
	_ engine.Recaller    = unconfigured{}
	_ engine.Scorer      = unconfigured{}
	_ core.Disposer      = unconfigured{}
	_ core.Pinger        = unconfigured{}
)

func (u unconfigured) Info() core.Info {
	return core.Info{
		ID: u.id, Name: u.id + " context engine",
		CurrentTurnFence: engine.CurrentTurnFence, TurnIdempotency: engine.TurnIdempotency,
		Health: []core.Problem{{Part: "engine", Op: "configure", Text: u.err.Error(), Count: 1}},
	}
}

func (u unconfigured) Bootstrap(context.Context, core.BootstrapRequest) (core.BootstrapResult, error) {
	return core.BootstrapResult{}, u.err
}

func (u unconfigured) Ingest(context.Context, core.IngestRequest) (core.IngestResult, error) {
	return core.IngestResult{}, u.err
}

func (u unconfigured) IngestBatch(context.Context, core.IngestBatchRequest) (core.IngestResult, error) {
	return core.IngestResult{}, u.err
}

func (u unconfigured) CommitTurn(context.Context, core.CommitTurnRequest) (core.CommitTurnResult, error) {
	return core.CommitTurnResult{}, u.err
}

func (u unconfigured) Assemble(context.Context, core.AssembleRequest) (core.AssembleResult, error) {
	return core.AssembleResult{}, u.err
}

func (u unconfigured) Compact(context.Context, core.CompactRequest) (core.CompactResult, error) {
	return core.CompactResult{}, u.err
}

func (u unconfigured) AfterTurn(context.Context, core.AfterTurnRequest) error { return u.err }

func (u unconfigured) Maintain(context.Context, core.MaintainRequest) (core.MaintainResult, error) {
	return core.MaintainResult{}, u.err
}

func (u unconfigured) PrepareSubagentSpawn(context.Context, core.SpawnRequest) (core.Spawn, error) {
	return core.Spawn{}, u.err
}

func (u unconfigured) OnSubagentEnded(context.Context, core.SubagentEnded) error { return u.err }

func (u unconfigured) Search(context.Context, engine.SearchRequest) (engine.SearchResult, error) {
	return engine.SearchResult{}, u.err
}

func (u unconfigured) Expand(context.Context, engine.ExpandRequest) (engine.ExpandResult, error) {
	return engine.ExpandResult{}, u.err
}

func (u unconfigured) Describe(context.Context, engine.DescribeRequest) (engine.DescribeResult, error) {
	return engine.DescribeResult{}, u.err
}

func (u unconfigured) Score(context.Context, engine.Outcome) error { return u.err }

func (u unconfigured) Outcomes(context.Context, string) ([]engine.Outcome, error) { return nil, u.err }

// Dispose releases nothing: there is nothing.
func (u unconfigured) Dispose(context.Context) error { return nil }

// Ping returns the error, so that check-ups show it.
func (u unconfigured) Ping(context.Context) error { return u.err }
