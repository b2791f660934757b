package engine_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// listener is a retriever and a compactor that remembers what it was told of the run.
type listener struct {
	halver
	queries  []core.Query
	requests []core.CompactRequest
}

func (l *listener) Retrieve(_ context.Context, q core.Query) ([]core.Candidate, error) {
	l.queries = append(l.queries, q)
	return nil, nil
}

func (l *listener) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	l.requests = append(l.requests, c.Request)
	return l.halver.Compact(ctx, c)
}

// TestPartsAreToldTheSettings: what a host says of the model run reaches the retriever that is asked for it, and the compactor, whoever asked for the compaction;
// so does, there, where the host keeps the transcript.
func TestPartsAreToldTheSettings(t *testing.T) {
	l := &listener{}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
		c.Recall.Gate = false
		p.Retriever, p.Compactor = l, l
	})
	settings := core.RuntimeSettings{
		SchemaVersion: 1, Provider: "openai", Model: "small", ModelFamily: "family", RequestedModel: "large", ResolvedModel: "small", Mode: "fallback",
		FallbackReason: "rate_limited", EngineSelection: core.EngineSelection{SelectedID: "composed", Source: "configured"},
		ExecutionHost: core.ExecutionHost{ID: "embedded", Label: "Embedded runtime"},
	}
	scope := core.TranscriptScope{AgentID: "main", SessionID: "t1", Path: "/agents/main.sqlite"}
	for range 60 {
		f.ingest(user("where does the grey heron nest in the spring time"), assistant("it nests on the northern shore of the long lake"))
	}
	f.assemble(600, func(r *core.AssembleRequest) {
		r.Prompt, r.PromptMode, r.Settings = "where does the grey heron nest?", core.PromptFull, settings
	})
	if len(l.queries) == 0 {
		t.Fatal("the retriever was not asked")
	}
	for _, q := range l.queries {
		if diff := cmp.Diff(settings, q.Settings); diff != "" {
			t.Errorf("settings of a query (-want +got):\n%s", diff)
		}
	}
	if _, err := f.engine.Maintain(t.Context(), core.MaintainRequest{Session: f.id, Reason: "turn", Budget: 600, Settings: settings, TranscriptScope: scope}); err != nil {
		t.Fatal(err)
	}
	if len(l.requests) != 1 {
		t.Fatalf("Maintain asked the compactor %d times, want once", len(l.requests))
	}
	if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 600, Force: true, Settings: settings, TranscriptScope: scope}); err != nil {
		t.Fatal(err)
	}
	for _, req := range l.requests {
		if diff := cmp.Diff(settings, req.Settings); diff != "" {
			t.Errorf("settings of a compaction (-want +got):\n%s", diff)
		}
		if req.TranscriptScope != scope {
			t.Errorf("a compaction is told of the transcript %+v, want %+v", req.TranscriptScope, scope)
		}
	}
}
