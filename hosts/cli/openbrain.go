package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain/verbs"
	"github.com/contextengine/contextengine/registry"
)

// openBrainCmd runs the server that the store and the engine of the same name talk to.
func (a *app) openBrainCmd() *cobra.Command {
	return verbs.New(verbs.Parts{
		Stores: a.reg.Names(registry.KindStore), Getenv: a.getenv, Failed: failed,
		OpenStore: func(ctx context.Context, name, path string, log *slog.Logger) (core.Store, error) {
			c := registry.Choice{Type: name}
			if path != "" {
				c.Options = map[string]any{"path": path}
			}
			return a.reg.OpenStore(ctx, c, registry.BuildOptions{Getenv: a.getenv, Logger: log})
		},
	})
}
