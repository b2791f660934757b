package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/hosts/imports"
)

type importFlags struct {
	storeFlags
	from, session     string
	branches          bool
	dryRun, keepGoing bool
	json              bool
}

func (a *app) importCmd() *cobra.Command {
	var f importFlags
	formats := formatNames()
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Read history of other programs, or an export",
		Long: `import reads history and stores it with the configured engine: times, ids, tool calls and results, and the original bytes are kept.
What is stored already is not stored again, and what was erased stays erased; so an import that was interrupted is resumed by running
it again. What a file is shows from its content:

  openclaw       openclaw-agent.sqlite, the session store of an agent of OpenClaw; it may be in use
  transcript     sessions/*.jsonl of OpenClaw and pi, and chats as messages of OpenAI's or Anthropic's API, in JSON or JSON lines
  chatgpt        conversations.json of a data export of ChatGPT
  lossless-claw  lcm.db; its summaries are counted, and left out: they stand for messages that are all there
  export         what "export" and "retain --archive" write, of any store

Files may be compressed with gzip or Zstandard. "-" is standard input. Sessions of OpenClaw get the names that its plugin uses, so that the host goes
on where they ended.

` + exitHelp,
		Example: `  contextengine import ~/.openclaw/agents/main/agent/openclaw-agent.sqlite
  contextengine import conversations.json --agent main --dry-run
  contextengine import store.jsonl.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(a.imports(cmd.Context(), f, args))
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.from, "from", "", "what the files are: "+strings.Join(formats, ", ")+"; seen from the content when not set")
	cmd.Flags().StringVar(&f.agent, "agent", "", "agent that gets the messages (default: the one that the file names, or main)")
	cmd.Flags().StringVar(&f.session, "session", "", "session that gets the messages of a file with one session")
	cmd.Flags().BoolVar(&f.branches, "branches", false, "also import what the host does not show, as sessions of their own: answers that were made anew, messages that were edited")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be imported, and store nothing")
	cmd.Flags().BoolVar(&f.keepGoing, "keep-going", false, "pass over what is malformed; it is reported and changes nothing about the exit code")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the reports as JSON")
	return cmd
}

func formatNames() []string {
	return lo.Map(imports.Formats(), func(f imports.Format, _ int) string { return string(f) })
}

func (a *app) imports(ctx context.Context, f importFlags, files []string) error {
	if f.from != "" && !lo.Contains(formatNames(), f.from) {
		return unknownName("value of --from", f.from, formatNames())
	}
	using := a.keeping
	if f.dryRun {
		using = a.reading
	}
	return using(ctx, f.storeFlags, func(k *keeper) error {
		bar := newProgress(a.Stderr, "messages")
		defer bar.done()
		o := imports.Options{
			From: imports.Format(f.from), Agent: f.agent, Session: f.session, Branches: f.branches, DryRun: f.dryRun, KeepGoing: f.keepGoing,
			Progress: func(p imports.Progress) {
				if p.Total == 0 {
					p.Total = -1
				}
				bar.set(p.Messages, p.Total)
			},
		}
		reports := make([]imports.Report, 0, len(files))
		var errs []error
		for _, file := range files {
			report, err := a.importOne(ctx, k, file, o)
			bar.done()
			reports = append(reports, report)
			if err != nil {
				errs = append(errs, err)
			}
			if !f.json && (err == nil || report.Messages > 0) {
				a.printReport(report)
			}
			if err != nil && (ctx.Err() != nil || !f.keepGoing) {
				break
			}
		}
		if f.json {
			errs = append(errs, writeJSON(a.Stdout, map[string]any{"reports": reports}))
		}
		err := errors.Join(errs...)
		if errors.Is(err, imports.ErrMalformed) {
			return &exitError{code: ExitFailure, err: err} // the file is wrong, not what was asked for
		}
		return err
	})
}

func (a *app) importOne(ctx context.Context, k *keeper, file string, o imports.Options) (imports.Report, error) {
	var report imports.Report
	var err error
	if file != "-" {
		report, err = imports.File(ctx, file, k, o)
	} else {
		var data []byte
		if data, err = io.ReadAll(a.Stdin); err != nil {
			return imports.Report{File: file}, fmt.Errorf("standard input: %w", err)
		}
		report, err = imports.Data(ctx, file, data, k, o)
	}
	if err == nil && report.Messages == 0 && report.Format != imports.Lines {
		err = &exitError{code: ExitFailure, err: fmt.Errorf("%s: no messages", file)}
	}
	return report, err
}

func (a *app) printReport(r imports.Report) {
	verb := "imported"
	if r.DryRun {
		verb = "would import"
	}
	known := fmt.Sprintf("%d known already", r.Duplicates)
	if r.Erased > 0 {
		known += fmt.Sprintf(", %d erased before and not brought back", r.Erased)
	}
	fmt.Fprintf(a.Stdout, "%s (%s): %s, %s: %s %d, %s\n", r.File, r.Format, count(r.Sessions, "session"), count(r.Messages, "message"), verb, r.Imported, known)
	if !r.First.IsZero() {
		fmt.Fprintf(a.Stdout, "  from %s to %s\n", moment(r.First), moment(r.Last))
	}
	if r.Views > 0 {
		fmt.Fprintf(a.Stdout, "  %s, of which %d were left out because the session has one\n", count(r.Views, "view"), r.KeptViews)
	}
	if r.Untimed > 0 {
		fmt.Fprintf(a.Stdout, "  %s without a time: they have that of the import\n", count(r.Untimed, "message"))
	}
	for _, what := range r.LeftOut() {
		fmt.Fprintf(a.Stdout, "  left out: %d %s\n", r.Left[what], what)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(a.Stdout, "  note: "+note)
	}
	for i, s := range r.Skipped {
		if i == shown {
			fmt.Fprintf(a.Stderr, "warning: %d more; --json has them\n", r.SkippedCount-shown)
			break
		}
		fmt.Fprintf(a.Stderr, "warning: %s: %s\n", s.Place, s.Reason)
	}
	if r.SkippedCount > 0 {
		fmt.Fprintf(a.Stderr, "warning: %s: passed over %s\n", r.File, count(r.SkippedCount, "malformed place"))
	}
}

var _ imports.Sink = (*keeper)(nil)
