package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/internal/pathflag"
)

// writtenHere says for which version a configuration is written, for "upgrade": in a release, and in a format that has comments.
func writtenHere(format string, text []byte) []byte {
	mark := map[string]string{"yaml": "#", "yml": "#", "toml": "#", "json5": "//"}[format]
	if releaseVersion == "" || mark == "" {
		return text
	}
	return append([]byte(mark+" Written for contextengine "+releaseVersion+"\n"), text...)
}

func (a *app) initCmd() *cobra.Command {
	var output string
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a configuration file with every key",
		Long: `init writes a file in the format that its name ends in: .yaml, .toml, .json5, or .json, which has no comments. What it says holds without
it, too: keep what you change.

` + exitHelp,
		Example: "  contextengine init\n  contextengine init -o contextengine.toml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			format := "yaml"
			if output != stdoutName {
				format = strings.TrimPrefix(strings.ToLower(filepath.Ext(output)), ".")
			}
			text, err := a.reg.Template(format)
			if err != nil {
				return failed(fmt.Errorf("--output: %s: %w", output, err))
			}
			text = writtenHere(format, text)
			out := outFile{flag: "--output", name: output, force: force, stream: true}
			err = out.write(a.Stdout, func(w io.Writer) error {
				_, err := w.Write(text)
				return err
			})
			if err == nil && output != stdoutName {
				fmt.Fprintf(a.Stdout, "wrote %s; use it with --config, or name it in CONTEXTENGINE_CONFIG\n", output)
			}
			return failed(err)
		},
	}
	pathflag.VarP(cmd.Flags(), &output, "output", "o", "contextengine.yaml", `file to write: .yaml, .toml, .json5 or .json; "-" is standard output, in YAML`)
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the file if it exists")
	return cmd
}
