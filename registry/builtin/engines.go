package builtin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/registry"
)

// composedParts and openBrainParts are what the engines are made of where the configuration does not say.
func composedParts() registry.Parts {
	return registry.Parts{Store: "sqlite", Retriever: "hybrid", Compactor: "archive", Searchers: []string{"lexical"}}
}

func openBrainParts() registry.Parts {
	return registry.Parts{Store: openBrainName, Retriever: "hybrid", Compactor: "archive"}
}

// pluginKeys are the keys with which the OpenClaw plugin finds this program, and how long it waits for it.
func pluginKeys() []string {
	return []string{
		"configFile", "socket", "command", "args", "allowLaunch", "passEnv", "ownsCompaction", "tools",
		"connectTimeoutMs", "assembleTimeoutMs", "commitTimeoutMs", "compactTimeoutMs", "maintainTimeoutMs", "callTimeoutMs", "unresponsiveTimeoutMs",
	}
}

// openBrainName is the name of both the engine and the store.
const openBrainName = "openbrain"

func composed(ctx context.Context, _ noConfig, env registry.Env) (core.ContextEngine, error) {
	return env.Compose(ctx)
}

func legacy(_ context.Context, _ noConfig, env registry.Env) (core.ContextEngine, error) {
	return core.NewLegacy(env.Host), nil
}

// openBrainConfig is what the plugin's configuration holds. The server's keys may also stand under "store".
type openBrainConfig struct {
	Server              openbrain.Config `koanf:",squash"`
	RecentMessages      *int             `koanf:"recentMessages" doc:"newest messages that compaction never touches; the key of the same name beside the engine (20) when not set"`
	SemanticSearchLimit int              `koanf:"semanticSearchLimit" doc:"largest number of messages to recall, instead of recall.candidates"`
	// SubagentRecentMessages is the plugin's name of subagents.recentMessages.
	SubagentRecentMessages *int `koanf:"subagentRecentMessages" doc:"newest messages of a subagent's session that compaction never touches; subagents.recentMessages (8) when not set"`
}

func openBrainDefaults() openBrainConfig {
	return openBrainConfig{Server: openbrain.DefaultConfig(), SemanticSearchLimit: 10}
}

// openBrain composes an engine around the server. Without address or key there is an engine nevertheless: it says so
// at bootstrap, where the host shows it.
func openBrain(ctx context.Context, cfg openBrainConfig, env registry.Env) (core.ContextEngine, error) {
	if t := env.Config.Store.Type; t != openBrainName {
		return nil, fmt.Errorf("store %q: this engine keeps everything on its server: leave out store, or choose the engine composed: %w", t, core.ErrInvalid)
	}
	if cfg.SemanticSearchLimit < 1 {
		return nil, fmt.Errorf("semanticSearchLimit: must be 1 to 10000: %w", core.ErrInvalid)
	}
	store := serverOptions(cfg.Server, env)
	engine, err := env.Compose(ctx, func(c *registry.Config) {
		c.Store = store
		c.Core.Recall.Candidates = cfg.SemanticSearchLimit
		if cfg.RecentMessages != nil {
			c.Core.RecentMessages = *cfg.RecentMessages
		}
		if cfg.SubagentRecentMessages != nil {
			c.Core.Subagents.RecentMessages = *cfg.SubagentRecentMessages
		}
	})
	if missing, ok := errors.AsType[*openbrain.ConfigError](err); ok {
		env.Logger.WarnContext(ctx, "the engine cannot be used as it is configured", "engine", openBrainName, "err", missing)
		return unconfigured{id: openBrainName, err: missing}, nil
	}
	if err != nil {
		return nil, err
	}
	return engine, nil
}

// serverOptions lays what the engine's own keys say over what stands under "store".
func serverOptions(server openbrain.Config, env registry.Env) registry.Choice {
	defaults := registry.ChoiceOf(openBrainName, openbrain.DefaultConfig()).Options
	store := registry.Choice{Type: openBrainName, Options: maps.Clone(env.Config.Store.Options)}
	if store.Options == nil {
		store.Options = make(map[string]any)
	}
	for k, v := range registry.ChoiceOf(openBrainName, server).Options {
		if !reflect.DeepEqual(v, defaults[k]) {
			store.Options[k] = v
		}
	}
	return store
}
