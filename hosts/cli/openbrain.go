package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain/verbs"
	"github.com/contextengine/contextengine/registry"
)

// openBrainCmd runs the server that the store and the engine of the same name talk to.
func (a *app) openBrainCmd() *cobra.Command {
	return verbs.New(verbs.Parts{
		Stores: a.reg.Names(registry.KindStore), Getenv: a.getenv, Failed: failed, Path: a.serverFile,
		OpenStore: func(ctx context.Context, name, path string, log *slog.Logger) (core.Store, error) {
			c := registry.Choice{Type: name}
			if path != "" {
				c.Options = map[string]any{"path": path}
			}
			return a.reg.OpenStore(ctx, c, registry.BuildOptions{Getenv: a.getenv, Logger: log})
		},
	})
}

// serverFile is the file of a server whose store nobody chose: one of its own, so that thoughts of others do not stand among what this program remembers.
func (a *app) serverFile(store string) string {
	if store != fileStore {
		return ""
	}
	return a.stateFile("openbrain.db")
}

// stateFile is a file in the place where this program keeps what lasts, as the built-in store in a file has it.
func (a *app) stateFile(name string) string {
	base := a.getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "" // the store says what is missing
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "contextengine", name)
}
