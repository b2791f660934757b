package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/hosts/imports"
	"github.com/contextengine/contextengine/internal/pathflag"
	"github.com/contextengine/contextengine/internal/waiting"
)

type exportFlags struct {
	storeFlags
	output  string
	force   bool
	session string
}

func (a *app) exportCmd() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write everything the store holds as JSON lines",
		Long: `export writes entries and views, one a line, without loss: "import" makes the same store of it, in a store of any kind. Indexes
and vectors are not part of it; they are made anew. With --agent, and --session, it is only theirs.

A name that ends with ".gz" is compressed.

` + exitHelp,
		Example: `  contextengine export -o store.jsonl.gz
  contextengine export --agent main --session agent:main:work | wc -l`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failed(a.export(cmd.Context(), f))
		},
	}
	f.register(cmd)
	pathflag.VarP(cmd.Flags(), &f.output, "output", "o", "-", `file to write; "-" is standard output`)
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite the file if it exists")
	cmd.Flags().StringVar(&f.agent, "agent", "", "only what this agent has, in the store of its configuration")
	cmd.Flags().StringVar(&f.session, "session", "", "only this session of the agent")
	return cmd
}

func (a *app) export(ctx context.Context, f exportFlags) error {
	if f.session != "" && f.agent == "" {
		return fmt.Errorf("--session: name the agent it belongs to with --agent: %w", core.ErrInvalid)
	}
	out := outFile{flag: "--output", name: f.output, force: f.force, stream: true}
	if err := out.check(); err != nil {
		return err
	}
	return a.reading(ctx, f.storeFlags, func(k *keeper) error {
		report := a.Stderr
		if out.streams() && waiting.Terminal(a.Stdout) {
			report = io.Discard // what is exported comes there
		}
		bar := newProgress(report, "messages")
		defer bar.done()
		total := -1
		if s, ok := core.As[upkeep.Statter](k.store); ok && f.agent == "" {
			if st, err := s.Stats(ctx); err == nil && st.Entries > 0 {
				total = st.Entries
			}
		}
		var done upkeep.Transfer
		err := a.save(out, func(w io.Writer) error {
			var err error
			done, err = imports.Export(ctx, k.store, w, core.Scope{Agent: f.agent, Session: f.session},
				func(t upkeep.Transfer) { bar.set(int(t.Entries), total) })
			return err
		})
		if err != nil {
			return err
		}
		bar.done()
		fmt.Fprintf(a.Stderr, "exported %s and %s\n", plural(done.Entries, "entry", "entries"), plural(done.Views, "view", "views"))
		return nil
	})
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n) + " " + many
}
