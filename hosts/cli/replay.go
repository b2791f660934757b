package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/examples/transcript"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/internal/pathflag"
	"github.com/contextengine/contextengine/internal/waiting"
	"github.com/contextengine/contextengine/models/tiktoken"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	selection
	modelFlags
	reading
	budgets    []string
	jitter     float64
	cachePrice float64
	seed       uint64
	json, each bool
	keep       bool
}

// reading says how files are read.
type reading struct {
	format    string
	join      bool
	keepGoing bool
}

func (f *reading) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "format", "", "format of the messages: "+strings.Join(message.Formats(), ", ")+"; seen from the file when not set")
	cmd.Flags().BoolVar(&f.join, "join", false, "make one session of all conversations of a file")
	cmd.Flags().BoolVar(&f.keepGoing, "keep-going", false, "pass over malformed lines; they are reported and change nothing about the exit code")
}

func (f *selection) register(cmd *cobra.Command) {
	pathflag.SliceVar(cmd.Flags(), &f.configs, "config", "configuration file, JSON, JSON5, YAML or TOML; may be given several times (default: the file that CONTEXTENGINE_CONFIG names, or the defaults)")
	cmd.Flags().StringSliceVar(&f.retrievers, "retriever", nil, "retrievers instead of the configured one")
	cmd.Flags().StringSliceVar(&f.compactors, "compactor", nil, "compactors instead of the configured one")
	cmd.Flags().StringSliceVar(&f.stores, "store", nil, "stores instead of the configured one")
}

func (a *app) replayCmd() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [FILE...]",
		Short: "Replay conversations, verify the promises, measure the window",
		Long: `replay feeds conversations message by message through one or more configurations, assembles a prompt before every
model call, compacts when that is due, and verifies every prompt by recounting and comparing the bytes that would be
sent. A simulated host answers engines that delegate compaction. What a replay stores it erases again.

` + modelHelp + `

Files are transcripts (OpenAI, Anthropic or pi / OpenClaw messages, tau-bench runs), LoCoMo, BEAM or team chats; "-" is
standard input. Without a file it replays an example that is built in.

` + tableHelp + "\n\n" + exitHelp,
		Example: `  contextengine replay
  contextengine replay session.jsonl --budget 8k,32k --combinations all
  contextengine replay session.jsonl --config a.yaml --config b.yaml --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(a.replay(cmd.Context(), f, args))
		},
	}
	f.selection.register(cmd)
	f.reading.register(cmd)
	f.modelFlags.register(cmd)
	cmd.Flags().StringVar(&f.combinations, "combinations", "", `"all": every retriever with every compactor and store that need nothing outside; --retriever, --compactor and --store then select among them`)
	cmd.Flags().StringSliceVar(&f.budgets, "budget", nil, "token budgets of prompts (default 2k,8k; with --combinations 1k,2k)")
	cmd.Flags().Float64Var(&f.jitter, "jitter", 0, "vary the budget of every call by up to this many percent")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the jitter")
	cmd.Flags().Float64Var(&f.cachePrice, "cache-price", 0.1, "price of a cached token relative to one that is not")
	cmd.Flags().BoolVar(&f.each, "each", false, "one line for each session instead of one for each file")
	cmd.Flags().BoolVar(&f.keep, "keep", false, "leave what was stored in the store")
	a.wideFlag(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, `print JSON: "violations" is their number, "reports" has everything else`)
	return cmd
}

func (a *app) replay(ctx context.Context, f replayFlags, files []string) error {
	if !(f.jitter >= 0 && f.jitter < 100) {
		return fmt.Errorf("--jitter: must be 0 to 100 percent: %w", core.ErrInvalid)
	}
	if !(f.cachePrice > 0 && f.cachePrice <= 1) {
		return fmt.Errorf("--cache-price: must be more than 0, and at most 1: %w", core.ErrInvalid)
	}
	if len(f.budgets) == 0 {
		f.budgets = []string{"2k", "8k"}
		if f.combinations != "" {
			f.budgets = []string{"1k", "2k"} // at which every compactor has something to do in the example
		}
	}
	budgets, err := allTokens(f.budgets)
	if err != nil {
		return err
	}
	if _, err := a.arms(f.selection); err != nil {
		return err
	}
	sessions, malformed, err := a.open(files, f.reading)
	if err != nil {
		return err
	}
	counter, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		return err
	}
	var reports []experiment.Report
	err = a.asking(ctx, f.modelFlags, f.selection, func(ctx context.Context, s selection) error {
		arms, err := a.arms(s)
		if err != nil {
			return err
		}
		bar := newProgress(a.Stderr, "messages")
		defer bar.done()
		reports, err = experiment.Run(ctx, experiment.Plan{
			Sessions: sessions, Budgets: budgets, Arms: arms, Counter: counter.Count, Progress: bar.set,
			Options: experiment.Options{
				Jitter: f.jitter / 100, Seed: f.seed, CachePrice: f.cachePrice, Keep: f.keep && !s.rehearsal,
			},
		})
		return err
	})
	if err != nil {
		return err
	}
	if !f.each {
		reports = byFile(sessions, reports)
	}
	return a.report(reports, malformed, f)
}

// report prints what a replay found, and returns what it means.
func (a *app) report(reports []experiment.Report, malformed int, f replayFlags) error {
	violations := lo.SumBy(reports, func(r experiment.Report) int { return len(r.Violations) })
	if f.json {
		if err := writeJSON(a.Stdout, map[string]any{"violations": violations, "malformed": malformed, "reports": reports}); err != nil {
			return err
		}
	} else if err := writeTable(a.Stdout, a.fit(), reports); err != nil {
		return err
	}
	var errs []error
	for _, r := range reports {
		if r.Error != "" {
			errs = append(errs, fmt.Errorf("%s, %s, budget %d: %w", r.Session, r.Arm, r.Budget, r.Err()))
		}
	}
	switch {
	case len(errs) > 0:
		return failed(errors.Join(errs...))
	case violations > 0:
		return &exitError{code: ExitViolations, err: errors.New(count(violations, "violation"))}
	}
	return nil
}

// open reads the conversations of all files. Two files of the same name are told apart by their number.
func (a *app) open(files []string, f reading) ([]dataset.Session, int, error) {
	if f.format != "" && !slices.Contains(message.Formats(), f.format) {
		return nil, 0, unknownName("value of --format", f.format, message.Formats())
	}
	malformed := 0
	done := waiting.Say(a.Stderr, "reading")
	defer done()
	o := dataset.Options{Format: f.format, Join: f.join, KeepGoing: f.keepGoing, OnError: func(err error) {
		malformed++
		done()
		fmt.Fprintln(a.Stderr, "warning: "+err.Error())
	}}
	var out []dataset.Session
	seen := make(map[string]int)
	add := func(sessions []dataset.Session, err error) error {
		if err != nil {
			return err
		}
		if len(sessions) == 0 {
			return nil
		}
		name := sessions[0].File
		if seen[name]++; seen[name] > 1 {
			for i := range sessions {
				sessions[i].File = name + "(" + strconv.Itoa(seen[name]) + ")"
			}
		}
		out = append(out, sessions...)
		return nil
	}
	if len(files) == 0 {
		if err := add(dataset.Read(strings.NewReader(transcript.Session()), transcript.Name, o)); err != nil {
			return nil, 0, err
		}
	}
	for _, file := range files {
		var err error
		if file == "-" {
			err = add(dataset.Read(a.Stdin, "stdin", o))
		} else {
			err = add(dataset.Open(file, o))
		}
		if err != nil {
			return nil, 0, err
		}
	}
	done()
	if malformed > 0 {
		fmt.Fprintf(a.Stderr, "warning: passed over %s\n", count(malformed, "malformed line"))
	}
	if len(out) == 0 {
		return nil, 0, fmt.Errorf("%s: no messages", cmp.Or(strings.Join(files, ", "), transcript.Name))
	}
	return out, malformed, nil
}

// byFile adds up the reports of a file's sessions.
func byFile(sessions []dataset.Session, reports []experiment.Report) []experiment.Report {
	file := lo.SliceToMap(sessions, func(s dataset.Session) (string, string) { return s.Name(), s.File })
	type row struct {
		file, arm string
		budget    int
	}
	var order []row
	groups := make(map[row][]experiment.Report)
	for _, r := range reports {
		k := row{file[r.Session], r.Arm, r.Budget}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	return lo.Map(order, func(k row, _ int) experiment.Report { return experiment.Merge(k.file, groups[k]) })
}
