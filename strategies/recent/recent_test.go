package recent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/recent"
)

func TestProposesNothing(t *testing.T) {
	r, err := recent.New(recent.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	q := core.Query{
		Scope: core.Scope{Agent: "ada"}, Prompt: "anything", Recent: []core.Entry{{ID: "a"}}, Tokens: 100, Limit: 5,
	}
	if got, err := r.Retrieve(t.Context(), q); len(got) != 0 || err != nil {
		t.Errorf("Retrieve() = %v, %v, want nothing", got, err)
	}
	if got := r.RecallShare(); got != 0 {
		t.Errorf("RecallShare() = %v, want 0", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Retrieve(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("Retrieve() error = %v, want context.Canceled", err)
	}
}
