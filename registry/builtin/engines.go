package builtin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/registry"
)

// composedParts and openBrainParts are what the engines are made of where the configuration does not say.
func composedParts() registry.Parts {
	return registry.Parts{Store: "sqlite", Retriever: "hybrid", Compactor: "archive", Searchers: []string{"lexical"}}
}

func openBrainParts() registry.Parts {
	return registry.Parts{Store: outboxName, Retriever: "hybrid", Compactor: "archive", Searchers: []string{"lexical"}}
}

// pluginKeys are the keys that concern the OpenClaw plugin alone: how it finds this program, how long it waits for it, and what it tells the host.
func pluginKeys() []string {
	return []string{
		"configFile", "socket", "command", "args", "allowLaunch", "passEnv", "ownsCompaction", "codexProjection", "tools",
		"connectTimeoutMs", "assembleTimeoutMs", "commitTimeoutMs", "compactTimeoutMs", "maintainTimeoutMs", "callTimeoutMs", "unresponsiveTimeoutMs",
	}
}

// openBrainName is the name of both the engine and the store, outboxName that of the store that the engine has in front of it.
const openBrainName, outboxName = "openbrain", "outbox"

func composed(ctx context.Context, _ noConfig, env registry.Env) (core.ContextEngine, error) {
	return env.Compose(ctx)
}

func legacy(_ context.Context, _ noConfig, env registry.Env) (core.ContextEngine, error) {
	return engine.NewLegacy(env.Host), nil
}

// openBrainConfig is what the plugin's configuration holds. The server's keys may also stand under "store".
type openBrainConfig struct {
	Server              openbrain.Config `koanf:",squash"`
	RecentMessages      *int             `koanf:"recentMessages" doc:"newest messages that compaction never touches; the key of the same name beside the engine (20) when not set"`
	SemanticSearchLimit int              `koanf:"semanticSearchLimit" doc:"largest number of messages to recall, instead of recall.candidates"`
	// SubagentRecentMessages is the plugin's name of subagents.recentMessages.
	SubagentRecentMessages *int `koanf:"subagentRecentMessages" doc:"newest messages of a subagent's session that compaction never touches; subagents.recentMessages (8) when not set"`
	// AcrossSessions is recall.acrossSessions with another default: the product document's search is not bound to a session.
	AcrossSessions bool `koanf:"acrossSessions" doc:"recall goes across the agent's sessions, instead of recall.acrossSessions"`
	// RemoteWait bounds what a turn waits for the server.
	RemoteWait time.Duration `koanf:"remoteWait" doc:"how long a turn waits for the server's search once the local one has answered, 1ms to 1m; what comes later counts in the turn's next call"`
}

func openBrainDefaults() openBrainConfig {
	server := openbrain.DefaultConfig()
	server.Keep = "" // depends on what stands in front
	return openBrainConfig{
		Server: server, SemanticSearchLimit: 10, AcrossSessions: true, RemoteWait: outbox.DefaultConfig().RemoteWait,
	}
}

// openBrain composes an engine around the server. Without address or key there is an engine nevertheless: it says so
// at bootstrap, where the host shows it.
func openBrain(ctx context.Context, cfg openBrainConfig, env registry.Env) (core.ContextEngine, error) {
	store, err := inFront(cfg, env)
	if err != nil {
		return nil, err
	}
	if cfg.SemanticSearchLimit < 1 {
		return nil, fmt.Errorf("semanticSearchLimit: must be 1 to 10000: %w", core.ErrInvalid)
	}
	e, err := env.Compose(ctx, func(c *registry.Config) {
		c.Store = store
		c.Core.Recall.Candidates = cfg.SemanticSearchLimit
		c.Core.Recall.AcrossSessions = cfg.AcrossSessions
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
	return e, nil
}

// inFront returns the store: one on this machine in front of the server, unless the server was chosen to stand alone.
func inFront(cfg openBrainConfig, env registry.Env) (registry.Choice, error) {
	chosen := env.Config.Store
	if chosen.Type == openBrainName {
		return registry.Choice{Type: openBrainName, Options: withServer(chosen.Options, cfg.Server)}, nil
	}
	remote, err := choiceIn(chosen.Options["remote"])
	if chosen.Type != outboxName || err != nil || remote.Type != openBrainName {
		return registry.Choice{}, fmt.Errorf("store %q: this engine keeps everything on its server, or in an outbox in front of it: leave out store, or choose the engine composed: %w",
			chosen.Type, core.ErrInvalid)
	}
	remote.Options = withServer(remote.Options, cfg.Server)
	if _, ok := remote.Options["keep"]; !ok && chosen.Options["hydrate"] != true {
		remote.Options["keep"] = openbrain.KeepText // the bytes stay here
	}
	options := maps.Clone(chosen.Options)
	there := map[string]any{"type": remote.Type}
	maps.Copy(there, remote.Options)
	options["remote"] = there
	defaults := registry.ChoiceOf(outboxName, outboxDefaults()).Options
	if reflect.DeepEqual(options["remoteWait"], defaults["remoteWait"]) {
		options["remoteWait"] = cfg.RemoteWait.String()
	}
	if reflect.DeepEqual(options["batchEntries"], defaults["batchEntries"]) {
		options["batchEntries"] = newestShown // what a call that was cut off may have sent is found among the newest thoughts
	}
	return registry.Choice{Type: outboxName, Options: options}, nil
}

// newestShown is how many of the newest thoughts any server shows.
const newestShown = 16

// choiceIn reads a part chosen within options: a name, or an object with the key type.
func choiceIn(v any) (registry.Choice, error) {
	switch v := v.(type) {
	case registry.Choice:
		return v, nil
	case string:
		return registry.Choice{Type: v}, nil
	case map[string]any:
		name, _ := v["type"].(string)
		options := maps.Clone(v)
		delete(options, "type")
		return registry.Choice{Type: name, Options: options}, nil
	}
	return registry.Choice{}, fmt.Errorf("remote: want a name or an object: %w", core.ErrInvalid)
}

// withServer lays what the engine's own keys say over options of the store.
func withServer(options map[string]any, server openbrain.Config) map[string]any {
	out, defaults := maps.Clone(options), registry.ChoiceOf(openBrainName, openBrainDefaults().Server).Options
	if out == nil {
		out = make(map[string]any)
	}
	for k, v := range registry.ChoiceOf(openBrainName, server).Options {
		if !reflect.DeepEqual(v, defaults[k]) {
			out[k] = v
		}
	}
	return out
}
