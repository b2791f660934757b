package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/pathflag"
	"github.com/contextengine/contextengine/internal/waiting"
)

// backupper is a store that copies itself while it is used.
type backupper interface {
	Backup(ctx context.Context, path string) error
}

func (p Parts) backupCmd() *cobra.Command {
	var store, path, to string
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Copy the store to a file, as of one moment, also while a server uses it",
		Args:  cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnv(cmd, p.Getenv, "store", "path")
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.backup(cmd.Context(), cmd.ErrOrStderr(), store, path, to); err != nil {
				return p.Failed(err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", to)
			return p.Failed(err)
		},
	}
	cmd.Flags().StringVar(&store, "store", p.Store, "store to copy")
	pathflag.Var(cmd.Flags(), &path, "path", "", "file of the store, as for serve")
	pathflag.Var(cmd.Flags(), &to, "to", "", "file to write; it must not exist")
	_ = cmd.MarkFlagRequired("to") // it exists
	return cmd
}

func (p Parts) backup(ctx context.Context, report io.Writer, store, path, to string) error {
	// Opening a store makes it: a name that was mistyped would be copied as an empty one.
	if file := p.path(store, path); file != "" && store == p.Store {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("backup: there is no store %s: name it with --path", file)
		}
	}
	s, err := p.open(ctx, store, path, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err := s.Close(); err != nil { // it was read to the end: it only could not tidy up
			_, _ = fmt.Fprintln(report, "warning: "+err.Error())
		}
	}()
	b, ok := core.As[backupper](s)
	if !ok {
		return fmt.Errorf("backup: store %q has its own tools for that: %w", store, errors.ErrUnsupported)
	}
	defer waiting.Say(report, "copying the store")()
	return b.Backup(ctx, to)
}
