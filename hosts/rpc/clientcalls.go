package rpc

import (
	"context"
	"encoding/json"
	"time"

	"github.com/contextengine/contextengine/core"
)

// do calls a method whose parameters hold no messages.
func do[R any](ctx context.Context, c *Client, method string, params any) (R, error) {
	var res R
	err := c.Call(ctx, method, params, &res)
	return res, err
}

// until returns the time that ctx leaves, unless the caller set one.
func until(ctx context.Context, d Deadline) Deadline {
	if end, ok := ctx.Deadline(); ok && d.DeadlineMs == 0 {
		d.DeadlineMs = max(time.Until(end).Milliseconds(), 1)
	}
	return d
}

// Initialize opens the connection. Without ProtocolVersions it offers Versions.
func (c *Client) Initialize(ctx context.Context, p InitializeParams) (InitializeResult, error) {
	if p.ProtocolVersions == nil {
		p.ProtocolVersions = Versions()
	}
	p.Deadline = until(ctx, p.Deadline)
	return do[InitializeResult](ctx, c, MethodInitialize, p)
}

// Shutdown asks the server to end the connection when its calls have ended.
func (c *Client) Shutdown(ctx context.Context) error {
	_, err := do[NoResult](ctx, c, MethodShutdown, nil)
	return err
}

// Ping returns nil when the server answers.
func (c *Client) Ping(ctx context.Context) error {
	_, err := do[NoResult](ctx, c, MethodPing, nil)
	return err
}

// Health says how the server is.
func (c *Client) Health(ctx context.Context) (HealthResult, error) {
	return do[HealthResult](ctx, c, MethodHealth, nil)
}

// Info describes an engine.
func (c *Client) Info(ctx context.Context, p InfoParams) (InfoResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	return do[InfoResult](ctx, c, MethodInfo, p)
}

// Factory says what the host knows about an agent, before the first call about it.
func (c *Client) Factory(ctx context.Context, p FactoryParams) (FactoryResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	return do[FactoryResult](ctx, c, MethodFactory, p)
}

// Bootstrap announces a session.
func (c *Client) Bootstrap(ctx context.Context, p BootstrapParams) (core.BootstrapResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	b, err := encodeWith(&p, &p.Transcript)
	if err != nil {
		return core.BootstrapResult{}, err
	}
	return do[core.BootstrapResult](ctx, c, MethodBootstrap, b)
}

// Ingest stores one message.
func (c *Client) Ingest(ctx context.Context, p IngestParams) (core.IngestResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	raw := oneLine(p.Message)
	p.Message = nil
	b, err := encode(p)
	if err != nil {
		return core.IngestResult{}, err
	}
	return do[core.IngestResult](ctx, c, MethodIngest, json.RawMessage(fill(b, "message", raw)))
}

// IngestBatch stores messages in order, all or none.
func (c *Client) IngestBatch(ctx context.Context, p IngestBatchParams) (core.IngestResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	raw := rawArray(p.Messages)
	p.Messages = nil
	b, err := encode(p)
	if err != nil {
		return core.IngestResult{}, err
	}
	return do[core.IngestResult](ctx, c, MethodIngestBatch, json.RawMessage(fill(b, "messages", raw)))
}

// CommitTurn stores an accepted turn, once for each advancement key.
func (c *Client) CommitTurn(ctx context.Context, p CommitTurnParams) (core.CommitTurnResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	raw := rawArray(p.Messages)
	p.Messages = nil
	b, err := encode(p)
	if err != nil {
		return core.CommitTurnResult{}, err
	}
	return do[core.CommitTurnResult](ctx, c, MethodCommitTurn, json.RawMessage(fill(b, "messages", raw)))
}

// AfterTurn stores the messages of a turn, from hosts that do not commit turns.
func (c *Client) AfterTurn(ctx context.Context, p AfterTurnParams) error {
	p.Deadline = until(ctx, p.Deadline)
	raw := rawArray(p.Messages)
	p.Messages = nil
	b, err := encode(p)
	if err != nil {
		return err
	}
	_, err = do[NoResult](ctx, c, MethodAfterTurn, json.RawMessage(fill(b, "messages", raw)))
	return err
}

// Assemble returns the next prompt.
func (c *Client) Assemble(ctx context.Context, p AssembleParams) (AssembleResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	b, err := encodeWith(&p, &p.Transcript)
	if err != nil {
		return AssembleResult{}, err
	}
	return do[AssembleResult](ctx, c, MethodAssemble, b)
}

// Compact asks for a compaction.
func (c *Client) Compact(ctx context.Context, p CompactParams) (core.CompactResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	b, err := encodeWith(&p, &p.Transcript)
	if err != nil {
		return core.CompactResult{}, err
	}
	return do[core.CompactResult](ctx, c, MethodCompact, b)
}

// encodeWith encodes parameters with the messages of their transcript byte for byte. t points into them.
func encodeWith(params any, t **TranscriptParams) (json.RawMessage, error) {
	if *t == nil {
		return encode(params)
	}
	bare := **t
	raw := rawArray(bare.Messages)
	bare.Messages = nil
	*t = &bare
	b, err := encode(params)
	if err != nil {
		return nil, err
	}
	return fill(b, "messages", raw), nil
}

// Maintain asks for work that can wait.
func (c *Client) Maintain(ctx context.Context, p MaintainParams) (core.MaintainResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	return do[core.MaintainResult](ctx, c, MethodMaintain, p)
}

// PrepareSubagentSpawn prepares a child session.
func (c *Client) PrepareSubagentSpawn(ctx context.Context, p SpawnParams) (SpawnResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	return do[SpawnResult](ctx, c, MethodPrepareSpawn, p)
}

// RollbackSubagentSpawn undoes a prepared spawn.
func (c *Client) RollbackSubagentSpawn(ctx context.Context, p RollbackParams) error {
	p.Deadline = until(ctx, p.Deadline)
	_, err := do[NoResult](ctx, c, MethodRollbackSpawn, p)
	return err
}

// OnSubagentEnded says that a subagent is done.
func (c *Client) OnSubagentEnded(ctx context.Context, p SubagentEndedParams) error {
	p.Deadline = until(ctx, p.Deadline)
	_, err := do[NoResult](ctx, c, MethodSubagentEnded, p)
	return err
}

// Retry lets the engine of a session, which was set aside, try again.
func (c *Client) Retry(ctx context.Context, p RetryParams) error {
	p.Deadline = until(ctx, p.Deadline)
	_, err := do[NoResult](ctx, c, MethodRetry, p)
	return err
}

// Dispose releases what the server remembers of a session.
func (c *Client) Dispose(ctx context.Context, p DisposeParams) error {
	p.Deadline = until(ctx, p.Deadline)
	_, err := do[NoResult](ctx, c, MethodDispose, p)
	return err
}
