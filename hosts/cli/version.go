package cli

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// What the linker writes into a release, see deploy/release. Empty in any other build.
var releaseVersion, releaseCommit, releaseDate string

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and date",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := fmt.Fprintln(a.Stdout, "contextengine "+cmd.Root().Version); err != nil {
				return failed(err)
			}
			return failed(origin(a.Stdout))
		},
	}
}

// version is that of the release or, built otherwise, of the main module as the go command recorded it.
func version() string {
	if releaseVersion != "" {
		return releaseVersion
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// origin writes what a program was built from, as far as it is known.
func origin(w io.Writer) error {
	commit, date := releaseCommit, releaseDate
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value
			case "vcs.time":
				date = s.Value
			}
		}
	}
	for _, line := range [][2]string{{"commit", commit}, {"date", date}} {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, line[0], line[1]); err != nil {
			return err
		}
	}
	return nil
}
