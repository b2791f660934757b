package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/experiment/report"
)

// pageCalls is how many calls of a conversation a report shows, spread evenly.
const pageCalls = 60

// comparePage writes the report of a comparison.
func (a *app) comparePage(f compareFlags, command string, c comparison, windows []report.Section) error {
	var shares []string
	for _, b := range c.Budgets {
		shares = append(shares, thousands(b))
	}
	r := report.Report{
		Title:    fmt.Sprintf("Comparison of %d configurations", len(c.Arms)),
		Subtitle: strings.Join(c.Arms, " against ") + ", over " + count(c.Conversations, "conversation") + ".",
		Facts: []report.Fact{
			{Name: "Conversations", Value: strconv.Itoa(c.Conversations)}, {Name: "Budgets, tokens", Value: strings.Join(shares, ", ")},
			{Name: "Price of a cached token", Value: fmt.Sprint(f.cachePrice)}, {Name: "Seed", Value: fmt.Sprint(f.seed)},
			{Name: "Program", Value: revision()}, {Name: "Command", Value: command},
		},
	}
	// What a person takes in first, then what it rests on.
	r.Sections = append(r.Sections, glance(c), bars(c, compareCharts[0]), verdicts(c))
	for _, chart := range compareCharts[1:] {
		r.Sections = append(r.Sections, bars(c, chart))
	}
	r.Sections = append(r.Sections, latency(c), figuresTable(c))
	if len(c.Identifiers) > 0 {
		r.Sections = append(r.Sections, identifierSections(c)...)
	}
	r.Sections = append(r.Sections, windows...)
	return a.writePage(f.page(), r)
}

// writePage writes a report.
func (a *app) writePage(out outFile, r report.Report) error {
	return a.save(out, func(w io.Writer) error {
		_, err := r.WriteTo(w)
		return err
	})
}

// windows replays one conversation again and shows the windows of its calls, and its last turn under the first configuration beside each other one.
func (a *app) windows(ctx context.Context, f compareFlags, sessions []dataset.Session, arms []experiment.Arm, budget int, counter core.TokenCounter) ([]report.Section, error) {
	chosen := sessions[0]
	for _, s := range sessions {
		if f.session == s.Name() {
			chosen = s
			break
		}
		if f.session == "" && len(s.Messages) > len(chosen.Messages) {
			chosen = s
		}
	}
	if f.session != "" && chosen.Name() != f.session {
		var names []string
		for _, s := range sessions {
			names = append(names, s.Name())
		}
		return nil, unknownName("conversation", f.session, names)
	}
	calls := 0
	for _, m := range chosen.Messages {
		if m.Role == message.Assistant {
			calls++
		}
	}
	every := max(calls/pageCalls, 1)
	var out []report.Section
	var last []report.Turn
	for _, arm := range arms {
		section := report.WindowComposition{
			Title:   "The window under " + arm.Name,
			Caption: fmt.Sprintf("%s at a budget of %s tokens: what is in each prompt and why, what it costs, and what is out.", chosen.Name(), thousands(budget)),
		}
		turn := report.Turn{Arm: arm.Name, Budget: budget}
		watch := func(call experiment.Call) bool {
			if call.Err != nil {
				return ctx.Err() == nil
			}
			lookup := lookupIn(chosen, call.IDs)
			if call.Number%every == 0 {
				section.Calls = append(section.Calls, report.WindowFrom(call.Number, call.Turn, call.Budget, call.Result, lookup))
			}
			turn.Result, turn.IDs, turn.Lookup = call.Result, slices.Clone(call.IDs), lookup
			return ctx.Err() == nil
		}
		_, err := experiment.Replay(ctx, experiment.Spec{Session: chosen, Arm: arm, Budget: budget, Counter: counter, Options: experiment.Options{Watch: watch, Sample: -1}})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", chosen.Name(), arm.Name, err)
		}
		if len(section.Calls) > 0 {
			out = append(out, section)
			last = append(last, turn)
		}
	}
	for _, turn := range last[min(len(last), 1):] {
		title := "The last turn of " + chosen.Name() + ", side by side"
		if len(last) > 2 {
			title += ": " + turn.Arm
		}
		out = append(out, report.CompareTurns(title, last[0], turn))
	}
	return out, nil
}

// lookupIn finds the messages of a conversation by the ids that an engine gave them.
func lookupIn(s dataset.Session, ids []string) report.Lookup {
	at := make(map[string]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	return func(entry string) (message.Message, bool) {
		i, ok := at[entry]
		if !ok || i >= len(s.Messages) {
			return message.Message{}, false
		}
		return s.Messages[i], true
	}
}
