package core

import "context"

// Legacy is the engine that changes nothing: it hands back the host's own messages, stores nothing, and leaves compaction to the runtime. It
// keeps none of the promises about budget and memory; it is what answers when an engine must not.
type Legacy struct{ host Host }

var _ ContextEngine = (*Legacy)(nil)

// NewLegacy returns the pass-through engine. A nil host is NoHost.
func NewLegacy(host Host) *Legacy {
	if host == nil {
		host = NoHost{}
	}
	return &Legacy{host: host}
}

// Info describes the engine: it does not own compaction.
func (l *Legacy) Info() Info {
	return Info{
		ID: "legacy", Name: "Legacy context engine", Version: "1.0.0",
		CurrentTurnFence: CurrentTurnFence, TurnIdempotency: TurnIdempotency,
	}
}

// Ingest stores nothing.
func (l *Legacy) Ingest(context.Context, IngestRequest) (IngestResult, error) {
	return IngestResult{}, nil
}

// Assemble returns the host's messages as they are. Without a transcript there is nothing to return, which is ErrInvalid.
func (l *Legacy) Assemble(_ context.Context, req AssembleRequest) (AssembleResult, error) {
	if req.Transcript == nil {
		return AssembleResult{}, invalid("legacy", "transcript", "legacy keeps no messages: hand over the host's")
	}
	if req.Transcript.Skipped > 0 {
		return AssembleResult{}, ErrNeedTranscript
	}
	res := AssembleResult{Messages: req.Transcript.Messages, PromptAuthority: AuthorityHost}
	for i := range res.Messages {
		res.Choices = append(res.Choices, Choice{Message: i, Count: 1, Reason: ReasonTail})
	}
	return res, nil
}

// Compact asks the runtime, once.
func (l *Legacy) Compact(ctx context.Context, req CompactRequest) (CompactResult, error) {
	if err := Require(l.host, "legacy", "compact", []Capability{CanDelegateHost}); err != nil {
		return CompactResult{}, err
	}
	res, err := l.host.Compact(ctx, req)
	res.Delegated = true
	return res, err
}
