package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/dataset/published"
	"github.com/contextengine/contextengine/internal/columns"
	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/internal/pathflag"
)

// datasetFlags are the flags of dataset's commands.
type datasetFlags struct {
	dir, from        string
	all, force, json bool
}

func (a *app) datasetCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dataset",
		Short: "Get the public conversations that figures are measured on",
		Long: `The public sets belong to their publishers and come with no program. "fetch" gets them from there, or from a mirror, at pinned revisions,
and checks every file. The data folder is what ` + datadir.Variable + ` says; else, in a checkout of the project, shared/data beside it if that is there, or
.tools/data in it.

` + exitHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.datasetListCmd(), a.datasetFetchCmd(), a.datasetVerifyCmd())
	return cmd
}

func (a *app) datasetListCmd() *cobra.Command {
	var f datasetFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Show the sets: size, licence, publisher, and whether they are in the data folder",
		Long:    "list shows the public sets there are, and compares the data folder with them.\n\n" + exitHelp,
		Example: "  contextengine dataset list",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return failed(a.datasetList(f)) },
	}
	pathflag.Var(cmd.Flags(), &f.dir, "in", "", "the data folder, if it is another")
	a.wideFlag(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON, with addresses and checksums")
	return cmd
}

func (a *app) datasetFetchCmd() *cobra.Command {
	var f datasetFlags
	cmd := &cobra.Command{
		Use:   "fetch NAME...",
		Short: "Get sets from their publishers or from a mirror, and check them",
		Long: `fetch shows the licence of each set, gets its files, checks them, and puts them into the data folder with a note of where they come from.
Files that are there and right are left alone, so a fetch that was interrupted goes on where it was. Files that are there and differ are an
error; --force replaces them.

A mirror is a folder or an address with files named as in the data folder, or as the publisher names them (a clone of the publisher's
repository); of a set with one file, it may be that file.

` + exitHelp,
		Example: `  contextengine dataset fetch locomo
  contextengine dataset fetch --all --from /mnt/mirror --to data`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return failed(a.datasetFetch(cmd.Context(), f, names))
		},
	}
	pathflag.Var(cmd.Flags(), &f.dir, "to", "", "the data folder, if it is another; it is made if needed")
	pathflag.Var(cmd.Flags(), &f.from, "from", "", "a mirror: a folder, a file, or an http address (default the publisher)")
	cmd.Flags().BoolVar(&f.all, "all", false, "fetch every set")
	cmd.Flags().BoolVar(&f.force, "force", false, "fetch files again that are there, and replace those that differ")
	return cmd
}

func (a *app) datasetVerifyCmd() *cobra.Command {
	var f datasetFlags
	cmd := &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Check the files of the data folder",
		Long: `verify compares files with the table of what was published. Of sets that are named, every file must be there; without names, sets of which
nothing is there are passed over.

` + exitHelp,
		Example: "  contextengine dataset verify",
		RunE:    func(_ *cobra.Command, names []string) error { return failed(a.datasetVerify(f, names)) },
	}
	pathflag.Var(cmd.Flags(), &f.dir, "in", "", "the data folder, if it is another")
	return cmd
}

// dataDir returns the folder that a flag names, or the one that tests and measurements read.
func (a *app) dataDir(flag, value string) (string, error) {
	if value == "" {
		value = datadir.Dir(a.getenv)
	}
	if value == "" {
		return "", fmt.Errorf("%s: this is no checkout of the project: name the data folder, or set %s: %w", flag, datadir.Variable, core.ErrInvalid)
	}
	return value, nil
}

// shownDir is dataDir for what only reads: a folder that the flag names has to be there.
func (a *app) shownDir(dir string) (string, error) {
	if info, err := os.Stat(dir); dir != "" && (err != nil || !info.IsDir()) {
		return "", fmt.Errorf("--in: there is no folder %s: %w", dir, core.ErrInvalid)
	}
	return a.dataDir("--in", dir)
}

// namedSets returns the sets of some names, in the order of the table.
func namedSets(names []string) ([]published.Set, error) {
	sets, err := published.Sets()
	if err != nil {
		return nil, err
	}
	known := lo.Map(sets, func(s published.Set, _ int) string { return s.Name })
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, unknownName("set", name, known)
		}
	}
	return lo.Filter(sets, func(s published.Set, _ int) bool { return slices.Contains(names, s.Name) }), nil
}

func (a *app) datasetList(f datasetFlags) error {
	sets, err := published.Sets()
	if err != nil {
		return err
	}
	type row struct {
		published.Set
		State published.State `json:"state"`
	}
	dir, noDir := a.shownDir(f.dir)
	if noDir != nil && f.dir != "" {
		return noDir
	}
	var rows []row
	for _, s := range sets {
		if noDir != nil {
			rows = append(rows, row{s, published.Absent})
			continue
		}
		list, err := a.checked(dir, s)
		if err != nil {
			return err
		}
		rows = append(rows, row{s, published.StateOf(list, s)})
	}
	if f.json {
		return writeJSON(a.Stdout, map[string]any{"folder": dir, "sets": rows})
	}
	table := columns.Table{Columns: []columns.Column{{Name: "name", Left: true}, {Name: "size"}, {Name: "licence", Left: true}, {Name: "in the folder", Left: true}, {Name: "publisher", Left: true, Wide: true}}}
	for _, r := range rows {
		licence := r.Licence.Name
		if r.Licence.NonCommercial {
			licence += " (not for commercial use)"
		}
		table.Add(r.Name, size(r.Size()), licence, string(r.State), r.Publisher)
	}
	out := bufio.NewWriter(a.Stdout)
	table.Print(out, a.fit())
	fmt.Fprintln(out)
	for _, r := range rows {
		fmt.Fprintln(out, columns.Hang(r.Name+": "+r.What, 2, a.fit()))
	}
	if noDir != nil {
		dir = "none; " + datadir.Variable + " or --in names it"
	}
	fmt.Fprintf(out, "\nthe data folder: %s\n", dir)
	return out.Flush()
}

func (a *app) datasetFetch(ctx context.Context, f datasetFlags, names []string) error {
	all, err := published.Sets()
	if err != nil {
		return err
	}
	known := lo.Map(all, func(s published.Set, _ int) string { return s.Name })
	switch {
	case f.all && len(names) > 0:
		return fmt.Errorf("--all: takes no names: %w", core.ErrInvalid)
	case f.all:
		names = known
	case len(names) == 0:
		return fmt.Errorf("name a set (%s), or give --all: %w", strings.Join(known, ", "), core.ErrInvalid)
	}
	sets, err := namedSets(names)
	if err != nil {
		return err
	}
	dir, err := a.dataDir("--to", f.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range sets {
		fmt.Fprintf(a.Stdout, "%s: %s\n  licence: %s\n", s.Name, s.What, s.Licence)
		bar := newProgress(a.Stderr, "bytes of "+s.Name)
		done, err := published.Fetch(ctx, dir, s, published.Options{
			From: f.from, Force: f.force, Progress: func(done, total int64) { bar.set(int(done), int(total)) },
		})
		bar.done()
		for _, o := range done {
			word := "was there"
			if o.Written {
				word = "written"
			}
			fmt.Fprintf(a.Stdout, "  %s: %s, %s\n", o.Path, size(o.Bytes), word)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && f.from == "" {
			err = fmt.Errorf("%w; --from takes a mirror", err)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	fmt.Fprintf(a.Stdout, "the data folder: %s\n", dir)
	return errors.Join(errs...)
}

func (a *app) datasetVerify(f datasetFlags, names []string) error {
	sets, err := namedSets(names)
	if len(names) == 0 && err == nil {
		sets, err = published.Sets()
	}
	if err != nil {
		return err
	}
	dir, err := a.shownDir(f.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range sets {
		list, err := a.checked(dir, s)
		if err != nil {
			return err
		}
		state := published.StateOf(list, s)
		fmt.Fprintf(a.Stdout, "%s: %s\n", s.Name, state)
		if state == published.Absent && len(names) == 0 {
			continue
		}
		for i, file := range list {
			switch {
			case file.State == published.Different:
				errs = append(errs, fmt.Errorf("%s: %w", file.Path, file.Err))
			case file.State == published.Absent && i < len(s.Files):
				errs = append(errs, fmt.Errorf("%s: is absent from %s; \"contextengine dataset fetch %s\" gets it", file.Path, dir, s.Name))
			}
		}
	}
	return errors.Join(errs...)
}

// checked is what there is of a set.
func (a *app) checked(dir string, s published.Set) (list []published.Status, err error) {
	err = a.saying("checking "+s.Name, func() error {
		list, err = published.Verify(dir, s)
		return err
	})
	return list, err
}
