package cli

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment/dataset/published"
	"github.com/contextengine/contextengine/internal/homepath"
	"github.com/contextengine/contextengine/registry"
)

// completing gives the flags of a command, and of those below it, what a shell can complete: names of parts, configuration files, agents and sessions.
func (a *app) completing(cmd *cobra.Command) {
	parts := func(kind registry.Kind) func() []string {
		return func() []string { return a.reg.Names(kind) }
	}
	names := map[string]func() []string{
		"store": parts(registry.KindStore), "retriever": parts(registry.KindRetriever), "compactor": parts(registry.KindCompactor),
		"color": func() []string { return colourModes }, "format": message.Formats, "from": formatNames, "combinations": func() []string { return []string{"all"} }, "log-level": func() []string { return []string{"debug", "info", "warn", "error"} },
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		var complete cobra.CompletionFunc
		switch f.Name {
		case "config":
			complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return []string{"yaml", "yml", "toml", "json", "json5"}, cobra.ShellCompDirectiveFilterFileExt
			}
		case "agent", "session":
			complete = func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
				return a.remembered(cmd, f.Name == "session", begun), cobra.ShellCompDirectiveNoFileComp
			}
		default:
			list, ok := names[f.Name]
			if !ok {
				return
			}
			complete = func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
				return completions(list(), begun, f.Value.Type() == "stringSlice"), cobra.ShellCompDirectiveNoFileComp
			}
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails only for a flag that is not there, or that has one
	})
	if parent := cmd.Parent(); parent != nil && parent.Name() == "dataset" && len(operandsOf(cmd)) > 0 {
		cmd.ValidArgsFunction = func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			sets, _ := published.Sets() // what cannot be read is not completed
			return completions(lo.Map(sets, func(s published.Set, _ int) string { return s.Name }), begun, false), cobra.ShellCompDirectiveNoFileComp
		}
	}
	for _, c := range cmd.Commands() {
		a.completing(c)
	}
}

// completions are the names that begin with what was typed; of a list, with what stands behind the last comma.
func completions(names []string, begun string, list bool) []string {
	head := ""
	if at := strings.LastIndexByte(begun, ','); list && at >= 0 {
		head, begun = begun[:at+1], begun[at+1:]
	}
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, begun) {
			out = append(out, head+name)
		}
	}
	return out
}

// completionTime bounds how long a person waits for names.
const completionTime = 2 * time.Second

// remembered are the agents, or the sessions of the agent that was typed, in a store that is there. Nothing is made by looking.
func (a *app) remembered(cmd *cobra.Command, sessions bool, begun string) []string {
	text := func(flag string) string {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Value.Type() == "string" {
			return f.Value.String()
		}
		return ""
	}
	f := storeFlags{config: text("config"), store: text("store"), agent: text("agent")}
	if sessions && f.agent == "" {
		return nil
	}
	cfg, err := a.load(f.config, nil)
	if err != nil {
		return nil
	}
	var out []string
	if !sessions {
		out = slices.Sorted(maps.Keys(cfg.Agents))
	}
	if path := a.storeFile(cfg); path != "" {
		if _, err := os.Stat(path); err != nil {
			return completions(out, begun, false)
		}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	_ = a.keeping(ctx, f, func(k *keeper) error { // it says nothing: what cannot be read is not completed
		views, err := k.views(ctx, f.agent)
		for _, v := range views {
			name := v.Session.Agent
			if sessions {
				name = v.Session.Session
			}
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
		return err
	})
	return completions(out, begun, false)
}

// storeFile is the file of the configured store, if it is one in a file.
func (a *app) storeFile(cfg registry.Config) string {
	if cfg.Store.Type != fileStore {
		return ""
	}
	if path, _ := cfg.Store.Options[pathKey].(string); path != "" {
		path, _ = homepath.Expand(path) // one without a home is told when the store is opened
		return path
	}
	return a.stateFile("store.db")
}
