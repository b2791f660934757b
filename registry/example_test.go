package registry_test

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// Shout is a retriever of one's own: it asks the best searcher there is.
type Shout struct {
	limit    int
	searcher core.Searcher
}

// Retrieve proposes what the searcher finds.
func (s Shout) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	hits, err := s.searcher.Search(ctx, core.SearchQuery{Scope: q.Scope, Text: q.Prompt, Limit: min(s.limit, q.Limit), Exclude: q.InWindow})
	out := make([]core.Candidate, 0, len(hits))
	for _, h := range hits {
		out = append(out, core.Candidate{Entry: h.Entry, Score: h.Score, Source: "shout"})
	}
	return out, err
}

// ShoutConfig is what an operator can set.
type ShoutConfig struct {
	Limit int `koanf:"limit" doc:"largest number of results"`
}

// A retriever of one's own, chosen for one agent.
func ExampleAddRetriever() {
	ctx := context.Background()
	defaults := func() ShoutConfig { return ShoutConfig{Limit: 10} }
	r := builtin.New()
	err := registry.AddRetriever(r, "shout", "asks the best searcher there is", defaults,
		func(ctx context.Context, cfg ShoutConfig, env registry.Env) (core.Retriever, error) {
			searcher, err := env.Searcher(ctx, "")
			if err != nil {
				return nil, err
			}
			return &Shout{limit: cfg.Limit, searcher: searcher}, nil
		},
		registry.Conformance("", defaults))
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg, err := r.Load(registry.Bytes("example", "yaml", []byte("agents: {coder: {retriever: {type: shout, limit: 3}}}")))
	if err != nil {
		fmt.Println(err)
		return
	}
	instance, err := r.Build(ctx, cfg, registry.BuildOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = instance.Close(ctx) }()
	for _, agent := range []string{"coder", "writer"} {
		engine, _, err := instance.Engine(ctx, agent, "session-1")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(agent, engine.Info().Parts.Retriever)
	}
	_, err = r.Load(registry.Bytes("typo", "yaml", []byte("retriever: shuot")))
	fmt.Println(err)
	// Output:
	// coder shout
	// writer hybrid
	// registry: load "typo": retriever: unknown retriever "shuot", did you mean "shout"? (known: hybrid, recent, semantic, shout): invalid
}
