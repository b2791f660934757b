package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/columns"
	"github.com/contextengine/contextengine/internal/waiting"
)

type inspectFlags struct {
	storeFlags
	session, search, expand string
	limit, offset, tokens   int
	before, after           int
	json                    bool
}

func (a *app) inspectCmd() *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use:   "inspect --agent AGENT [--session SESSION]",
		Short: "Show a session's window, and the history behind it",
		Long: `inspect shows what a session's window is made of: its summaries and what they stand for, the messages that are shown, how they are
shortened, and what is stored but not shown. Without --session it lists the agent's sessions.

--search looks into everything that the session may recall, the way an agent's context_search does: words, or an exact identifier.
--expand shows an entry in full, page by page, or the messages that a summary stands for; ids are what "#" stands in front of.
Nothing is changed by looking.

` + exitHelp,
		Example: `  contextengine inspect --agent main
  contextengine inspect --agent main --session agent:main:work
  contextengine inspect --agent main --session agent:main:work --search "E-4711"
  contextengine inspect --agent main --session agent:main:work --expand '#e1x2y3' --before 2 --after 2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failed(a.inspect(cmd.Context(), f))
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.agent, "agent", "", "agent that the session belongs to; required")
	cmd.Flags().StringVar(&f.session, "session", "", "the session; without it the agent's sessions are listed")
	cmd.Flags().StringVar(&f.search, "search", "", "look for this")
	cmd.Flags().StringVar(&f.expand, "expand", "", "show the entry, or what the summary stands for, with this id")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "number of found entries, or of messages of the window from its end; 0 for the usual")
	cmd.Flags().IntVar(&f.offset, "offset", 0, "where the next page begins, as the page before says")
	cmd.Flags().IntVar(&f.tokens, "tokens", 0, "size of a page in tokens; 0 for the usual")
	cmd.Flags().IntVar(&f.before, "before", 0, "with --expand: messages in front of it")
	cmd.Flags().IntVar(&f.after, "after", 0, "with --expand: messages behind it")
	a.wideFlag(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (f *inspectFlags) validate() error {
	switch {
	case f.agent == "":
		return fmt.Errorf("--agent: name the agent: %w", core.ErrInvalid)
	case f.session == "" && (f.search != "" || f.expand != ""):
		return fmt.Errorf("--session: name the session to look from: %w", core.ErrInvalid)
	case f.search != "" && f.expand != "":
		return fmt.Errorf("--expand: use it without --search: %w", core.ErrInvalid)
	case f.limit < 0 || f.offset < 0:
		return fmt.Errorf("--limit and --offset: must not be negative: %w", core.ErrInvalid)
	case (f.before != 0 || f.after != 0) && f.expand == "":
		return fmt.Errorf("--before and --after go with --expand: %w", core.ErrInvalid)
	}
	return nil
}

func (a *app) inspect(ctx context.Context, f inspectFlags) error {
	if err := f.validate(); err != nil {
		return err
	}
	return a.reading(ctx, f.storeFlags, func(k *keeper) error {
		if f.session == "" {
			return k.sessions(ctx, f)
		}
		id := core.SessionID{Agent: f.agent, Session: f.session}
		eng, _, err := k.instance.Lookup(ctx, id.Agent, id.Session)
		if err != nil {
			return err
		}
		r, ok := eng.(engine.Recaller)
		if !ok {
			return fmt.Errorf("engine %q cannot be looked into: choose another with the key engine: %w", eng.Info().ID, errors.ErrUnsupported)
		}
		d, err := r.Describe(ctx, engine.DescribeRequest{Session: id})
		if err != nil {
			return err
		}
		if d.Entries == 0 && d.Budget == 0 {
			return fmt.Errorf("session %q of agent %q holds nothing: list the agent's sessions without --session: %w", f.session, f.agent, core.ErrNotFound)
		}
		switch {
		case f.search != "":
			done := waiting.Say(a.Stderr, "searching")
			res, err := r.Search(ctx, engine.SearchRequest{Session: id, Query: f.search, Limit: f.limit, Offset: f.offset, Tokens: f.tokens})
			done()
			return a.page(f.json, res, res.Text, res.Next, err)
		case f.expand != "":
			res, err := r.Expand(ctx, engine.ExpandRequest{Session: id, ID: f.expand, Before: f.before, After: f.after, Offset: f.offset, Tokens: f.tokens})
			return a.page(f.json, res, res.Text, res.Next, err)
		}
		store, err := k.storeOf(ctx, id.Agent, id.Session)
		if err != nil {
			return err
		}
		done := waiting.Say(a.Stderr, "reading the session")
		h, err := readHistory(ctx, store, id)
		done()
		if err != nil {
			return err
		}
		if f.json {
			return writeJSON(a.Stdout, struct {
				engine.DescribeResult
				History history `json:"history"`
			}{d, h})
		}
		return a.printSession(d, h, f.limit)
	})
}

// page prints what was found, or that nothing was.
func (a *app) page(asJSON bool, res any, text string, next int, err error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return writeJSON(a.Stdout, res)
	case text == "":
		fmt.Fprintln(a.Stderr, "nothing found")
		return nil
	}
	fmt.Fprint(a.Stdout, text)
	if next > 0 {
		fmt.Fprintf(a.Stderr, "more: --offset %d\n", next)
	}
	return nil
}

// sessions lists an agent's sessions.
func (k *keeper) sessions(ctx context.Context, f inspectFlags) error {
	list, err := k.views(ctx, f.agent)
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(k.a.Stdout, list)
	}
	if len(list) == 0 {
		fmt.Fprintf(k.a.Stderr, "agent %q has no sessions\n", f.agent)
		return nil
	}
	table := columns.Table{Columns: []columns.Column{
		{Name: "session", Left: true}, {Name: "turns"}, {Name: "messages"}, {Name: "shown from"}, {Name: "summaries"}, {Name: "steps"}, {Name: "arm", Left: true},
	}}
	for i := range list {
		v := &list[i]
		table.Add(v.Session.Session, fmt.Sprint(v.Turns), fmt.Sprint(v.Len()), fmt.Sprint(max(v.Start, 0)), fmt.Sprint(len(v.Summaries)), fmt.Sprint(v.Epoch), orNone(v.Arm))
	}
	out := bufio.NewWriter(k.a.Stdout)
	table.Print(out, k.a.fit())
	return out.Flush()
}

// windowLines is how many messages of a window are listed, from its end.
const windowLines = 40

// printSession prints the description, the tree of summaries, and the window.
func (a *app) printSession(d engine.DescribeResult, h history, limit int) error {
	out := bufio.NewWriter(a.Stdout)
	head, _, _ := strings.Cut(d.Text, "\n")
	fmt.Fprintf(out, "%s\n%s\n", d.Session, columns.Hang(head, 2, a.fit()))
	if d.Arm != "" {
		fmt.Fprintf(out, "arm %s\n", d.Arm)
	}
	if len(h.Summaries) > 0 {
		fmt.Fprintln(out, "\nwhat stands for history")
		for _, s := range h.Summaries {
			h.print(out, s, "")
		}
	}
	if limit == 0 {
		limit = windowLines
	}
	shown := h.Window[max(len(h.Window)-limit, 0):]
	fmt.Fprintf(out, "\nthe window (%d of %d messages)\n", len(shown), len(h.Window))
	if len(shown) > 0 {
		table := columns.Table{Keys: 2, Columns: []columns.Column{{Name: "entry", Left: true}, {Name: "role", Left: true}, {Name: "tokens"}, {Name: "text", Left: true, Cut: true}}}
		for _, l := range shown {
			table.Add("#"+l.ID, string(l.Role), fmt.Sprint(l.Tokens), l.how()+l.Head)
		}
		table.Print(out, a.fit())
	}
	return out.Flush()
}
