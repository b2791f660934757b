package rpc

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// lean gives an engine all members of the lifecycle: a host that runs several engines calls what the richest of them has. Where one lacks a member, it is not
// told what it could only be told, and a batch or a turn is ingested message by message, with keys that make saying it again harmless.
type lean struct{ core.ContextEngine }

// lifecycle returns the engine of a session, with all members.
func (k *call) lifecycle(ctx context.Context, id core.SessionID) (lean, error) {
	e, _, err := k.conn.s.engineFor(ctx, id)
	return lean{e}, err
}

func (l lean) bootstrap(ctx context.Context, req core.BootstrapRequest) (core.BootstrapResult, error) {
	if e, ok := l.ContextEngine.(core.Bootstrapper); ok {
		return e.Bootstrap(ctx, req)
	}
	return core.BootstrapResult{Reason: fmt.Sprintf("engine %q prepares nothing", l.Info().ID)}, nil
}

func (l lean) ingestBatch(ctx context.Context, req core.IngestBatchRequest) (core.IngestResult, error) {
	if e, ok := l.ContextEngine.(core.BatchIngester); ok {
		return e.IngestBatch(ctx, req)
	}
	var all core.IngestResult
	for i := range req.Messages {
		one := core.IngestRequest{Session: req.Session, Message: req.Messages[i], Heartbeat: req.Heartbeat}
		if req.IdempotencyKey != "" {
			one.IdempotencyKey = fmt.Sprintf("%s/%d", req.IdempotencyKey, i)
		}
		res, err := l.Ingest(ctx, one)
		if err != nil {
			return all, err
		}
		all.Ingested, all.Duplicates, all.IDs = all.Ingested+res.Ingested, all.Duplicates+res.Duplicates, append(all.IDs, res.IDs...)
	}
	return all, nil
}

func (l lean) commitTurn(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
	if e, ok := l.ContextEngine.(core.TurnCommitter); ok {
		return e.CommitTurn(ctx, req)
	}
	res, err := l.ingestBatch(ctx, core.IngestBatchRequest{Session: req.Session, Messages: req.Messages, Heartbeat: req.Heartbeat, IdempotencyKey: req.AdvancementKey})
	if err != nil {
		return core.CommitTurnResult{}, err
	}
	status := core.Committed
	if res.Ingested == 0 && res.Duplicates > 0 {
		status = core.Duplicate
	}
	return core.CommitTurnResult{Status: status, IDs: res.IDs}, nil
}

func (l lean) afterTurn(ctx context.Context, req core.AfterTurnRequest) error {
	if e, ok := l.ContextEngine.(core.AfterTurner); ok {
		return e.AfterTurn(ctx, req)
	}
	return nil
}

func (l lean) maintain(ctx context.Context, req core.MaintainRequest) (core.MaintainResult, error) {
	if e, ok := l.ContextEngine.(core.Maintainer); ok {
		return e.Maintain(ctx, req)
	}
	return core.MaintainResult{}, nil
}

func (l lean) prepareSpawn(ctx context.Context, req core.SpawnRequest) (core.Spawn, error) {
	if e, ok := l.ContextEngine.(core.SubagentHost); ok {
		return e.PrepareSubagentSpawn(ctx, req)
	}
	return core.Spawn{Rollback: func(context.Context) error { return nil }}, nil
}

func (l lean) subagentEnded(ctx context.Context, end core.SubagentEnded) error {
	if e, ok := l.ContextEngine.(core.SubagentHost); ok {
		return e.OnSubagentEnded(ctx, end)
	}
	return nil
}
