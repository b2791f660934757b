package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// BuildOptions is what no configuration file can hold. All of it is optional.
type BuildOptions struct {
	// Host is the runtime around the engines; core.NoHost when nil.
	Host core.Host
	// Logger gets what operators should know; nil discards it.
	Logger *slog.Logger
	// Getenv reads the environment; os.Getenv when nil.
	Getenv func(name string) string
	// StateDir is the folder for the file of a store that has no path, an absolute path; the place for state of the user when empty.
	StateDir string
	// Factory holds for agents whose own the Instance is not told, see Instance.SetFactory.
	Factory Factory
	// IDs makes entry ids; random when nil. It must be safe for concurrent use.
	IDs func() string
	// Version is what core.Info reports.
	Version string
	// NoModels leaves out the models that complete text: engines are made as if none were configured, and only a host that offers one is asked. An embedder
	// that is configured is still opened, because a part that compares meaning cannot be made without one.
	NoModels bool
	// Models is given every model that is opened, under its name in the configuration's parts, and returns what is used in its place, for instance to count what is
	// asked. Nil uses them as they are.
	Models func(name string, m Model) Model
}

// env returns what all factories get.
func (o BuildOptions) env() Env {
	e := Env{Getenv: o.Getenv, Logger: o.Logger, Host: o.Host, StateDir: o.StateDir, Factory: o.Factory, NoModels: o.NoModels, models: o.Models}
	if e.Getenv == nil {
		e.Getenv = os.Getenv
	}
	if e.Logger == nil {
		e.Logger = slog.New(slog.DiscardHandler)
	}
	if e.Host == nil {
		e.Host = core.NoHost{}
	}
	return e
}

// Instance gives every session its engine. It is safe for concurrent use; Close ends it.
type Instance struct {
	cfg Config
	// gate lets one goroutine at a time make engines.
	gate  chan struct{}
	maker *maker

	mu     sync.RWMutex
	closed bool
	// built holds what was made by agent and arm; engines the same by configuration.
	built   map[place]made
	engines map[string]core.ContextEngine
	// arms are the arms of sessions used lately.
	arms map[core.SessionID]int
	// providers serve the models of sessions used lately.
	providers map[core.SessionID]string
	// factories are what the host said about its agents.
	factories map[string]Factory
}

// place is where a configuration comes from. Agents that nothing is said about, by the configuration or the host, share the empty one.
type place struct {
	agent string
	arm   int
}

type made struct {
	engine core.ContextEngine
	config string
	store  string // identifies the store's configuration
}

// Build checks cfg and returns what makes its engines. It opens nothing: engines are made when a session first needs them,
// once for each distinct configuration. Stores, searchers, models and tokenizers of identical configuration are shared. ctx
// bounds the call only.
func (r *Registry) Build(ctx context.Context, cfg Config, opts BuildOptions) (*Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("registry: build: %w", err)
	}
	full, err := r.check(cfg)
	if err != nil {
		return nil, fmt.Errorf("registry: build: %w", err)
	}
	env := opts.env()
	for _, what := range full.Ignored {
		env.Logger.WarnContext(ctx, "ignored in the host's configuration", "what", what)
	}
	return &Instance{
		cfg: full, gate: make(chan struct{}, 1), maker: newMaker(r, env, opts.IDs, opts.Version),
		built: make(map[place]made), engines: make(map[string]core.ContextEngine), arms: make(map[core.SessionID]int),
		factories: make(map[string]Factory), providers: make(map[core.SessionID]string),
	}, nil
}

// Config returns the completed configuration.
func (i *Instance) Config() Config { return i.cfg }

// Engine returns the engine for a session, and why it is that one. Equal configurations have the same engine. The Instance
// owns it: Close disposes of it, its user does not. It fails with what a part's factory reports, and then tries again on the next call; after Close with
// core.ErrClosed.
//
// A session stays in the arm that it began in, whatever becomes of the weights: the engine records it (see engine.Armed), and a subagent's session belongs
// to its parent's arm. Only an arm that is no longer configured loses its sessions.
func (i *Instance) Engine(ctx context.Context, agent, session string) (core.ContextEngine, ArmInfo, error) {
	return i.engine(ctx, agent, session, true)
}

// Lookup is Engine for those who only look: a session that has not begun is not given an arm by it.
func (i *Instance) Lookup(ctx context.Context, agent, session string) (core.ContextEngine, ArmInfo, error) {
	return i.engine(ctx, agent, session, false)
}

func (i *Instance) engine(ctx context.Context, agent, session string, begin bool) (core.ContextEngine, ArmInfo, error) {
	arm, err := i.arm(ctx, agent, session, begin)
	var m made
	if err == nil {
		m, err = i.made(ctx, agent, arm)
	}
	if err != nil {
		return nil, ArmInfo{}, fmt.Errorf("registry: engine for %q: %w", agent, err)
	}
	return m.engine, i.cfg.info(agent, session, i.provider(agent, session), arm, m.config), nil
}

// made returns what is made for an agent and an arm.
func (i *Instance) made(ctx context.Context, agent string, arm int) (made, error) {
	p := place{agent: agent, arm: arm}
	_, configured := i.cfg.Agents[agent]
	if _, told := i.factory(agent); !configured && !told {
		p.agent = ""
	}
	m, ok, err := i.find(p)
	if err == nil && !ok {
		m, err = i.build(ctx, p)
	}
	return m, err
}

func (i *Instance) find(p place) (made, bool, error) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.closed {
		return made{}, false, core.ErrClosed
	}
	m, ok := i.built[p]
	return m, ok, nil
}

func (i *Instance) build(ctx context.Context, p place) (made, error) {
	select {
	case i.gate <- struct{}{}:
		defer func() { <-i.gate }()
	case <-ctx.Done():
		return made{}, ctx.Err()
	}
	if m, ok, err := i.find(p); ok || err != nil {
		return m, err
	}
	cfg, err := i.maker.r.resolve(i.cfg, p.agent, p.arm)
	if err != nil {
		return made{}, err
	}
	f, _ := i.factory(p.agent)
	m := made{config: cfg.id(), store: key(i.maker.r.located(cfg, f).Store)}
	cfg.Core.History.Limits = cfg.Core.History.Limits.Over(f.Limits)
	k := key(cfg) + f.AgentDir + "\x00" + f.WorkspaceDir
	if m.engine = i.engines[k]; m.engine == nil {
		if m.engine, err = i.maker.engine(ctx, cfg, f); err != nil {
			return made{}, err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.engines[k] = m.engine
	if now, _ := i.said(p.agent); reflect.DeepEqual(now, f) {
		i.built[p] = m // else it is made anew for what was said meanwhile
	}
	return m, nil
}

// Engines returns the engines made so far, in no particular order.
func (i *Instance) Engines() []core.ContextEngine {
	i.mu.RLock()
	defer i.mu.RUnlock()
	out := make([]core.ContextEngine, 0, len(i.engines))
	for _, e := range i.engines {
		out = append(out, e)
	}
	return out
}

// All makes the engines of every arm, for agents with an override and for all others, and returns them, each once.
func (i *Instance) All(ctx context.Context) ([]core.ContextEngine, error) {
	agents := append([]string{""}, slices.Sorted(maps.Keys(i.cfg.Agents))...)
	for _, agent := range agents {
		if len(i.cfg.Arms) == 0 {
			if _, err := i.made(ctx, agent, -1); err != nil {
				return nil, fmt.Errorf("registry: engine for %q: %w", agent, err)
			}
		}
		for n, a := range i.cfg.Arms {
			if agent != "" && !a.takes(agent) {
				continue
			}
			if _, err := i.made(ctx, agent, n); err != nil {
				return nil, fmt.Errorf("registry: engine for %q, arm %q: %w", agent, a.Name, err)
			}
		}
	}
	return i.Engines(), nil
}

// Ping asks every opened part that talks to something outside whether it can, and joins what they report.
func (i *Instance) Ping(ctx context.Context) error {
	select {
	case i.gate <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("registry: ping: %w", ctx.Err())
	}
	parts := slices.Clone(i.maker.opened)
	<-i.gate
	var errs []error
	for _, p := range parts {
		pinger, ok := p.(core.Pinger)
		if s, isStore := p.(core.Store); isStore && !ok {
			pinger, ok = core.As[core.Pinger](s)
		}
		if !ok {
			continue
		}
		if err := pinger.Ping(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("registry: ping: %w", err)
	}
	return nil
}

// Close disposes of the engines, then closes the parts they shared. It waits for an engine that is being made. ctx bounds the
// engines' disposal. A second call does nothing.
func (i *Instance) Close(ctx context.Context) error {
	i.gate <- struct{}{}
	defer func() { <-i.gate }()
	i.mu.Lock()
	if i.closed {
		i.mu.Unlock()
		return nil
	}
	i.closed = true
	i.mu.Unlock()
	var errs []error
	for _, e := range i.engines {
		if d, ok := e.(core.Disposer); ok {
			errs = append(errs, d.Dispose(ctx))
		}
	}
	errs = append(errs, closeAll(i.maker.opened))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("registry: close: %w", err)
	}
	return nil
}
