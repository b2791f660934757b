package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) reembedCmd() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "reembed",
		Short: "Make vectors anew after the embedder changed",
		Long: `reembed embeds every message that has no vector of the configured model, and then removes the vectors of other models, which are not
used. It asks the embedder, which may cost; what was embedded when it is interrupted stays, and running it again goes on from there.

` + exitHelp,
		Example: "  contextengine reembed --agent main",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return failed(a.keeping(ctx, f, func(k *keeper) error {
				bar := newProgress(a.Stderr, "messages")
				defer bar.done()
				n := 0
				err := k.instance.Reembed(ctx, f.agent, func(done, total int) {
					n = done
					bar.set(done, total)
				})
				bar.done()
				if err == nil {
					fmt.Fprintf(a.Stdout, "embedded %s of agent %q\n", count(n, "message"), f.agent)
				}
				return err
			}))
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.agent, "agent", "main", "agent whose messages are embedded")
	return cmd
}
