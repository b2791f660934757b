package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/retain"
	"github.com/contextengine/contextengine/internal/pathflag"
)

type retainFlags struct {
	storeFlags
	age, bytes, archive string
	entries             int64
	perAgent            bool
	dryRun, json        bool
}

func (a *app) retainCmd() *cobra.Command {
	var f retainFlags
	cmd := &cobra.Command{
		Use:   "retain",
		Short: "Remove the oldest messages beyond an age, a number or a size",
		Long: `retain removes messages, oldest first, until every session keeps the bounds. What a session's window shows, or has yet to
compact, stays. Nothing is ever removed unless somebody runs this.

--archive writes what is removed to a file before it is: a compressed export, which "import" reads. The file may exist; then it grows.
"vacuum" afterwards makes the store's file smaller. To erase for good what somebody wants forgotten, use "forget".

` + exitHelp,
		Example: `  contextengine retain --max-age 365d --archive old.jsonl.gz
  contextengine retain --max-entries 20000 --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failed(a.retain(cmd.Context(), f))
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.age, "max-age", "", "remove messages that are older, such as 90d, 2w or 12h")
	cmd.Flags().Int64Var(&f.entries, "max-entries", 0, "largest number of messages of a session")
	cmd.Flags().StringVar(&f.bytes, "max-bytes", "", "largest size of a session's stored messages, such as 20MB")
	cmd.Flags().BoolVar(&f.perAgent, "per-agent", false, "the bounds hold for all sessions of an agent together")
	pathflag.Var(cmd.Flags(), &f.archive, "archive", "", "file that gets what is removed, before it is")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// policy reads the bounds.
func (f *retainFlags) policy() (retain.Policy, error) {
	p := retain.Policy{MaxEntries: f.entries, PerAgent: f.perAgent}
	var err error
	if f.age != "" {
		if p.MaxAge, err = parseAge("--max-age", f.age); err != nil {
			return p, err
		}
	}
	if f.bytes != "" {
		if p.MaxBytes, err = parseSize("--max-bytes", f.bytes); err != nil {
			return p, err
		}
	}
	if f.entries < 0 {
		return p, fmt.Errorf("--max-entries: must not be negative: %w", core.ErrInvalid)
	}
	if p.MaxAge == 0 && p.MaxEntries == 0 && p.MaxBytes == 0 {
		return p, fmt.Errorf("name a bound with --max-age, --max-entries or --max-bytes: %w", core.ErrInvalid)
	}
	return p, nil
}

func (a *app) retain(ctx context.Context, f retainFlags) error {
	p, err := f.policy()
	if err != nil {
		return err
	}
	using := a.keeping
	if f.dryRun {
		using = a.reading
	}
	return using(ctx, f.storeFlags, func(k *keeper) error {
		var report retain.Report
		err := a.saying("looking for what is beyond the bounds", func() (err error) {
			report, err = k.apply(ctx, f, p)
			return err
		})
		if f.json {
			return errors.Join(err, writeJSON(a.Stdout, report))
		}
		verb := "removed"
		if f.dryRun {
			verb = "would remove"
		}
		if err == nil || report.Deleted+report.Emptied > 0 {
			fmt.Fprintf(a.Stdout, "%s %s, of %d of them the place stays, %s of content\n", verb,
				count(int(report.Deleted+report.Emptied), "message"), report.Emptied, size(report.Bytes))
			if report.Kept > 0 {
				fmt.Fprintf(a.Stdout, "%s kept beyond the bounds: a window shows them, or has yet to compact them\n", count(int(report.Kept), "message"))
			}
		}
		return err
	})
}

func (k *keeper) apply(ctx context.Context, f retainFlags, p retain.Policy) (retain.Report, error) {
	if f.dryRun {
		w, ok := k.store.(foreteller)
		if !ok {
			return retain.Report{}, k.cannot("say beforehand what it would remove")
		}
		return w.WouldRetain(ctx, p)
	}
	// Not through decorators: an outbox would not learn of what its inner store removed.
	r, ok := k.store.(retainer)
	if !ok {
		return retain.Report{}, k.cannot("remove by age, number or size")
	}
	if f.archive == "" {
		return r.Retain(ctx, p)
	}
	file := &appendFile{flag: "--archive", name: f.archive}
	if err := file.check(); err != nil {
		return retain.Report{}, err
	}
	p.Archive = file
	report, err := r.Retain(ctx, p)
	return report, errors.Join(err, file.Close())
}
