package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/soak"
)

// soakFlags are the flags of soak.
type soakFlags struct {
	selection
	sessions, agents, turns int
	time, think, every      time.Duration
	budget                  string
	agent                   string
	seed                    uint64
	keep, json              bool
}

func (a *app) soakCmd() *cobra.Command {
	var f soakFlags
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Play thousands of sessions at once, and see that nothing grows",
		Long: `soak plays many sessions at once over a configuration: they talk, have prompts assembled, call tools, compact, are bootstrapped
anew, end and make room for others. It samples memory after garbage collection, goroutines, open files and latencies, and compares the second
tenth of the time with the last. No model is asked. Without a configured store it uses the one in memory.

What it stores belongs to agents named "soak-N" of their own (see --agent), and is erased in the end; --keep leaves it.

` + soakExitHelp,
		Example: `  contextengine soak --time 1m
  contextengine soak --sessions 10000 --time 10m --store sqlite --json > soak.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failed(a.soak(cmd.Context(), f))
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&f.sessions, "sessions", 10_000, "sessions that live at the same time")
	cmd.Flags().IntVar(&f.agents, "agents", 0, "agents that own them (default one for each 20 sessions)")
	cmd.Flags().DurationVar(&f.time, "time", 10*time.Minute, "how long they live, after they were given a past")
	cmd.Flags().DurationVar(&f.think, "think", 2*time.Minute, "mean time between two turns of a session")
	cmd.Flags().IntVar(&f.turns, "turns", 20, "turns after which a session ends and another takes its place")
	cmd.Flags().DurationVar(&f.every, "every", 0, "time between two samples (default a sixtieth of --time)")
	cmd.Flags().StringVar(&f.budget, "budget", "2k", "token budget of prompts")
	cmd.Flags().StringVar(&f.agent, "agent", "soak", "what the names of the agents begin with")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of what the sessions say")
	cmd.Flags().BoolVar(&f.keep, "keep", false, "leave what was stored, also of sessions that ended: memory is not flat then")
	a.wideFlag(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print a line of JSON for each sample, and one with the verdict")
	return cmd
}

const soakExitHelp = `Exit codes:
  0    nothing grew
  1    something failed: the store, the engine
  2    the command line or the configuration is wrong
  3    something grew, latency is not stable, or calls failed
  130  interrupted`

func (a *app) soak(ctx context.Context, f soakFlags) error {
	budget, err := tokens(f.budget)
	if err != nil {
		return err
	}
	if f.sessions < 1 || f.turns < 1 || f.time <= 0 || f.think <= 0 {
		return fmt.Errorf("--sessions, --turns, --time, --think: must be positive: %w", core.ErrInvalid)
	}
	if f.agent == "" {
		return fmt.Errorf("--agent: must not be empty: %w", core.ErrInvalid)
	}
	arms, err := a.arms(f.selection)
	if err != nil {
		return err
	}
	if len(arms) != 1 {
		return fmt.Errorf("soak takes one configuration at a time: %w", core.ErrInvalid)
	}
	bar := newProgress(a.Stderr, "seconds")
	rep, err := soak.Run(ctx, soak.Options{
		Sessions: f.sessions, Agents: f.agents, Time: f.time, Think: f.think, Every: f.every, Turns: f.turns, Budget: budget,
		Agent: f.agent, Seed: f.seed, Keep: f.keep,
		Open: func(ctx context.Context) (experiment.Subject, error) {
			return arms[0].Open(ctx, core.NoHost{}, core.SessionID{Agent: f.agent, Session: "soak"})
		},
		Progress: func(s soak.Sample) { bar.set(int(s.At), int(f.time.Seconds())) },
	})
	bar.done()
	if err != nil {
		return err
	}
	write := func() error { return rep.WriteTable(a.Stdout, a.wide) }
	if f.json {
		write = func() error { return rep.WriteJSON(a.Stdout) }
	}
	if err := write(); err != nil {
		return err
	}
	if len(rep.Findings) > 0 {
		what := lo.Uniq(lo.Map(rep.Findings, func(f soak.Finding, _ int) string { return f.What }))
		return &exitError{code: ExitViolations, err: errors.New("found: " + strings.Join(what, ", "))}
	}
	return nil
}
