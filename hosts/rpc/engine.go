package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// member returns the engine of a session as the optional interface that a method needs.
func member[T any](ctx context.Context, k *call, id core.SessionID) (T, error) {
	var zero T
	e, _, err := k.conn.s.engineFor(ctx, id)
	if err != nil {
		return zero, err
	}
	m, ok := e.(T)
	if !ok {
		return zero, fmt.Errorf("engine %q does not have this operation: %w", e.Info().ID, errors.ErrUnsupported)
	}
	return m, nil
}

// format returns the codec of the call's messages.
func (k *call) format(own string) (message.Codec, error) {
	return formatOf("format", own, k.conn.opened().format)
}

// optional is format for calls that may do without.
func (k *call) optional(own string) (message.Codec, string, error) {
	if own == "" && k.conn.opened().format == "" {
		return nil, "", nil
	}
	c, err := k.format(own)
	if err != nil {
		return nil, "", err
	}
	return c, c.Name(), nil
}

func bootstrap(ctx context.Context, k *call, p BootstrapParams) (any, error) {
	if err := checkSession("session", p.Session); err != nil {
		return nil, err
	}
	if err := k.run(p.Session, p.Settings, p.TranscriptScope); err != nil {
		return nil, err
	}
	codec, format, err := k.optional(p.Format)
	if err != nil {
		return nil, err
	}
	t, c, err := k.transcript(p.Session, p.Transcript, codec)
	if err != nil {
		return nil, err
	}
	e, err := k.lifecycle(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	res, err := e.bootstrap(ctx, core.BootstrapRequest{
		Session: p.Session, Transcript: t, Settings: p.Settings.core(format), TranscriptScope: p.TranscriptScope,
	})
	if err != nil {
		return nil, k.rejected(p.Session, err)
	}
	k.remember(c)
	return res, nil
}

func ingest(ctx context.Context, k *call, p IngestParams) (any, error) {
	if err := checkSession("session", p.Session); err != nil {
		return nil, err
	}
	codec, err := k.format(p.Format)
	if err != nil {
		return nil, err
	}
	m, err := decodeMessage(codec, "message", p.Message, fillersOf(codec.Name()))
	if err != nil {
		return nil, err
	}
	e, _, err := k.conn.s.engineFor(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	return ingested(e.Ingest(ctx, core.IngestRequest{Session: p.Session, Message: m, Heartbeat: p.Heartbeat, IdempotencyKey: p.IdempotencyKey}))
}

func ingested(res core.IngestResult, err error) (any, error) {
	if res.IDs == nil {
		res.IDs = []string{}
	}
	return res, err
}

func ingestBatch(ctx context.Context, k *call, p IngestBatchParams) (any, error) {
	messages, err := k.turn(p.Session, p.Messages, p.Format)
	if err != nil {
		return nil, err
	}
	e, err := k.lifecycle(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	res, err := e.ingestBatch(ctx, core.IngestBatchRequest{Session: p.Session, Messages: messages, Heartbeat: p.Heartbeat, IdempotencyKey: p.IdempotencyKey})
	if err != nil {
		return nil, err
	}
	k.advance(p.Session, p.Advance, p.Messages, messages)
	return ingested(res, nil)
}

func commitTurn(ctx context.Context, k *call, p CommitTurnParams) (any, error) {
	messages, err := k.turn(p.Session, p.Messages, p.Format)
	if err != nil {
		return nil, err
	}
	if err := k.run(p.Session, p.Settings, p.TranscriptScope); err != nil {
		return nil, err
	}
	if p.AdvancementKey == "" {
		return nil, badField("advancementKey", "give the key that identifies the turn")
	}
	_, format, err := k.optional(p.Format)
	if err != nil {
		return nil, err
	}
	e, err := k.lifecycle(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	res, err := e.commitTurn(ctx, core.CommitTurnRequest{
		Session: p.Session, AdvancementKey: p.AdvancementKey, Messages: messages, Heartbeat: p.Heartbeat, Settings: p.Settings.core(format),
		TranscriptScope: p.TranscriptScope,
	})
	if err != nil {
		return nil, err
	}
	k.advance(p.Session, p.Advance, p.Messages, messages)
	if res.IDs == nil {
		res.IDs = []string{}
	}
	return res, nil
}

func afterTurn(ctx context.Context, k *call, p AfterTurnParams) (any, error) {
	messages, err := k.turn(p.Session, p.Messages, p.Format)
	if err != nil {
		return nil, err
	}
	if err := k.run(p.Session, p.Settings, p.TranscriptScope); err != nil {
		return nil, err
	}
	if p.PrePrompt < 0 || p.PrePrompt > len(messages) {
		return nil, badField("prePromptMessageCount", "must be 0 to the number of messages")
	}
	_, format, err := k.optional(p.Format)
	if err != nil {
		return nil, err
	}
	e, err := k.lifecycle(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	err = e.afterTurn(ctx, core.AfterTurnRequest{
		Session: p.Session, Messages: messages, PrePrompt: p.PrePrompt, Heartbeat: p.Heartbeat, Settings: p.Settings.core(format),
		TranscriptScope: p.TranscriptScope,
	})
	if err != nil {
		return nil, err
	}
	k.advance(p.Session, p.Advance, p.Messages[p.PrePrompt:], messages[p.PrePrompt:])
	return NoResult{}, nil
}

// turn checks and reads what a call brings to be stored.
func (k *call) turn(id core.SessionID, raw []json.RawMessage, format string) ([]message.Message, error) {
	if err := checkSession("session", id); err != nil {
		return nil, err
	}
	if len(raw) > k.conn.s.cfg.MaxTranscript {
		return nil, badField("messages", fmt.Sprintf("at most %d at once", k.conn.s.cfg.MaxTranscript))
	}
	codec, err := k.format(format)
	if err != nil {
		return nil, err
	}
	return decodeMessages(codec, "messages", raw)
}

func compact(ctx context.Context, k *call, p CompactParams) (any, error) {
	if err := checkSession("session", p.Session); err != nil {
		return nil, err
	}
	if err := k.run(p.Session, p.Settings, p.TranscriptScope); err != nil {
		return nil, err
	}
	switch {
	case p.Budget < 0:
		return nil, badField("tokenBudget", "must not be negative")
	case p.CurrentTokens < 0:
		return nil, badField("currentTokenCount", "must not be negative")
	case p.Target != "" && p.Target != core.TargetBudget && p.Target != core.TargetThreshold:
		return nil, badField("compactionTarget", `must be "budget" or "threshold"`)
	}
	codec, format, err := k.optional(p.Format)
	if err != nil {
		return nil, err
	}
	t, c, err := k.transcript(p.Session, p.Transcript, codec)
	if err != nil {
		return nil, err
	}
	e, _, err := k.conn.s.engineFor(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	k.proceed()
	res, err := e.Compact(ctx, core.CompactRequest{
		Session: p.Session, Budget: p.Budget, CurrentTokens: p.CurrentTokens, Target: p.Target, Force: p.Force, Instructions: p.Instructions,
		Trigger: p.Trigger, Transcript: t, Settings: p.Settings.core(format), TranscriptScope: p.TranscriptScope,
	})
	if err != nil {
		return nil, k.rejected(p.Session, err)
	}
	k.remember(c)
	return res, nil
}

func maintain(ctx context.Context, k *call, p MaintainParams) (any, error) {
	if err := checkSession("session", p.Session); err != nil {
		return nil, err
	}
	if err := k.run(p.Session, p.Settings, p.TranscriptScope); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"bootstrap", "turn", "compaction"}, p.Reason) {
		return nil, badField("reason", `must be "bootstrap", "turn" or "compaction"`)
	}
	if p.Budget < 0 {
		return nil, badField("tokenBudget", "must not be negative")
	}
	e, err := k.lifecycle(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	k.proceed()
	return result(e.maintain(ctx, core.MaintainRequest{
		Session: p.Session, Reason: p.Reason, Budget: p.Budget, Settings: p.Settings.core(""), TranscriptScope: p.TranscriptScope,
	}))
}

func result[R any](res R, err error) (any, error) { return res, err }

func prepareSpawn(ctx context.Context, k *call, p SpawnParams) (any, error) {
	if err := checkSession("parent", p.Parent); err != nil {
		return nil, err
	}
	if err := checkSession("child", p.Child); err != nil {
		return nil, err
	}
	switch {
	case p.Mode != "" && p.Mode != core.SpawnIsolated && p.Mode != core.SpawnFork:
		return nil, badField("contextMode", `must be "isolated" or "fork"`)
	case p.TTLMs < 0 || p.TTLMs > (1<<62)/int64(time.Millisecond):
		return nil, badField("ttlMs", "must be a positive number of milliseconds")
	}
	if err := checkTexts(
		text{"parentSessionId", p.ParentSessionID, maxWord}, text{"parentSessionFile", p.ParentSessionFile, maxPath},
		text{"childSessionId", p.ChildSessionID, maxWord}, text{"childSessionFile", p.ChildSessionFile, maxPath},
	); err != nil {
		return nil, err
	}
	e, err := k.lifecycle(ctx, p.Parent)
	if err != nil {
		return nil, err
	}
	sp, err := e.prepareSpawn(ctx, core.SpawnRequest{
		Parent: p.Parent, Child: p.Child, Mode: p.Mode, TTL: time.Duration(p.TTLMs) * time.Millisecond,
		ParentSessionID: p.ParentSessionID, ParentSessionFile: p.ParentSessionFile, ChildSessionID: p.ChildSessionID, ChildSessionFile: p.ChildSessionFile,
	})
	if err != nil {
		return nil, err
	}
	return SpawnResult{SpawnID: k.conn.s.spawns.add(p.Parent, p.Child, sp.Rollback), GrantID: sp.GrantID}, nil
}

func rollbackSpawn(ctx context.Context, k *call, p RollbackParams) (any, error) {
	sp := k.conn.s.spawns.take(p.SpawnID)
	if sp == nil {
		return nil, fmt.Errorf("spawnId: %w", core.ErrNotFound)
	}
	if err := sp.rollback(ctx); err != nil {
		return nil, err
	}
	k.conn.s.known.forget(sp.child)
	return NoResult{}, nil
}

func subagentEnded(ctx context.Context, k *call, p SubagentEndedParams) (any, error) {
	if err := checkSession("child", p.Child); err != nil {
		return nil, err
	}
	end := core.SubagentEnded{Child: p.Child, Reason: p.Reason, Result: p.Result}
	owner := p.Child
	if p.Parent != nil {
		if err := checkSession("parent", *p.Parent); err != nil {
			return nil, err
		}
		end.Parent, owner = *p.Parent, *p.Parent
	} else if parent, ok := k.conn.s.spawns.parent(p.Child); ok {
		owner = parent // its engine knows the child
	}
	e, err := k.lifecycle(ctx, owner)
	if err != nil {
		return nil, err
	}
	if err := e.subagentEnded(ctx, end); err != nil {
		return nil, err
	}
	k.conn.s.spawns.end(p.Child)
	return NoResult{}, nil
}
