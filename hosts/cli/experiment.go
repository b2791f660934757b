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
	"github.com/contextengine/contextengine/experiment/live"
	"github.com/contextengine/contextengine/internal/columns"
	"github.com/contextengine/contextengine/internal/identity"
	"github.com/contextengine/contextengine/internal/pathflag"
	"github.com/contextengine/contextengine/internal/waiting"
	"github.com/contextengine/contextengine/registry"
)

func (a *app) experimentCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "See how the arms of a running experiment do",
		Long: `A configuration with arms splits sessions among variants. A session keeps its arm for ever, and every turn names it. These commands show
what became of each arm, and add outcomes: what a host, or a person, says of a session or a turn.

` + exitHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.experimentStatusCmd(), a.experimentScoreCmd())
	return cmd
}

func (a *app) experimentStatusCmd() *cobra.Command {
	var f storeFlags
	var agents []string
	var asJSON, force bool
	var html string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the arms, their sessions and metrics, and what differs",
		Long: `status shows every arm with its sessions, and the means of its metrics over sessions with 95 % intervals. A session is the unit: turns of one
session resemble each other. A window's tokens, its cost with a prompt cache (cached tokens at window.cachePrice), the time it took, whether an answer says
something of what was recalled, degradations and errors are counted from when a session joined. What differs between the first arm and each other comes with an interval and a plain verdict.

` + exitHelp,
		Example: "  contextengine experiment status --config contextengine.yaml --html report.html",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, page := cmd.Context(), outFile{flag: "--html", name: html, force: force}
			if err := page.check(); html != "" && err != nil {
				return failed(err)
			}
			return failed(a.reading(ctx, f, func(k *keeper) error {
				src := live.Source{Agents: agents, CachePrice: k.instance.Config().Core.Window.CachePrice}
				for _, arm := range k.instance.Config().Arms {
					src.Arms = append(src.Arms, arm.Name)
				}
				if len(src.Arms) == 0 {
					return fmt.Errorf("the configuration has no arms: add them with the key arms: %w", core.ErrInvalid)
				}
				var err error
				if src.Stores, err = allStores(ctx, k.instance); err != nil {
					return err
				}
				done := waiting.Say(a.Stderr, "reading the sessions")
				status, err := live.Read(ctx, src)
				done()
				if err != nil {
					return err
				}
				weights := weightsOf(k.instance.Config())
				if html != "" {
					if err := a.statusPage(page, commandLine(cmd, nil), status, weights); err != nil {
						return err
					}
				}
				if asJSON {
					return writeJSON(a.Stdout, status)
				}
				return a.printStatus(status, weights)
			}))
		},
	}
	f.register(cmd)
	cmd.Flags().StringSliceVar(&agents, "agent", nil, "only these agents")
	a.wideFlag(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	pathflag.Var(cmd.Flags(), &html, "html", "", "write a report with charts to this file, which works offline")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the report if it exists")
	return cmd
}

// weightsOf are the weights of the configured arms as people write them.
func weightsOf(cfg registry.Config) map[string]string {
	weights := make(map[string]string)
	for _, arm := range cfg.Arms {
		weights[arm.Name] = strconv.FormatFloat(arm.Weight, 'g', 4, 64)
	}
	return weights
}

// allStores returns the stores of all arms, each once.
func allStores(ctx context.Context, instance *registry.Instance) ([]core.Store, error) {
	engines, err := instance.All(ctx)
	if err != nil {
		return nil, err
	}
	var out []core.Store
	for _, e := range engines {
		s, ok := e.(interface{ Store() core.Store })
		if ok && !slices.ContainsFunc(out, func(known core.Store) bool { return identity.Same(known, s.Store()) }) {
			out = append(out, s.Store())
		}
	}
	return out, nil
}

func (a *app) printStatus(st live.Status, weights map[string]string) error {
	out := bufio.NewWriter(a.Stdout)
	arms := columns.Table{Columns: []columns.Column{{Name: "arm", Left: true}, {Name: "weight"}, {Name: "sessions"}, {Name: "turns"}, {Name: "messages"}}}
	for _, arm := range st.Arms {
		arms.Add(arm.Name, dash(weights[arm.Name], weights[arm.Name] != ""), strconv.Itoa(arm.Sessions), strconv.Itoa(arm.Turns), strconv.Itoa(arm.Messages))
	}
	arms.Print(out, a.fit())
	if st.Unassigned > 0 {
		fmt.Fprintf(out, "%s in no arm: begun before the experiment\n", count(st.Unassigned, "session"))
	}
	metrics := columns.Table{Keys: 2, Columns: []columns.Column{{Name: "metric", Left: true}, {Name: "arm", Left: true}, {Name: "mean"}, {Name: "95 %"}, {Name: "sessions"}}}
	for _, arm := range st.Arms {
		for _, m := range arm.Metrics {
			interval := "-"
			if m.Basis != "" {
				interval = figure(m.Low) + " to " + figure(m.High)
			}
			metrics.Add(m.Name, arm.Name, figure(m.Mean), interval, strconv.Itoa(m.N))
		}
	}
	if metrics.Len() > 0 {
		fmt.Fprintln(out)
		metrics.Print(out, a.fit())
	}
	if len(st.Differences) > 0 {
		fmt.Fprintln(out)
	}
	for _, d := range st.Differences {
		fmt.Fprintf(out, "%s: %s\n", d.Metric, d.Verdict)
	}
	return out.Flush()
}

func figure(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func (a *app) experimentScoreCmd() *cobra.Command {
	var f storeFlags
	var session, metric string
	var turn int64
	cmd := &cobra.Command{
		Use:   "score --agent AGENT --session SESSION --metric NAME VALUE",
		Short: "Say how a session, or a turn of it, went",
		Long: `score attaches a number to a session, or to one of its turns. A later number of the same session, turn and metric takes its place. Of a
session whose turns alone have numbers, "status" takes their mean.

` + exitHelp,
		Example: `  contextengine experiment score --agent main --session agent:main:work --metric resolved 1
  contextengine experiment score --agent main --session agent:main:work --turn 12 --metric helpful 0.5`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			value, err := strconv.ParseFloat(args[0], 64)
			if err != nil {
				return fmt.Errorf("VALUE: %q is no number: %w", args[0], core.ErrInvalid)
			}
			if f.agent == "" {
				return fmt.Errorf("--agent: name the agent: %w", core.ErrInvalid)
			}
			return failed(a.keeping(ctx, f, func(k *keeper) error {
				eng, _, err := k.instance.Lookup(ctx, f.agent, session)
				if err != nil {
					return err
				}
				scorer, ok := eng.(engine.Scorer)
				if !ok {
					return fmt.Errorf("engine %q keeps no outcomes: choose another with the key engine: %w", eng.Info().ID, errors.ErrUnsupported)
				}
				id := core.SessionID{Agent: f.agent, Session: session}
				if r, ok := eng.(engine.Recaller); ok && session != "" {
					d, err := r.Describe(ctx, engine.DescribeRequest{Session: id})
					if err != nil {
						return err
					}
					if d.Entries == 0 || turn > d.Turns {
						return fmt.Errorf("session %q of agent %q has %s: %w", session, f.agent, count(int(d.Turns), "turn"), core.ErrNotFound)
					}
				}
				if err := scorer.Score(ctx, engine.Outcome{Session: id, Turn: turn, Name: metric, Value: value}); err != nil {
					return err
				}
				what := fmt.Sprintf("session %q of agent %q", session, f.agent)
				if turn > 0 {
					what = fmt.Sprintf("turn %d of %s", turn, what)
				}
				fmt.Fprintf(a.Stdout, "noted %s %v for %s\n", metric, value, what)
				return nil
			}))
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.agent, "agent", "", "agent that the session belongs to; required")
	cmd.Flags().StringVar(&session, "session", "", "the session; required")
	cmd.Flags().Int64Var(&turn, "turn", 0, "the user turn, from 1; 0 for the session as a whole")
	cmd.Flags().StringVar(&metric, "metric", "", `name: letters, digits, "-", "_" and "."; required`)
	return cmd
}
