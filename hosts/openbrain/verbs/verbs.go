// Package verbs is the command line of an OpenBrain server: serve, key new, key list, key revoke, backup, and health.
//
//	root.AddCommand(verbs.New(verbs.Parts{OpenStore: open, Stores: names}))
//
// Every flag of serve can be set by an environment variable too: EnvPrefix and the flag's name in capitals, "-" as "_". A flag that is
// given goes before its variable. Keys of the embedder are read from the environment alone, so that no list of processes shows them.
package verbs

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
)

// EnvPrefix begins the names of environment variables.
const EnvPrefix = "OPENBRAIN_SERVE_"

// EnvEmbedKey is the environment variable with the embedder's key.
const EnvEmbedKey = EnvPrefix + "EMBED_API_KEY"

// Parts is what the commands need from the program around them.
type Parts struct {
	// OpenStore opens a store by its name. path is empty where nobody chose, and means nothing to a store without a file. The command closes
	// the store.
	OpenStore func(ctx context.Context, name, path string, log *slog.Logger) (core.Store, error)
	// Path is the file of a store where nobody chose; empty leaves it to the store. Nil leaves it to all of them.
	Path func(store string) string
	// Stores are the names that OpenStore knows, for the help.
	Stores []string
	// Store is the default name; empty is "sqlite".
	Store string
	// Getenv reads the environment; os.Getenv when nil.
	Getenv func(name string) string
	// Failed marks the error of something that was done, as opposed to one in the command line; nil leaves errors as they are.
	Failed func(error) error
}

// New returns the command "openbrain".
func New(p Parts) *cobra.Command {
	if p.Getenv == nil {
		p.Getenv = os.Getenv
	}
	if p.Failed == nil {
		p.Failed = func(err error) error { return err }
	}
	if p.Store == "" {
		p.Store = "sqlite"
	}
	cmd := &cobra.Command{
		Use:   "openbrain",
		Short: "Run an OpenBrain server over any store, and manage its keys",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.serveCmd(), p.keyCmd(), p.backupCmd(), p.healthCmd())
	return cmd
}

// path is the file of a store, chosen or not.
func (p Parts) path(store, path string) string {
	if path == "" && p.Path != nil {
		return p.Path(store)
	}
	return path
}

// open opens a store that was named on the command line.
func (p Parts) open(ctx context.Context, name, path string, log *slog.Logger) (core.Store, error) {
	if p.OpenStore == nil {
		return nil, fmt.Errorf("this program has no stores: %w", core.ErrInvalid)
	}
	if len(p.Stores) > 0 && !slices.Contains(p.Stores, name) {
		return nil, fmt.Errorf("--store: %q is not known (known: %s): %w", name, strings.Join(p.Stores, ", "), core.ErrInvalid)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return p.OpenStore(ctx, name, p.path(name, path), log)
}
