package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/compare"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/experiment/report"
	"github.com/contextengine/contextengine/experiment/survival"
	"github.com/contextengine/contextengine/internal/columns"
	"github.com/contextengine/contextengine/internal/pathflag"
	"github.com/contextengine/contextengine/models/tiktoken"
)

type compareFlags struct {
	selection
	modelFlags
	reading
	budgets    []string
	keep       []float64
	cachePrice float64
	workers    int
	seed       uint64
	session    string
	html       string
	force      bool
	json       bool
}

// comparison is all that the command finds.
type comparison struct {
	compare.Result
	// Identifiers say what of the identifiers needed later survives a compaction; empty where no conversation calls tools.
	Identifiers []compare.Survival `json:"identifiers,omitempty"`
}

func (a *app) compareCmd() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare FILE... --config A --config B",
		Short: "Say what differs between configurations, with intervals",
		Long: `compare replays the same conversations through two or more configurations and measures how the window is filled, what a prompt cache
can reuse of it and saves at a given price, how often a model is called, and how many of the identifiers that an agent needs later are
still in the prompt after a compaction. The first configuration is what the others are compared with; differences are paired by
conversation, with 95 % intervals over conversations and a plain verdict.

` + modelHelp + `

--html writes all of it as one file that works offline, with the window of every call of one conversation under each configuration.

` + exitHelp,
		Example: `  contextengine compare runs.json --config a.yaml --config b.yaml --html report.html
  contextengine compare runs.json --compactor archive,mask --budget 8k`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(a.compare(cmd.Context(), f, commandLine(cmd, args), args))
		},
	}
	f.selection.register(cmd)
	f.reading.register(cmd)
	f.modelFlags.register(cmd)
	cmd.Flags().StringSliceVar(&f.budgets, "budget", nil, "token budgets of prompts (default 8k)")
	cmd.Flags().Float64SliceVar(&f.keep, "keep", []float64{0.4, 0.15}, "shares of the history that a compaction is to keep when identifiers are looked for; 0 leaves that out")
	cmd.Flags().Float64Var(&f.cachePrice, "cache-price", 0.1, "price of a cached token relative to one that is not")
	cmd.Flags().IntVar(&f.workers, "workers", 0, "replays at once (default: one for each processor)")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the intervals")
	cmd.Flags().StringVar(&f.session, "session", "", "conversation whose windows the HTML report shows (default: the longest)")
	pathflag.Var(cmd.Flags(), &f.html, "html", "", "write a report to this file")
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite the report if it exists")
	a.wideFlag(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (f *compareFlags) validate() ([]int, error) {
	if !(f.cachePrice > 0 && f.cachePrice <= 1) {
		return nil, fmt.Errorf("--cache-price: must be more than 0, and at most 1: %w", core.ErrInvalid)
	}
	f.keep = slices.DeleteFunc(f.keep, func(k float64) bool { return k == 0 })
	for _, k := range f.keep {
		if !(k >= 0.1 && k <= 0.9) {
			return nil, fmt.Errorf("--keep: %v is not 0.1 to 0.9, or 0 to leave it out: %w", k, core.ErrInvalid)
		}
	}
	if len(f.budgets) == 0 {
		f.budgets = []string{"8k"}
	}
	return allTokens(f.budgets)
}

func (f *compareFlags) page() outFile {
	return outFile{flag: "--html", name: f.html, force: f.force}
}

func (a *app) compare(ctx context.Context, f compareFlags, command string, files []string) error {
	budgets, err := f.validate()
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := f.page().check(); err != nil {
			return err
		}
	}
	arms, err := a.arms(f.selection)
	if err != nil {
		return err
	}
	if len(arms) < 2 {
		return fmt.Errorf("one configuration has nothing to be compared with: give --config twice, or two names to --retriever, --compactor or --store: %w", core.ErrInvalid)
	}
	seen := make(map[string]bool)
	for _, arm := range arms {
		if seen[arm.Name] {
			return fmt.Errorf("two configurations are called %s: leave one out, or name files that say what differs with --config: %w", arm.Name, core.ErrInvalid)
		}
		seen[arm.Name] = true
	}
	sessions, _, err := a.open(files, f.reading)
	if err != nil {
		return err
	}
	counter, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		return err
	}
	var found comparison
	var windows []report.Section
	var failures error // what could not be replayed does not take away what could
	err = a.asking(ctx, f.modelFlags, f.selection, func(ctx context.Context, s selection) error {
		arms, err := a.arms(s)
		if err != nil {
			return err
		}
		bar := newProgress(a.Stderr, "messages")
		found = comparison{}
		found.Result, failures = compare.Run(ctx, compare.Plan{StatsSeed: f.seed, Plan: experiment.Plan{
			Sessions: sessions, Budgets: budgets, Arms: arms, Counter: counter.Count, Progress: bar.set, Workers: f.workers,
			Options: experiment.Options{CachePrice: f.cachePrice},
		}})
		bar.done()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if found.Identifiers, err = a.identifiers(ctx, f, s, sessions, counter.Count); err != nil || f.html == "" {
			return err
		}
		return a.saying("replaying for the report", func() (err error) {
			windows, err = a.windows(ctx, f, sessions, arms, budgets[0], counter.Count)
			return err
		})
	})
	if err != nil {
		return errors.Join(failures, err)
	}
	if f.html != "" {
		if err := a.comparePage(f, command, found, windows); err != nil {
			return errors.Join(failures, err)
		}
	}
	if f.json {
		return errors.Join(failures, writeJSON(a.Stdout, found))
	}
	return errors.Join(failures, a.printComparison(found))
}

// identifiers measures the compactors of the configurations; a configuration that compacts nothing itself is left out.
func (a *app) identifiers(ctx context.Context, f compareFlags, s selection, sessions []dataset.Session, counter core.TokenCounter) ([]compare.Survival, error) {
	if len(f.keep) == 0 || f.combinations != "" {
		return nil, nil
	}
	cfgs, err := a.configurations(s)
	if err != nil {
		return nil, err
	}
	var arms []survival.Arm
	seen := make(map[string]bool)
	for _, c := range cfgs {
		instance, err := a.reg.Build(ctx, c.cfg, s.options(a))
		if err != nil {
			return nil, err
		}
		defer instance.Close(context.WithoutCancel(ctx))
		eng, _, err := instance.Lookup(ctx, "compare", "")
		if err != nil {
			return nil, err
		}
		e, ok := eng.(interface{ Compactor() core.Compactor })
		if !ok || !e.Compactor().OwnsCompaction() || seen[c.name] {
			continue
		}
		seen[c.name] = true
		arms = append(arms, survival.Arm{
			Name: c.name, Open: func() (core.Compactor, error) { return e.Compactor(), nil },
			Config: func(cfg *engine.Config) {
				target := cfg.Compaction.Target
				*cfg = c.cfg.Core
				cfg.Compaction.Target = target
			},
		})
	}
	if len(arms) == 0 {
		return nil, nil
	}
	bar := newProgress(a.Stderr, "messages")
	defer bar.done()
	return compare.Identifiers(ctx, compare.IdentifierPlan{
		Sessions: sessions, Arms: arms, Keep: f.keep, Counter: counter, Workers: f.workers, StatsSeed: f.seed, Progress: bar.set,
	})
}

func (a *app) printComparison(c comparison) error {
	out := bufio.NewWriter(a.Stdout)
	of := func(arm string) string { // which one a line is about, where it could be one of several
		if len(c.Arms) > 2 {
			return ", " + arm
		}
		return ""
	}
	fmt.Fprintf(out, "%s, compared with %s\n", count(c.Conversations, "conversation"), c.Arms[0])
	for _, budget := range c.Budgets {
		fmt.Fprintf(out, "\nbudget %s\n", short(float64(budget)))
		table := columns.Table{Columns: []columns.Column{{Name: "metric", Left: true}}}
		for _, arm := range c.Arms {
			table.Columns = append(table.Columns, columns.Column{Name: arm})
		}
		for _, m := range compare.Metrics() {
			line := []string{m.Name}
			for _, v := range c.Values {
				if v.Budget == budget && v.Metric == m.Name {
					line = append(line, dash(m.Format(v.Mean), v.N > 0))
				}
			}
			table.Add(line...)
		}
		table.Print(out, a.fit())
		for _, d := range c.Differences {
			if d.Budget == budget && d.Difference.N > 0 && !d.Difference.Zero() {
				fmt.Fprintf(out, "%s%s: %s\n", d.Metric, of(d.To), d.Verdict)
			}
		}
	}
	if len(c.Identifiers) > 0 {
		fmt.Fprintf(out, "\nidentifiers needed later that survive a compaction (%d of them)\n", c.Identifiers[0].Needed)
		table := columns.Table{Keys: 2, Columns: []columns.Column{{Name: "asked to keep"}, {Name: "configuration", Left: true}, {Name: "kept"}, {Name: "survived"}, {Name: "no index"}, {Name: "index"}}}
		for _, s := range c.Identifiers {
			table.Add(percent(s.Keep), s.Arm, tenth(s.Kept), tenth(s.Survived), tenth(s.Bare), tenth(s.Index))
		}
		table.Print(out, a.fit())
		for _, s := range c.Identifiers {
			if s.Verdict != "" {
				fmt.Fprintf(out, "identifiers at %s%s: %s\n", percent(s.Keep), of(s.Arm), s.Verdict)
			}
		}
	}
	return out.Flush()
}

// tenth writes a share in percent with one decimal.
func tenth(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + "%" }
