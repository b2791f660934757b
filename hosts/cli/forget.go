package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

type forgetFlags struct {
	storeFlags
	session, since, before string
	entries                []string
	reason                 string
	purge, yes             bool
	receipts, json         bool
}

func (a *app) forgetCmd() *cobra.Command {
	var f forgetFlags
	cmd := &cobra.Command{
		Use:   "forget --agent AGENT",
		Short: "Erase messages for good, wherever they are",
		Long: `forget erases an agent's messages, a session's, those of a time, or single ones. It shows what that is and asks first, unless
--yes is given. It leaves a receipt, which says how many and when and never what; --receipts lists them.

An erased message leaves its place, so that a host that still has it in its transcript does not bring it back. --purge removes
whole sessions, places included: what the host still has then comes back.

Copies made before, by backup and export, are beyond its reach. Other processes that use the store learn of it with their next turn.

` + exitHelp,
		Example: `  contextengine forget --agent main --session agent:main:work --reason "asked for by the user"
  contextengine forget --agent main --since 2026-01-01 --before 2026-02-01
  contextengine forget --agent main --entry e1x2y3 --yes
  contextengine forget --agent main --receipts`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failed(a.forget(cmd.Context(), f))
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.agent, "agent", "", "agent whose messages are erased; required")
	cmd.Flags().StringVar(&f.session, "session", "", "only those of this session")
	cmd.Flags().StringSliceVar(&f.entries, "entry", nil, "only the entries with these ids")
	cmd.Flags().StringVar(&f.since, "since", "", "only those of this time and later: a date, or a date with a time")
	cmd.Flags().StringVar(&f.before, "before", "", "only those before this time")
	cmd.Flags().BoolVar(&f.purge, "purge", false, "remove whole sessions, with the places of erased messages")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; it is kept with the receipt")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.receipts, "receipts", false, "list the receipts of the agent's erasures, and erase nothing")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// request is what is to be erased.
func (f *forgetFlags) request() (engine.ForgetRequest, error) {
	if f.agent == "" {
		return engine.ForgetRequest{}, fmt.Errorf("--agent: name the agent: %w", core.ErrInvalid)
	}
	if core.Reserved(f.session) {
		return engine.ForgetRequest{}, ownRecords("--session", f.session)
	}
	req := engine.ForgetRequest{Scope: core.Scope{Agent: f.agent, Session: f.session}, Purge: f.purge, Reason: f.reason}
	for _, id := range f.entries {
		req.Entries = append(req.Entries, strings.TrimPrefix(strings.TrimSpace(id), "#")) // as inspect shows them
	}
	var err error
	if req.From, err = parseMoment("--since", f.since); err != nil {
		return req, err
	}
	if req.To, err = parseMoment("--before", f.before); err != nil {
		return req, err
	}
	switch {
	case !req.From.IsZero() && !req.To.IsZero() && !req.From.Before(req.To):
		return req, fmt.Errorf("--before: must be later than --since: %w", core.ErrInvalid)
	case f.purge && (len(f.entries) > 0 || f.since != "" || f.before != ""):
		return req, fmt.Errorf("--purge: it removes whole sessions: leave out --entry, --since and --before: %w", core.ErrInvalid)
	case len(f.entries) > 0 && (f.since != "" || f.before != ""):
		return req, fmt.Errorf("--entry: it names what to erase: leave out --since and --before: %w", core.ErrInvalid)
	}
	return req, nil
}

// ownRecords refuses a flag that names what is nobody's message.
func ownRecords(flag, name string) error {
	return fmt.Errorf("%s: %q is of the engine's own records, which go with what they are about: %w", flag, name, core.ErrInvalid)
}

func (a *app) forget(ctx context.Context, f forgetFlags) error {
	req, err := f.request()
	if err != nil {
		return err
	}
	using := a.keeping
	if f.receipts {
		using = a.reading
	}
	return using(ctx, f.storeFlags, func(k *keeper) error {
		if f.receipts {
			return k.receipts(ctx, f)
		}
		what, err := k.preview(ctx, req)
		if err != nil {
			return err
		}
		if !f.json || !f.yes {
			fmt.Fprintln(a.Stderr, what.text(req))
		}
		if what.nothing() && !f.purge {
			return nil
		}
		if !f.yes {
			if err := a.confirm(ctx, "Erase this for good? Type yes: ", "nothing was erased"); err != nil {
				return err
			}
		}
		var receipt engine.Receipt
		err = a.saying("erasing", func() (err error) {
			receipt, err = k.instance.Forget(ctx, req)
			return err
		})
		if receipt.ID != "" {
			err = errors.Join(err, a.printReceipts(f.json, receipt))
		}
		if err == nil && len(receipt.Left) > 0 {
			err = errors.New("not everything could be reached; running it again tries the rest")
		}
		return err
	})
}

// extent is what would be erased.
type extent struct {
	messages, places int
	sessions         map[string]bool
	first, last      time.Time
}

func (p *extent) nothing() bool { return p.messages == 0 }

func (p *extent) text(req engine.ForgetRequest) string {
	text := fmt.Sprintf("%s in %s of agent %q", count(p.messages, "message"), count(len(p.sessions), "session"), req.Scope.Agent)
	if p.messages > 0 {
		text += fmt.Sprintf(", from %s to %s", moment(p.first), moment(p.last))
	}
	if req.Purge {
		text += fmt.Sprintf(", with %s of erased messages, and windows", count(p.places, "place"))
	}
	return text
}

// preview counts what a request would erase.
func (k *keeper) preview(ctx context.Context, req engine.ForgetRequest) (*extent, error) {
	p := &extent{sessions: make(map[string]bool)}
	if len(req.Entries) > 0 {
		entries, err := k.store.Get(ctx, req.Scope, req.Entries)
		for _, e := range entries {
			if core.Reserved(e.Session) {
				return nil, ownRecords("--entry", e.ID)
			}
			p.add(e, req)
		}
		return p, err
	}
	bar := newProgress(k.a.Stderr, "messages")
	defer bar.done()
	n := 0
	for e, err := range core.All(ctx, k.store, req.Scope, false) {
		if err != nil {
			return nil, err
		}
		if n++; n%1000 == 0 {
			bar.set(n, -1)
		}
		p.add(e, req)
	}
	return p, nil
}

func (p *extent) add(e core.Entry, req engine.ForgetRequest) {
	switch {
	case core.Reserved(e.Session):
		return // they are kept
	case !req.From.IsZero() && e.Time.Before(req.From), !req.To.IsZero() && !e.Time.Before(req.To):
		return
	case e.Type == core.TypeErased:
		p.places++
		return
	}
	p.messages++
	p.sessions[e.Session] = true
	if p.first.IsZero() || e.Time.Before(p.first) {
		p.first = e.Time
	}
	if e.Time.After(p.last) {
		p.last = e.Time
	}
}

// confirm asks on standard input, and fails with what otherwise says unless the answer is yes. An interrupt ends it: what waits for the line then ends with the process.
func (a *app) confirm(ctx context.Context, question, otherwise string) error {
	fmt.Fprint(a.Stderr, question)
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(a.Stdin).ReadString('\n')
		answers <- answer{line, err}
	}()
	var got answer
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.Stderr, "\n"+otherwise)
		return ctx.Err()
	case got = <-answers:
	}
	switch {
	case strings.EqualFold(strings.TrimSpace(got.line), "yes"):
		return nil
	case errors.Is(got.err, io.EOF) && got.line == "":
		return fmt.Errorf("%s: nobody answered; --yes does it without asking: %w", otherwise, core.ErrInvalid)
	case got.err != nil && !errors.Is(got.err, io.EOF):
		return fmt.Errorf("%s: standard input: %w", otherwise, got.err)
	}
	return errors.New(otherwise)
}

// receipts lists the receipts of an agent.
func (k *keeper) receipts(ctx context.Context, f forgetFlags) error {
	session := f.session
	if session == "" {
		session = storeSession
	}
	eng, _, err := k.instance.Lookup(ctx, f.agent, session)
	if err != nil {
		return err
	}
	r, ok := eng.(interface {
		Receipts(ctx context.Context, agent string) ([]engine.Receipt, error)
	})
	if !ok {
		return fmt.Errorf("engine %q keeps no receipts: %w", eng.Info().ID, errors.ErrUnsupported)
	}
	list, err := r.Receipts(ctx, f.agent)
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(k.a.Stdout, map[string]any{"receipts": list})
	}
	if len(list) == 0 {
		fmt.Fprintf(k.a.Stdout, "nothing was erased of agent %q\n", f.agent)
	}
	return k.a.printReceipts(false, list...)
}

func (a *app) printReceipts(asJSON bool, list ...engine.Receipt) error {
	for _, r := range list {
		if asJSON {
			if err := writeJSON(a.Stdout, r); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.Stdout, "receipt %s of %s: erased %s in %s, %s, and took them out of %s\n", r.ID, moment(r.Time), count(r.Entries, "message"),
			count(r.Sessions, "session"), plural(int64(r.Summaries), "summary", "summaries"), count(r.Views, "window"))
		if r.Request.Reason != "" {
			fmt.Fprintf(a.Stdout, "  reason: %s\n", r.Request.Reason)
		}
		if r.Undelivered > 0 {
			fmt.Fprintf(a.Stdout, "  %s wait for a server that cannot be reached\n", count(r.Undelivered, "change"))
		}
		for _, left := range r.Left {
			fmt.Fprintf(a.Stdout, "  not reached: %s\n", left)
		}
	}
	return nil
}
