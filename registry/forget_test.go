package registry_test

import (
	"context"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/registry"
)

// toldEngine is an engine of somebody else's that can be refreshed. Its values cannot be compared.
type toldEngine struct {
	*engine.Engine
	told func(e *engine.Engine)
}

func (e toldEngine) Refresh(ctx context.Context) error {
	e.told(e.Engine)
	return e.Engine.Refresh(ctx)
}

// TestForgetRefreshesOthers: an erasure tells every other engine that can be told, whoever made it.
func TestForgetRefreshesOthers(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, &shop{})
	told := map[*engine.Engine]int{}
	err := registry.AddEngine(r, "told", "parts", func() nothing { return nothing{} }, func(ctx context.Context, _ nothing, env registry.Env) (core.ContextEngine, error) {
		e, err := env.Compose(ctx)
		if err != nil {
			return nil, err
		}
		return toldEngine{Engine: e, told: func(e *engine.Engine) { told[e]++ }}, nil
	}, registry.Defaults(registry.Parts{Store: "memory", Retriever: "hybrid", Compactor: "archive", Searchers: []string{"lexical"}}))
	if err != nil {
		t.Fatal(err)
	}
	i := mustBuild(t, r, "engine: told\nagents: {b: {recentMessages: 5}}", registry.BuildOptions{})
	engines := map[string]*engine.Engine{}
	for _, agent := range []string{"a", "b"} {
		e, _, err := i.Engine(t.Context(), agent, "s")
		if err != nil {
			t.Fatal(err)
		}
		made, ok := e.(toldEngine)
		if !ok {
			t.Fatalf("engine is a %T", e)
		}
		engines[agent] = made.Engine
	}
	if engines["a"] == engines["b"] {
		t.Fatal("there is one engine: nothing is tested")
	}
	if _, err := i.Forget(t.Context(), engine.ForgetRequest{Scope: core.Scope{Agent: "a", Session: "s"}, Purge: true}); err != nil {
		t.Fatal(err)
	}
	if told[engines["b"]] != 1 {
		t.Errorf("the other engine was told %d times to read its sessions anew, want once", told[engines["b"]])
	}
}
