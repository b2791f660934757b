package builtin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/registry"
)

func memoryStore(ctx context.Context, cfg memory.Config, _ registry.Env) (core.Store, error) {
	return memory.Open(ctx, cfg)
}

func sqliteStore(ctx context.Context, cfg sqlite.Config, env registry.Env) (core.Store, error) {
	if cfg.Path == "" && env.StateDir != "" {
		cfg.Path = filepath.Join(env.StateDir, "contextengine.db")
	}
	return sqlite.Open(ctx, cfg, sqlite.WithLogger(env.Logger))
}

func postgresStore(ctx context.Context, cfg postgres.Config, env registry.Env) (core.Store, error) {
	return postgres.Open(ctx, cfg.WithEnv(env.Getenv), postgres.WithLogger(env.Logger))
}

// outboxConfig adds which stores there are on the two sides.
type outboxConfig struct {
	Queue  outbox.Config   `koanf:",squash"`
	Local  registry.Choice `koanf:"local" kind:"store" doc:"the store in front, which keeps everything on this machine"`
	Remote registry.Choice `koanf:"remote" kind:"store" doc:"the store that everything is delivered to"`
}

func outboxDefaults() outboxConfig {
	return outboxConfig{Queue: outbox.DefaultConfig(), Local: registry.Choice{Type: "sqlite"}, Remote: registry.Choice{Type: openBrainName}}
}

func outboxStore(ctx context.Context, cfg outboxConfig, env registry.Env) (core.Store, error) {
	// The remote first: it makes nothing, and may lack what only the operator can give.
	remote, err := env.OpenStore(ctx, patient(cfg.Remote))
	if err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	local, err := env.OpenStore(ctx, cfg.Local)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("local: %w", err), remote.Close())
	}
	store, err := outbox.Open(ctx, cfg.Queue, local, remote, outbox.WithLogger(env.Logger))
	if err != nil {
		return nil, errors.Join(err, remote.Close(), local.Close())
	}
	return store, nil
}

// patient lets the outbox do the waiting, where nobody chose how often the client itself repeats a request.
func patient(c registry.Choice) registry.Choice {
	if _, ok := c.Options["maxRetries"]; ok || c.Type != openBrainName {
		return c
	}
	options := maps.Clone(c.Options)
	if options == nil {
		options = make(map[string]any)
	}
	options["maxRetries"] = 1
	return registry.Choice{Type: c.Type, Options: options}
}

// openBrainStoreConfig adds what the server has no room for.
type openBrainStoreConfig struct {
	Server openbrain.Config `koanf:",squash"`
	Views  string           `koanf:"views" file:"" doc:"file for what sessions' windows are made of; without one that is found anew from the messages after a restart, which knows nothing of resets and forks"`
}

func openBrainStoreDefaults() openBrainStoreConfig {
	return openBrainStoreConfig{Server: openbrain.DefaultConfig()}
}

func openBrainStore(ctx context.Context, cfg openBrainStoreConfig, env registry.Env) (core.Store, error) {
	store, err := openbrain.Open(ctx, cfg.Server.WithEnv(env.Getenv), openbrain.WithLogger(env.Logger), openbrain.WithClock(env.Host.Now))
	if err != nil || cfg.Views == "" {
		return store, err
	}
	file := sqlite.DefaultConfig()
	file.Path = cfg.Views
	views, err := sqlite.Open(ctx, file, sqlite.WithLogger(env.Logger))
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &homed{Store: store, ViewStore: views, file: views}, nil
}

// homed is a store without room for views beside a file that has some.
type homed struct {
	core.Store
	core.ViewStore
	file core.Store
}

// Unwrap implements core.Unwrapper.
func (h *homed) Unwrap() core.Store { return h.Store }

// Close closes both.
func (h *homed) Close() error { return errors.Join(h.Store.Close(), h.file.Close()) }
