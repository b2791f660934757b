package registry

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// Env is what the factory of a part may use, besides its own configuration. Getenv, Logger and Host are never nil; the
// other fields say when they are set. An Env and what its methods return is good for as long as the Instance, but
// the methods themselves only until the factory returns.
type Env struct {
	// Getenv reads the environment; secrets come from there when no file has them.
	Getenv func(name string) string
	// Logger is for what an operator should know. Contents of messages and secrets are never logged.
	Logger *slog.Logger
	// Host is the runtime around the engine.
	Host core.Host
	// StateDir is where a store that has no path keeps its file; empty for the place of the user.
	StateDir string
	// Factory is what the host said about the agent. For a store, a searcher or a model, which engines share, it is that of the first engine.
	Factory Factory
	// Config is the resolved configuration of the engine that the part is made for. For a store, a searcher or a model, which engines share,
	// it is that of the first engine.
	Config Config
	// Counter counts tokens. Nil for models and tokenizers.
	Counter core.TokenCounter
	// Store is what the engine writes to: for retrievers, compactors and searchers.
	Store core.Store
	// Completer is the configured model, or the host's where none is configured and the host offers one; else nil. For
	// retrievers, compactors, searchers and stores.
	Completer core.Completer
	// Embedder is the configured one; nil when there is none. For the same parts as Completer.
	Embedder core.Embedder
	// NoModels says that no model is to be asked to complete text: Completer is not the configured one, and OpenModel is not for that either.
	NoModels bool

	models func(name string, m Model) Model
	maker  *maker
	shelf  *shelf
	// nested opens further stores for a store that stands in front of others.
	nested func(ctx context.Context, c Choice) (core.Store, error)
	// tier opens further compactors for one that works with others.
	tier func(ctx context.Context, c Choice) (core.Compactor, error)
}

// OpenCompactor opens a compactor for one that works with others. It is closed with the engine. Only compactors have it; their configuration holds
// the Choice, tagged kind:"compactor".
func (e Env) OpenCompactor(ctx context.Context, c Choice) (core.Compactor, error) {
	if e.tier == nil {
		return nil, fmt.Errorf("registry: open compactor: only a compactor's factory can do that: %w", core.ErrInvalid)
	}
	return e.tier(ctx, c)
}

// OpenModel opens a further model, such as one that is asked when the first one fails. Equal ones are shared, and the Instance closes them. For
// compactors and retrievers.
func (e Env) OpenModel(ctx context.Context, c Choice) (Model, error) {
	if e.maker == nil {
		return Model{}, fmt.Errorf("registry: open model: only a part that an engine is made of can ask: %w", core.ErrInvalid)
	}
	return e.maker.model(ctx, c, e)
}

// OpenStore opens a store for one that stands in front of it: a decorator. The caller owns it and closes it with itself. Only
// stores have it; their configuration holds the Choice, tagged kind:"store".
func (e Env) OpenStore(ctx context.Context, c Choice) (core.Store, error) {
	if e.nested == nil {
		return nil, fmt.Errorf("registry: open store: only a store's factory can do that: %w", core.ErrInvalid)
	}
	return e.nested(ctx, c)
}

// StoreSearcher is the name of the search that a store has of its own.
const StoreSearcher = "store"

// Searcher returns a searcher by name: StoreSearcher for the store's own, else a registered one, made and fed once per store whoever
// asks. An empty name stands for the best there is: the store's own, else the first configured. ErrInvalid names what there is. Only
// for retrievers and compactors.
func (e Env) Searcher(ctx context.Context, name string) (core.Searcher, error) {
	names := e.Searchers()
	if name == "" {
		if len(names) == 0 {
			return nil, fmt.Errorf("registry: searcher: the store has no search of its own and no searcher is configured: set searchers (known: %s): %w",
				e.knownSearchers(), core.ErrInvalid)
		}
		name = names[0]
	}
	if name == StoreSearcher {
		if s, ok := core.As[core.Searcher](e.Store); ok {
			return s, nil
		}
		return nil, fmt.Errorf("registry: searcher: the store has no search of its own: choose another (known: %s): %w", e.knownSearchers(), core.ErrInvalid)
	}
	if e.maker == nil || e.shelf == nil {
		return nil, fmt.Errorf("registry: searcher %q: only a part that an engine is made of can ask: %w", name, core.ErrInvalid)
	}
	return e.maker.searcher(ctx, e, name)
}

// Searchers returns the names of the searchers that there are: the store's own first, if any, then the configured ones
// by name.
func (e Env) Searchers() []string {
	var out []string
	if _, ok := core.As[core.Searcher](e.Store); ok {
		out = append(out, StoreSearcher)
	}
	return append(out, slices.Sorted(maps.Keys(e.Config.Searchers))...)
}

func (e Env) knownSearchers() string {
	if e.maker == nil {
		return "none"
	}
	return list(e.maker.r.Names(KindSearcher))
}

// Compose makes an engine from the parts that Config names, after the edits. Parts that cost much (stores, searchers, models,
// tokenizers) are shared with the other engines of an Instance. Only engine factories have it.
func (e Env) Compose(ctx context.Context, edits ...func(*Config)) (*engine.Engine, error) {
	if e.maker == nil {
		return nil, fmt.Errorf("registry: compose: only an engine's factory can do that: %w", core.ErrInvalid)
	}
	return e.maker.compose(ctx, e, edits)
}

// hostCompleter asks the host's model.
type hostCompleter struct{ host core.Host }

func (h hostCompleter) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	return h.host.Complete(ctx, req)
}
