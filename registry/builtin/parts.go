package builtin

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/models/ollama"
	"github.com/contextengine/contextengine/models/openai"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/chain"
	"github.com/contextengine/contextengine/strategies/delegate"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/index"
	"github.com/contextengine/contextengine/strategies/lexical"
	"github.com/contextengine/contextengine/strategies/mask"
	"github.com/contextengine/contextengine/strategies/recent"
	"github.com/contextengine/contextengine/strategies/semantic"
	"github.com/contextengine/contextengine/strategies/summary"
)

// vectorName is the searcher that a semantic retriever prefers to words.
const vectorName = "vector"

// noConfig is the configuration of parts that have nothing to configure.
type noConfig struct{}

func nothing() noConfig { return noConfig{} }

func recentRetriever(_ context.Context, cfg recent.Config, _ registry.Env) (core.Retriever, error) {
	return recent.New(cfg)
}

// semanticConfig adds which searcher to ask.
type semanticConfig struct {
	Options  semantic.Config `koanf:",squash"`
	Searcher string          `koanf:"searcher" doc:"which searcher to ask: store or one of searchers; empty takes the store's, else vectors, else words"`
}

func semanticDefaults() semanticConfig { return semanticConfig{Options: semantic.DefaultConfig()} }

func semanticRetriever(ctx context.Context, cfg semanticConfig, env registry.Env) (core.Retriever, error) {
	name, known := cfg.Searcher, env.Searchers()
	if name == "" && !slices.Contains(known, registry.StoreSearcher) && slices.Contains(known, vectorName) {
		name = vectorName
	}
	searcher, err := env.Searcher(ctx, name)
	if err != nil {
		return nil, err
	}
	if m, ok := searcher.(core.ByMeaning); ok && m.ByMeaning() {
		return semantic.New(cfg.Options, searcher)
	}
	if name == "" {
		name = known[0]
	}
	return semantic.New(cfg.Options, searcher, semantic.WithSource(name))
}

// hybridRetriever asks the store's own search and every configured searcher.
func hybridRetriever(ctx context.Context, cfg hybrid.Config, env registry.Env) (core.Retriever, error) {
	searchers := make(map[string]core.Searcher)
	names := env.Searchers()
	if len(names) == 0 {
		names = []string{""} // whose error says what to set
	}
	for _, name := range names {
		s, err := env.Searcher(ctx, name)
		if err != nil {
			return nil, err
		}
		searchers[name] = s
	}
	return hybrid.New(cfg, searchers, hybrid.WithLogger(env.Logger))
}

func archiveCompactor(_ context.Context, cfg archive.Config, _ registry.Env) (core.Compactor, error) {
	return archive.New(cfg)
}

func maskCompactor(_ context.Context, cfg mask.Config, _ registry.Env) (core.Compactor, error) {
	return mask.New(cfg)
}

func indexCompactor(_ context.Context, cfg index.Config, _ registry.Env) (core.Compactor, error) {
	return index.New(cfg)
}

// chainConfig names the tiers.
type chainConfig struct {
	Tiers []registry.Choice `koanf:"tiers" kind:"compactor" doc:"compactors in their order: names, or objects with the key type"`
}

func chainDefaults() chainConfig {
	return chainConfig{Tiers: []registry.Choice{{Type: "mask"}, {Type: "index"}, {Type: "archive"}}}
}

func chainCompactor(ctx context.Context, cfg chainConfig, env registry.Env) (core.Compactor, error) {
	tiers := make([]core.Compactor, len(cfg.Tiers))
	for i, c := range cfg.Tiers {
		var err error
		if tiers[i], err = env.OpenCompactor(ctx, c); err != nil {
			return nil, fmt.Errorf("tiers.%d: %w", i, err)
		}
	}
	return chain.New(tiers...)
}

// summaryConfig adds the models that are asked when the first one fails.
type summaryConfig struct {
	Options   summary.Config    `koanf:",squash"`
	Fallbacks []registry.Choice `koanf:"fallbacks" kind:"model" doc:"models that are asked in this order when the one before fails"`
}

func summaryDefaults() summaryConfig { return summaryConfig{Options: summary.DefaultConfig()} }

func summaryCompactor(ctx context.Context, cfg summaryConfig, env registry.Env) (core.Compactor, error) {
	model := env.Completer
	if env.Config.Model.Type == "" || env.NoModels {
		model = nil // the compactor asks the host itself, and then says so
	}
	if env.NoModels {
		cfg.Fallbacks = nil
	}
	var fallbacks []core.Completer
	for i, c := range cfg.Fallbacks {
		m, err := env.OpenModel(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("fallbacks.%d: %w", i, err)
		}
		if m.Completer == nil {
			return nil, fmt.Errorf("fallbacks.%d: %q completes no text: %w", i, c.Type, core.ErrInvalid)
		}
		fallbacks = append(fallbacks, m.Completer)
	}
	return summary.New(cfg.Options, model, summary.WithLogger(env.Logger), summary.WithFallbacks(fallbacks...))
}

func summaryPrompts() ([]registry.Prompt, error) {
	list, err := summary.ListPrompts(summary.Prompts{})
	if err != nil {
		return nil, err
	}
	out := make([]registry.Prompt, len(list))
	for i, p := range list {
		out[i] = registry.Prompt{Name: p.Name, Version: p.Version, Text: p.Text}
	}
	return out, nil
}

func delegateCompactor(_ context.Context, _ noConfig, env registry.Env) (core.Compactor, error) {
	return delegate.New(env.Host)
}

func lexicalSearcher(_ context.Context, cfg lexical.Config, env registry.Env) (core.Searcher, error) {
	return lexical.New(cfg, lexical.WithLogger(env.Logger))
}

func vectorSearcher(_ context.Context, cfg semantic.VectorConfig, env registry.Env) (core.Searcher, error) {
	if env.Embedder == nil {
		return nil, fmt.Errorf("it needs an embedder, set the key embedder: %w", core.ErrInvalid)
	}
	return semantic.NewVector(cfg, env.Embedder, semantic.WithLogger(env.Logger))
}

func openAIModel(_ context.Context, cfg openai.Config, env registry.Env) (registry.Model, error) {
	opts := []openai.Option{openai.WithLogger(env.Logger), openai.WithClock(env.Host.Now)}
	completer, err := openai.NewCompleter(cfg, opts...)
	if err != nil {
		return registry.Model{}, err
	}
	embedder, err := openai.NewEmbedder(cfg, opts...)
	if err != nil {
		return registry.Model{}, err
	}
	return registry.Model{Completer: completer, Embedder: embedder}, nil
}

func ollamaModel(_ context.Context, cfg ollama.Config, env registry.Env) (registry.Model, error) {
	embedder, err := ollama.NewEmbedder(cfg.WithEnv(env.Getenv), ollama.WithLogger(env.Logger))
	if err != nil {
		return registry.Model{}, err
	}
	return registry.Model{Embedder: embedder}, nil
}

func tokenizer(encoding string) func() (core.TokenCounter, error) {
	return func() (core.TokenCounter, error) {
		c, err := tiktoken.New(encoding)
		if err != nil {
			return nil, err
		}
		return c.Count, nil
	}
}
