package registry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/registry"
)

// What the parts of these tests can be told.
type (
	nothing     struct{}
	diskConfig  struct{ Path string }
	limitConfig struct {
		Limit int `koanf:"limit" doc:"largest number of results"`
	}
	mixConfig struct {
		Limit   int                `koanf:"limit"`
		Wait    time.Duration      `koanf:"wait"`
		Names   []string           `koanf:"names"`
		Weights map[string]float64 `koanf:"weights"`
		Deep    struct {
			On bool `koanf:"on"`
		} `koanf:"deep"`
		Hidden func() `koanf:"-"`
	}
	remoteConfig struct {
		BaseURL        string `koanf:"baseUrl"`
		APIKey         string `koanf:"apiKey"`
		RecentMessages *int   `koanf:"recentMessages"`
	}
)

// shop counts what its factories opened and closed.
type shop struct {
	mu      sync.Mutex
	stores  []*shopStore
	indexes []*index
	recalls []*recall
	fail    error
}

type shopStore struct {
	*memory.Store
	path   string
	closed int
}

func (s *shopStore) Close() error {
	s.closed++
	return s.Store.Close()
}

// index is a searcher that remembers what it was told.
type index struct {
	mu       sync.Mutex
	attached int
	seen     []string
}

func (x *index) Attach(core.Store) error { x.attached++; return nil }
func (x *index) Search(context.Context, core.SearchQuery) ([]core.Hit, error) {
	return nil, nil
}

func (x *index) Appended(_ context.Context, es []core.Entry) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range es {
		x.seen = append(x.seen, e.Text())
	}
	return nil
}
func (x *index) Updated(context.Context, core.Entry) error           { return nil }
func (x *index) Deleted(context.Context, core.Scope, []string) error { return nil }

// recall is a retriever with a memory of its own.
type recall struct {
	index
	cfg      mixConfig
	searcher core.Searcher
}

func (*recall) Retrieve(context.Context, core.Query) ([]core.Candidate, error) { return nil, nil }

// keep is a compactor that does nothing.
type keep struct{}

func (keep) OwnsCompaction() bool { return true }
func (keep) Compact(context.Context, core.Compaction) (core.Patch, error) {
	return core.Patch{Reason: core.ReasonAlreadyCompacted}, nil
}

func words(text string) int {
	n := 0
	for range text {
		n++
	}
	return (n + 3) / 4
}

func mixDefaults() mixConfig {
	return mixConfig{Limit: 5, Wait: 2 * time.Second, Weights: map[string]float64{"a": 1}}
}

// newRegistry returns a registry with parts named like the real ones.
func newRegistry(tb testing.TB, s *shop) *registry.Registry {
	tb.Helper()
	r := &registry.Registry{}
	none := func() nothing { return nothing{} }
	open := func(path string) (core.Store, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fail != nil {
			return nil, s.fail
		}
		st := &shopStore{Store: memory.New(), path: path}
		s.stores = append(s.stores, st)
		return st, nil
	}
	compose := func(ctx context.Context, _ nothing, env registry.Env) (core.ContextEngine, error) {
		return env.Compose(ctx)
	}
	for _, err := range []error{
		registry.AddStore(r, "memory", "in memory", none,
			func(context.Context, nothing, registry.Env) (core.Store, error) { return open("") },
			registry.Conformance("", none)),
		registry.AddStore(r, "disk", "on disk", func() diskConfig { return diskConfig{Path: "x.db"} },
			func(_ context.Context, c diskConfig, _ registry.Env) (core.Store, error) { return open(c.Path) },
			registry.Conformance("one", func() diskConfig { return diskConfig{Path: "1"} }),
			registry.Conformance("two", func() diskConfig { return diskConfig{Path: "2"} })),
		registry.AddRetriever(r, "hybrid", "mix", mixDefaults,
			func(ctx context.Context, c mixConfig, env registry.Env) (core.Retriever, error) {
				searcher, err := env.Searcher(ctx, "")
				if err != nil {
					return nil, err
				}
				out := &recall{cfg: c, searcher: searcher}
				s.recalls = append(s.recalls, out)
				return out, nil
			},
			registry.Conformance("", mixDefaults)),
		registry.AddRetriever(r, "recent", "newest", func() limitConfig { return limitConfig{Limit: 8} },
			func(context.Context, limitConfig, registry.Env) (core.Retriever, error) { return nil, nil }),
		registry.AddCompactor(r, "archive", "no model", none,
			func(context.Context, nothing, registry.Env) (core.Compactor, error) { return keep{}, nil },
			registry.Conformance("", none)),
		registry.AddCompactor(r, "summary", "a model", func() limitConfig { return limitConfig{} },
			func(_ context.Context, _ limitConfig, env registry.Env) (core.Compactor, error) {
				if env.Completer == nil {
					return nil, errors.New("summary: needs a model")
				}
				return keep{}, nil
			}),
		registry.AddSearcher(r, "lexical", "words", func() limitConfig { return limitConfig{Limit: 3} },
			func(context.Context, limitConfig, registry.Env) (core.Searcher, error) {
				x := &index{}
				s.indexes = append(s.indexes, x)
				return x, nil
			}),
		registry.AddModel(r, "openai", "an endpoint", func() remoteConfig { return remoteConfig{} },
			func(_ context.Context, _ remoteConfig, _ registry.Env) (registry.Model, error) {
				return registry.Model{Completer: fakeModel{}}, nil
			}),
		registry.AddTokenizer(r, "o200k_base", "four letters", func() (core.TokenCounter, error) { return words, nil }),
		registry.AddTokenizer(r, "cl100k_base", "four letters", func() (core.TokenCounter, error) { return words, nil }),
		registry.AddEngine(r, "composed", "parts", none, compose, registry.Defaults(registry.Parts{
			Store: "memory", Retriever: "hybrid", Compactor: "archive", Searchers: []string{"lexical"},
		})),
		registry.AddEngine(r, "legacy", "passes through", none,
			func(_ context.Context, _ nothing, env registry.Env) (core.ContextEngine, error) {
				return engine.NewLegacy(env.Host), nil
			}),
		registry.AddEngine(r, "openbrain", "remote", func() remoteConfig { return remoteConfig{} },
			func(ctx context.Context, c remoteConfig, env registry.Env) (core.ContextEngine, error) {
				return env.Compose(ctx, func(cfg *registry.Config) {
					if c.RecentMessages != nil {
						cfg.Core.RecentMessages = *c.RecentMessages
					}
				})
			},
			registry.Plugins("the-plugin"),
			registry.Defaults(registry.Parts{Store: "disk", Retriever: "recent", Compactor: "archive"})),
	} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return r
}

type fakeModel struct{}

func (fakeModel) Complete(context.Context, core.CompletionRequest) (core.Completion, error) {
	return core.Completion{Text: "text"}, nil
}

func yaml(text string) registry.Source { return registry.Bytes("test.yaml", "yaml", []byte(text)) }

func mustLoad(tb testing.TB, r *registry.Registry, sources ...registry.Source) registry.Config {
	tb.Helper()
	cfg, err := r.Load(sources...)
	if err != nil {
		tb.Fatal(err)
	}
	return cfg
}

func mustResolve(tb testing.TB, r *registry.Registry, cfg registry.Config, agent, session string) (registry.Config, registry.ArmInfo) {
	tb.Helper()
	out, info, err := r.Resolve(cfg, agent, session)
	if err != nil {
		tb.Fatal(err)
	}
	return out, info
}

func counterIDs() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("id-%04d", n)
	}
}
