package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/internal/columns"
	"github.com/contextengine/contextengine/models/tiktoken"
)

type explainFlags struct {
	selection
	modelFlags
	reading
	turn, call int
	budget     string
	session    string
	json       bool
}

func (a *app) explainCmd() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain [FILE]",
		Short: "Show what is in a prompt, why, and what was left out",
		Long: `explain replays a conversation up to a model call and shows the prompt of that call: every message with the reason
why it is there and what it costs, and everything that is not there. Without a file it explains the example that is built in.

` + modelHelp + `

Reasons: system (a leading system message), tail (recent history), pinned (the user's message of a turn that outgrew the
budget), summary (stands for compacted history), recalled (found by the retriever), note (made by the engine).
Reasons for being out: budget (left at a step), compacted (a summary stands for it), heartbeat, rule (a history rule took
it out), limit (beyond the limit of turns), allowance (found, but the recall block was full).
"clip" marks what was shortened, "mask" what was replaced by a marker.`,
		Example: "  contextengine explain session.jsonl --turn 12 --budget 8k",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			turn, call := cmd.Flags().Changed("turn"), cmd.Flags().Changed("call")
			if turn && call {
				return fmt.Errorf("--turn and --call: each names a model call: give one of them: %w", core.ErrInvalid)
			}
			if turn && f.turn < 1 || call && f.call < 1 {
				return fmt.Errorf("--turn and --call count from 1: %w", core.ErrInvalid)
			}
			return failed(a.explain(cmd.Context(), f, args))
		},
	}
	f.selection.register(cmd)
	f.reading.register(cmd)
	f.modelFlags.register(cmd)
	cmd.Flags().IntVar(&f.turn, "turn", 0, "number of the user turn, from 1; its first model call is explained (default: the last turn)")
	cmd.Flags().IntVar(&f.call, "call", 0, "number of the model call, from 1, instead of a turn")
	cmd.Flags().StringVar(&f.budget, "budget", "8k", "token budget of prompts")
	cmd.Flags().StringVar(&f.session, "session", "", "id of the conversation in a file with several (default: the first)")
	a.wideFlag(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (a *app) explain(ctx context.Context, f explainFlags, files []string) error {
	budget, err := tokens(f.budget)
	if err != nil {
		return err
	}
	if _, err := a.arms(f.selection); err != nil {
		return err
	}
	sessions, _, err := a.open(files, f.reading)
	if err != nil {
		return err
	}
	session, err := pick(sessions, f.session)
	if err != nil {
		return err
	}
	counter, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		return err
	}
	var found []explanation
	err = a.asking(ctx, f.modelFlags, f.selection, func(ctx context.Context, s selection) error {
		arms, err := a.arms(s)
		if err != nil {
			return err
		}
		return a.saying("replaying", func() (err error) {
			found, err = explainAll(ctx, arms, session, budget, counter.Count, f)
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, e := range found {
		if f.json {
			err = writeJSON(a.Stdout, e.data())
		} else {
			err = e.write(a.Stdout, a.fit())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// explainAll returns the prompt of one call under every configuration.
func explainAll(ctx context.Context, arms []experiment.Arm, session dataset.Session, budget int, counter core.TokenCounter, f explainFlags) ([]explanation, error) {
	var out []explanation
	for _, arm := range arms {
		caveat := ""
		arm.Open = watched(arm.Open, &caveat)
		call, err := explained(ctx, experiment.Spec{Session: session, Arm: arm, Budget: budget, Counter: counter}, f)
		if err != nil {
			return nil, err
		}
		out = append(out, explanation{Session: session.Name(), Arm: arm.Name, Caveat: caveat, call: call, msgs: session.Messages})
	}
	return out, nil
}

// watched notes what there is to say about the retriever of an engine that is opened.
func watched(open func(context.Context, core.Host, core.SessionID) (experiment.Subject, error), caveat *string) func(context.Context, core.Host, core.SessionID) (experiment.Subject, error) {
	return func(ctx context.Context, host core.Host, id core.SessionID) (experiment.Subject, error) {
		sub, err := open(ctx, host, id)
		*caveat = caveatOf(sub.Engine)
		return sub, err
	}
}

// caveatOf returns what a person should know about an engine's retriever, or "".
func caveatOf(engine core.ContextEngine) string {
	if r, ok := engine.(retrieverOwner); ok {
		if c, ok := r.Retriever().(core.Caveat); ok {
			return c.Caveat()
		}
	}
	return ""
}

// explained replays up to the call that is asked for.
func explained(ctx context.Context, spec experiment.Spec, f explainFlags) (experiment.Call, error) {
	var found experiment.Call
	last := 0
	spec.Sample = -1
	spec.Watch = func(c experiment.Call) bool {
		last = c.Turn
		hit := f.call > 0 && c.Number == f.call || f.call == 0 && f.turn > 0 && c.Turn == f.turn
		if newTurn := c.Turn != found.Turn; hit || f.call == 0 && f.turn == 0 && newTurn || found.Number == 0 && f.call == 0 && f.turn == 0 {
			found = c
		}
		return !hit
	}
	rep, err := experiment.Replay(ctx, spec)
	if err != nil {
		return found, err
	}
	if found.Number == 0 {
		return found, fmt.Errorf("there is no such call: the conversation has %s in %s: %w", count(rep.Calls, "model call"), count(last, "turn"), core.ErrInvalid)
	}
	return found, nil
}

// pick returns the conversation with an id, the first one when it is empty.
func pick(sessions []dataset.Session, id string) (dataset.Session, error) {
	if id == "" {
		return sessions[0], nil
	}
	ids := make([]string, 0, len(sessions))
	for _, s := range sessions {
		if s.ID == id {
			return s, nil
		}
		ids = append(ids, s.ID)
	}
	return dataset.Session{}, unknownName("session", id, ids)
}

// explanation is one prompt with the reasons for it.
type explanation struct {
	Session, Arm string
	// Caveat says what the retriever is not.
	Caveat string
	call   experiment.Call
	msgs   []message.Message
}

// number returns the place of an entry in the conversation, from 1, or "" when it is not one of its messages.
func (e explanation) number(entry string) string {
	if i := slices.Index(e.call.IDs, entry); entry != "" && i >= 0 {
		return fmt.Sprintf("#%d", i+1)
	}
	return ""
}

func (e explanation) write(to io.Writer, width int) error {
	w, c := bufio.NewWriter(to), e.call
	fmt.Fprintf(w, "%s, %s: turn %d, model call %d, behind %s\n", e.Session, e.Arm, c.Turn, c.Number, count(c.Behind, "message"))
	if c.Err != nil {
		fmt.Fprintf(w, "no prompt: %v\n", c.Err)
		return w.Flush()
	}
	r := c.Result
	size := fmt.Sprintf("%d of %d tokens (the engine says %d), %s", c.Tokens, c.Budget, r.EstimatedTokens, count(len(r.Messages), "message"))
	if r.Stepped {
		size += "; the window moved in this call"
	}
	if r.CompactionDue {
		size += "; a compaction is due"
	}
	fmt.Fprintf(w, "%s\n\nin the window\n", columns.Hang(size, 2, width))
	table := textsTable("", "reason", "entry", "role", "tokens", "how", "text")
	for i, m := range r.Messages {
		for _, ch := range r.Choices {
			if ch.Message == i && ch.Reason != window.ReasonRecalled {
				table.Add(e.row(i, m, ch)...)
				break
			}
		}
	}
	table.Print(w, width)
	if r.SystemPromptAddition != "" {
		fmt.Fprintf(w, "behind the system prompt: %s\n", preview(r.SystemPromptAddition))
	}
	e.recalled(w, width)
	e.outside(w, width)
	if e.Caveat != "" {
		fmt.Fprintf(w, "note: %s\n", e.Caveat)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
	if r.Degraded != "" {
		fmt.Fprintf(w, "legacy answered: %s\n", r.Degraded)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

func (e explanation) row(i int, m message.Message, ch window.Choice) []string {
	r := e.call.Result
	reason := string(ch.Reason)
	if r.RecallLen > 0 && i >= r.RecallAt && i < r.RecallAt+r.RecallLen {
		reason = string(window.ReasonRecalled)
	}
	var text strings.Builder
	text.WriteString(m.Text())
	for _, c := range m.Calls() {
		text.WriteString(" " + c.Name + "(" + c.Args + ")")
	}
	return []string{fmt.Sprint(i), reason, e.number(ch.Entry), string(m.Role), fmt.Sprint(ch.Tokens), string(ch.Stub), preview(text.String())}
}

// recalled lists what the recall block quotes, and why.
func (e explanation) recalled(w io.Writer, width int) {
	table := textsTable("entry", "score", "found by", "text")
	for _, ch := range e.call.Result.Choices {
		if ch.Reason == window.ReasonRecalled {
			table.Add(e.name(ch.Entry), fmt.Sprintf("%.3f", ch.Score), ch.Source, e.text(ch.Entry))
		}
	}
	if table.Len() > 0 {
		fmt.Fprint(w, "\nrecalled\n")
		table.Print(w, width)
	}
}

// outside lists what is not in the window.
func (e explanation) outside(w io.Writer, width int) {
	table := textsTable("reason", "messages", "entry", "tokens", "text")
	for _, ch := range e.call.Result.Choices {
		if ch.Message < 0 {
			cost := ""
			if ch.Tokens > 0 {
				cost = fmt.Sprint(ch.Tokens)
			}
			table.Add(string(ch.Reason), fmt.Sprint(ch.Count), e.name(ch.Entry), cost, e.text(ch.Entry))
		}
	}
	if table.Len() == 0 {
		fmt.Fprint(w, "\nnothing was left out\n")
		return
	}
	fmt.Fprint(w, "\nleft out\n")
	table.Print(w, width)
}

func (e explanation) name(entry string) string { return cmp.Or(e.number(entry), entry) }

func (e explanation) text(entry string) string {
	if i := slices.Index(e.call.IDs, entry); entry != "" && i >= 0 && i < len(e.msgs) {
		return preview(e.msgs[i].Text())
	}
	return ""
}

// data is the explanation for programs.
func (e explanation) data() map[string]any {
	c := e.call
	out := map[string]any{
		"session": e.Session, "config": e.Arm, "turn": c.Turn, "call": c.Number, "messagesBefore": c.Behind, "budget": c.Budget,
	}
	if c.Err != nil {
		out["error"] = c.Err.Error()
		return out
	}
	out["tokens"], out["result"] = c.Tokens, c.Result
	if e.Caveat != "" {
		out["caveat"] = e.Caveat
	}
	return out
}

// preview is the beginning of a text, on one line, without what could control a terminal.
func preview(text string) string {
	const width = 72
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if r := []rune(text); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return text
}

// textsTable is a table whose last column is the beginning of a text.
func textsTable(names ...string) columns.Table {
	t := columns.Table{}
	for i, name := range names {
		t.Columns = append(t.Columns, columns.Column{Name: name, Left: name != "tokens" && name != "messages" && name != "score", Cut: i == len(names)-1})
	}
	return t
}
