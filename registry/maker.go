package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
)

// maker opens parts and keeps those that engines share. One goroutine at a time uses it.
type maker struct {
	r        *Registry
	base     Env
	ids      func() string
	version  string
	shelves  map[string]*shelf
	models   map[string]Model
	counters map[string]core.TokenCounter
	// opened holds every part that was opened, in that order, for Close and Ping.
	opened []any
	// ownStore lets engines close their store.
	ownStore bool
}

func newMaker(r *Registry, base Env, ids func() string, version string) *maker {
	return &maker{
		r: r, base: base, ids: ids, version: version,
		shelves: make(map[string]*shelf), models: make(map[string]Model), counters: make(map[string]core.TokenCounter),
	}
}

// part opens what c chooses. The caller says what type it is.
func (m *maker) part(ctx context.Context, kind Kind, c Choice, env Env) (any, error) {
	p, err := m.r.look(kind, c.Type)
	if err != nil {
		return nil, err
	}
	d := decoder{r: m.r, engine: env.Config.Engine.Type}
	cfg, err := d.options(p, c.Options, path{string(kind)})
	if err != nil {
		return nil, err
	}
	v, err := p.open(ctx, cfg, env)
	if err != nil {
		return nil, fmt.Errorf("open %s %q: %w", kind, c.Type, err)
	}
	return v, nil
}

// open is part for the type a kind has. Except for a retriever, nil is an error.
func open[P any](ctx context.Context, m *maker, kind Kind, c Choice, env Env) (P, error) {
	v, err := m.part(ctx, kind, c, env)
	if err != nil {
		var zero P
		return zero, err
	}
	p, ok := v.(P)
	if (!ok || isNil(p)) && kind != KindRetriever {
		return p, fmt.Errorf("open %s %q: the factory returned none: %w", kind, c.Type, core.ErrInvalid)
	}
	return p, nil
}

func isNil(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Interface:
		return r.IsNil()
	}
	return false
}

func (m *maker) engine(ctx context.Context, cfg Config, factory Factory) (core.ContextEngine, error) {
	env := m.base
	env.Config, env.Factory, env.maker = cfg, factory, m
	return open[core.ContextEngine](ctx, m, KindEngine, cfg.Engine, env)
}

// compose makes an engine from parts.
func (m *maker) compose(ctx context.Context, e Env, edits []func(*Config)) (*engine.Engine, error) {
	cfg := e.Config
	for _, edit := range edits {
		edit(&cfg)
	}
	cfg, err := m.r.fill(cfg, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range []struct {
		kind Kind
		name string
	}{{KindStore, cfg.Store.Type}, {KindCompactor, cfg.Compactor.Type}} {
		if c.name == "" {
			return nil, fmt.Errorf("engine %q needs a %s: set %s (known: %s): %w",
				cfg.Engine.Type, c.kind, c.kind, list(m.r.Names(c.kind)), core.ErrInvalid)
		}
	}
	env := m.base
	env.Config, env.Factory, env.maker = m.r.located(cfg, e.Factory), e.Factory, m
	cfg = env.Config
	if env.Completer, env.Embedder, err = m.chosenModels(ctx, env); err != nil {
		return nil, err
	}
	if env.Counter, err = m.counter(ctx, cfg.Tokenizer, env); err != nil {
		return nil, err
	}
	if env.shelf, err = m.store(ctx, env); err != nil {
		return nil, err
	}
	env.Store = env.shelf.store
	parts := engine.Parts{
		Store: env.Store, Counter: env.Counter, Host: env.Host, OwnStore: m.ownStore,
		Names: core.PartNames{Store: cfg.Store.Type, Retriever: cfg.Retriever.Type, Compactor: cfg.Compactor.Type},
	}
	var opened []any
	if cfg.Retriever.Type != "" {
		r, err := open[core.Retriever](ctx, m, KindRetriever, cfg.Retriever, env)
		if err != nil {
			return nil, err
		}
		if !isNil(r) {
			parts.Retriever = r
			opened = append(opened, r)
		}
	}
	if parts.Compactor, err = m.openCompactor(ctx, cfg.Compactor, env, &opened); err != nil {
		return nil, errors.Join(err, closeAll(opened))
	}
	opened = append(opened, parts.Compactor)
	parts.Searcher = m.openedSearcher(env)
	made, err := m.assemble(cfg, env, parts, opened)
	if err != nil {
		return nil, errors.Join(err, closeAll(opened))
	}
	m.opened = append(m.opened, opened...)
	return made, nil
}

// openedSearcher returns the best searcher that is open for this configuration; nil when there is none but the store's own. An index is not made for the
// sake of a person's rare question.
func (m *maker) openedSearcher(env Env) core.Searcher {
	for _, name := range env.Searchers() {
		if name == StoreSearcher {
			return nil
		}
		d := decoder{r: m.r, engine: env.Config.Engine.Type}
		c, err := d.complete(Choice{Type: name, Options: env.Config.Searchers[name]}, KindSearcher, path{"searchers", name})
		if err != nil {
			continue
		}
		if found := env.shelf.searchers[searcherKey(c, env)]; found != nil {
			return searchOnly{found}
		}
	}
	return nil
}

// assemble calls engine.New while nothing is announced on the shelf, so that an observer's catching up and the first
// announcement leave no gap between them.
func (m *maker) assemble(cfg Config, env Env, parts engine.Parts, opened []any) (*engine.Engine, error) {
	relay := &relay{shelf: env.shelf}
	parts.Observers = []core.Observer{relay}
	opts := []engine.Option{
		engine.WithLogger(env.Logger),
		engine.WithInfo(cfg.Engine.Type, cfg.Engine.Type+" context engine", m.version),
	}
	if m.ids != nil {
		opts = append(opts, engine.WithIDs(m.ids))
	}
	env.shelf.mu.Lock()
	defer env.shelf.mu.Unlock()
	e, err := engine.New(parts, cfg.Core, opts...)
	if err != nil {
		return nil, err
	}
	for _, p := range opened {
		if o, ok := p.(core.Observer); ok {
			env.shelf.observers = append(env.shelf.observers, subscription{observer: o, teller: relay})
		}
	}
	return e, nil
}

func (m *maker) chosenModels(ctx context.Context, env Env) (core.Completer, core.Embedder, error) {
	cfg := env.Config
	var completer core.Completer
	if cfg.Model.Type != "" && !env.NoModels {
		model, err := m.model(ctx, cfg.Model, env)
		if err != nil {
			return nil, nil, err
		}
		if completer = model.Completer; completer == nil {
			return nil, nil, fmt.Errorf("model: %q completes no text, choose another (known: %s): %w", cfg.Model.Type, list(m.r.Names(KindModel)), core.ErrInvalid)
		}
	} else if slices.Contains(env.Host.Capabilities(), capability.Complete) {
		completer = hostCompleter{env.Host}
	}
	if cfg.Embedder.Type == "" {
		return completer, nil, nil
	}
	model, err := m.model(ctx, cfg.Embedder, env)
	if err != nil {
		return nil, nil, err
	}
	if model.Embedder == nil {
		return nil, nil, fmt.Errorf("embedder: %q makes no vectors, choose another (known: %s): %w", cfg.Embedder.Type, list(m.r.Names(KindModel)), core.ErrInvalid)
	}
	return completer, model.Embedder, nil
}

func (m *maker) model(ctx context.Context, c Choice, env Env) (Model, error) {
	k := key(c)
	if model, ok := m.models[k]; ok {
		return model, nil
	}
	model, err := open[Model](ctx, m, KindModel, c, Env{
		Getenv: env.Getenv, Logger: env.Logger, Host: env.Host, StateDir: env.StateDir, Factory: env.Factory, Config: env.Config,
	})
	if err != nil {
		return Model{}, err
	}
	m.opened = append(m.opened, model.Completer, model.Embedder)
	if m.base.models != nil {
		model = m.base.models(c.Type, model)
	}
	m.models[k] = model
	return model, nil
}

func (m *maker) counter(ctx context.Context, name string, env Env) (core.TokenCounter, error) {
	if c := m.counters[name]; c != nil {
		return c, nil
	}
	c, err := open[core.TokenCounter](ctx, m, KindTokenizer, Choice{Type: name}, env)
	if err != nil {
		return nil, err
	}
	m.counters[name] = c
	return c, nil
}

func (m *maker) store(ctx context.Context, env Env) (*shelf, error) {
	k := key(env.Config.Store)
	if s := m.shelves[k]; s != nil {
		return s, nil
	}
	store, err := m.openStore(ctx, env.Config.Store, env)
	if err != nil {
		return nil, err
	}
	s := &shelf{store: store, searchers: make(map[string]core.Searcher)}
	m.shelves[k] = s
	if !m.ownStore {
		m.opened = append(m.opened, store)
	}
	return s, nil
}

// openCompactor opens a compactor, and for one that works with others also those.
func (m *maker) openCompactor(ctx context.Context, c Choice, env Env, opened *[]any) (core.Compactor, error) {
	env.tier = func(ctx context.Context, c Choice) (core.Compactor, error) {
		tier, err := m.openCompactor(ctx, c, env, opened)
		if err == nil {
			*opened = append(*opened, tier)
		}
		return tier, err
	}
	return open[core.Compactor](ctx, m, KindCompactor, c, env)
}

// openStore opens a store, and for one that stands in front of others also those.
func (m *maker) openStore(ctx context.Context, c Choice, env Env) (core.Store, error) {
	env.maker = nil
	env.nested = func(ctx context.Context, c Choice) (core.Store, error) {
		if c.Type == "" {
			return nil, fmt.Errorf("open store: name its type (known: %s): %w", list(m.r.Names(KindStore)), core.ErrInvalid)
		}
		return m.openStore(ctx, c, env)
	}
	return open[core.Store](ctx, m, KindStore, c, env)
}

// closeAll closes what can be closed, the last opened first.
func closeAll(parts []any) error {
	var errs []error
	for _, p := range slices.Backward(parts) {
		if c, ok := p.(io.Closer); ok {
			if err := c.Close(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
