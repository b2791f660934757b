package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/columns"
	"github.com/contextengine/contextengine/internal/waiting"
)

// views returns the views of an agent's sessions, or of all when the agent is empty, by agent and session. Sessions that the program keeps for itself are left out.
func (k *keeper) views(ctx context.Context, agent string) ([]core.View, error) {
	store, ok := core.As[core.ViewStore](k.store)
	if !ok {
		return nil, k.cannot("list sessions")
	}
	defer waiting.Say(k.a.Stderr, "reading the views")()
	var out []core.View
	q := core.ViewQuery{Agent: agent, Limit: core.MaxPage}
	for {
		ids, err := store.ListViews(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			v, err := store.LoadView(ctx, id)
			if err != nil && !errors.Is(err, core.ErrNotFound) {
				return nil, err
			}
			if err == nil && !core.Reserved(id.Session) {
				out = append(out, v)
			}
		}
		if len(ids) < q.Limit {
			return out, nil
		}
		q.After = ids[len(ids)-1]
	}
}

// agentLine is what agents prints of one.
type agentLine struct {
	Agent    string `json:"agent"`
	Sessions int    `json:"sessions"`
	Turns    int    `json:"turns"`
	Messages int    `json:"messages"`
}

func (a *app) agentsCmd() *cobra.Command {
	var f storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "agents",
		Short:   "List the agents that the store remembers something of",
		Long:    "agents lists every agent with its sessions, turns and messages. \"sessions\" lists those of one.\n\n" + exitHelp,
		Example: "  contextengine agents\n  contextengine sessions --agent main",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failed(a.reading(cmd.Context(), f, func(k *keeper) error {
				views, err := k.views(cmd.Context(), "")
				if err != nil {
					return err
				}
				list := []agentLine{}
				for i := range views {
					v := &views[i]
					if n := len(list); n == 0 || list[n-1].Agent != v.Session.Agent {
						list = append(list, agentLine{Agent: v.Session.Agent})
					}
					l := &list[len(list)-1]
					l.Sessions, l.Turns, l.Messages = l.Sessions+1, l.Turns+int(v.Turns), l.Messages+v.Len()
				}
				if asJSON {
					return writeJSON(a.Stdout, list)
				}
				if len(list) == 0 {
					fmt.Fprintln(a.Stderr, "the store remembers nobody")
					return nil
				}
				table := columns.Table{Columns: []columns.Column{{Name: "agent", Left: true}, {Name: "sessions"}, {Name: "turns"}, {Name: "messages"}}}
				for _, l := range list {
					table.Add(l.Agent, fmt.Sprint(l.Sessions), fmt.Sprint(l.Turns), fmt.Sprint(l.Messages))
				}
				out := bufio.NewWriter(a.Stdout)
				table.Print(out, a.fit())
				return out.Flush()
			}))
		},
	}
	f.register(cmd)
	a.wideFlag(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) sessionsCmd() *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use:     "sessions --agent AGENT",
		Short:   "List the sessions of an agent",
		Long:    "sessions lists what \"inspect\" shows one by one.\n\n" + exitHelp,
		Example: "  contextengine sessions --agent main",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.agent == "" {
				return fmt.Errorf("--agent: name the agent; \"contextengine agents\" lists them: %w", core.ErrInvalid)
			}
			return failed(a.reading(cmd.Context(), f.storeFlags, func(k *keeper) error { return k.sessions(cmd.Context(), f) }))
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.agent, "agent", "", "the agent; required")
	a.wideFlag(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}
