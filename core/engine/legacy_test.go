package engine_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// TestLegacy: the engine that changes nothing hands back what it is given, one choice for each message, stores nothing, leaves compaction to the runtime, and says what it
// cannot do.
func TestLegacy(t *testing.T) {
	host := &compacts{}
	l := engine.NewLegacy(host)
	said := []message.Message{user("hi"), assistant("hello")}
	res, err := l.Assemble(t.Context(), core.AssembleRequest{Transcript: &core.Transcript{Messages: said}, Budget: 1})
	if err != nil || shown(res) != "hi | hello" || res.PromptAuthority != core.AuthorityHost {
		t.Errorf("%+v, error %v", res, err)
	}
	want := []window.Choice{{Message: 0, Count: 1, Reason: window.ReasonTail}, {Message: 1, Count: 1, Reason: window.ReasonTail}}
	if !slices.Equal(res.Choices, want) {
		t.Errorf("choices %+v, want %+v", res.Choices, want)
	}
	if _, err := l.Assemble(t.Context(), core.AssembleRequest{Budget: 1}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("without a transcript: error %v, want ErrInvalid", err)
	}
	if _, err := l.Assemble(t.Context(), core.AssembleRequest{Transcript: &core.Transcript{Skipped: 1, Messages: said}}); !errors.Is(err, core.ErrNeedTranscript) {
		t.Errorf("with a part of one: error %v, want ErrNeedTranscript", err)
	}
	if res, err := l.Ingest(t.Context(), core.IngestRequest{Message: said[0]}); err != nil || res.Ingested != 0 || len(res.IDs) > 0 {
		t.Errorf("ingested %+v, error %v", res, err)
	}
	if res, err := l.Compact(t.Context(), core.CompactRequest{}); err != nil || !res.Delegated || !res.Compacted || host.asked != 1 {
		t.Errorf("compacted %+v, error %v, the runtime was asked %d times", res, err, host.asked)
	}
	if i := l.Info(); i.ID != "legacy" || i.OwnsCompaction || i.CurrentTurnFence != engine.CurrentTurnFence || i.TurnIdempotency != engine.TurnIdempotency || i.Name == "" || i.Version == "" {
		t.Errorf("info %+v", i)
	}
	_, err = engine.NewLegacy(nil).Compact(t.Context(), core.CompactRequest{})
	if re, ok := errors.AsType[*capability.RequirementError](err); !ok || re.Engine != "legacy" || re.Operation != "compact" || !slices.Contains(re.Missing, capability.DelegateHost) {
		t.Errorf("without a runtime: error %v, want a requirement that is not met", err)
	}
}
