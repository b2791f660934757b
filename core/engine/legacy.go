package engine

import (
	"context"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/window"
)

// Legacy is the engine that changes nothing: it hands back the host's own messages, stores nothing, and leaves compaction to the runtime. It
// keeps none of the promises about budget and memory; it is what answers when an engine must not.
type Legacy struct{ host core.Host }

var _ core.ContextEngine = (*Legacy)(nil)

// NewLegacy returns the pass-through engine. A nil host is NoHost.
func NewLegacy(host core.Host) *Legacy {
	if host == nil {
		host = core.NoHost{}
	}
	return &Legacy{host: host}
}

// Info describes the engine: it does not own compaction.
func (l *Legacy) Info() core.Info {
	return core.Info{
		ID: "legacy", Name: "Legacy context engine", Version: "1.0.0",
		CurrentTurnFence: CurrentTurnFence, TurnIdempotency: TurnIdempotency,
	}
}

// Ingest stores nothing.
func (l *Legacy) Ingest(context.Context, core.IngestRequest) (core.IngestResult, error) {
	return core.IngestResult{}, nil
}

// Assemble returns the host's messages as they are. Without a transcript there is nothing to return, which is ErrInvalid.
func (l *Legacy) Assemble(_ context.Context, req core.AssembleRequest) (core.AssembleResult, error) {
	if req.Transcript == nil {
		return core.AssembleResult{}, invalid("legacy", "transcript", "legacy keeps no messages: hand over the host's")
	}
	if req.Transcript.Skipped > 0 {
		return core.AssembleResult{}, core.ErrNeedTranscript
	}
	res := core.AssembleResult{Messages: req.Transcript.Messages, PromptAuthority: core.AuthorityHost}
	for i := range res.Messages {
		res.Choices = append(res.Choices, window.Choice{Message: i, Count: 1, Reason: window.ReasonTail})
	}
	return res, nil
}

// Compact asks the runtime, once.
func (l *Legacy) Compact(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	if err := core.Require(l.host, "legacy", "compact", core.Requirement{Capabilities: []capability.Name{capability.DelegateHost}}); err != nil {
		return core.CompactResult{}, err
	}
	res, err := l.host.Compact(ctx, req)
	res.Delegated = true
	return res, err
}
