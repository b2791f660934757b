package cli_test

import (
	"context"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// twice shows the newest message twice.
type twice struct{ core.ContextEngine }

func (e twice) Assemble(ctx context.Context, req core.AssembleRequest) (core.AssembleResult, error) {
	res, err := e.ContextEngine.Assemble(ctx, req)
	if n := len(res.Messages); n > 0 && res.Messages[n-1].Role == message.User {
		res.Messages = append(res.Messages[:n:n], res.Messages[n-1])
	}
	return res, err
}

func TestViolationsEndWithTheirOwnCode(t *testing.T) {
	reg := builtin.New()
	err := registry.AddEngine(reg, "twice", "is broken", func() struct{} { return struct{}{} },
		func(ctx context.Context, _ struct{}, env registry.Env) (core.ContextEngine, error) {
			e, err := env.Compose(ctx)
			return twice{e}, err
		}, registry.Defaults(registry.Parts{Store: "memory", Retriever: "recent", Compactor: "archive"}))
	if err != nil {
		t.Fatal(err)
	}
	config := write(t, "c.yaml", "engine: twice\n")
	run(t, reg, "", "replay", "--config", config, "--budget", "8k").
		want(t, cli.ExitViolations, "twice: message 1 shows entry 0 again", "more; --json has all", "not read back", "error: 98 violations")
}
