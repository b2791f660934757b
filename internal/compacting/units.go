package compacting

import (
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
)

// Overhead is what a text costs in a prompt beyond its own tokens: the overhead per message, the role, and a margin for a
// label in front of it.
const Overhead = 8

// Unit is a run of entries, From included, To excluded, that goes or stays as a whole.
type Unit struct {
	From, To int
	// Cost is what the entries cost in the window now, in tokens.
	Cost int
}

// Units returns the units of c.Entries that may go, oldest first: they begin with the first entry and cover it
// without gaps as far as no protected entry is touched. A tool call and its results are one unit, also where an entry
// that is no message (a subagent's result) lies between them; every other entry is a unit of its own.
func Units(c core.Compaction) []Unit {
	limit := len(c.Entries) - max(0, c.Protected)
	var units []Unit
	for _, u := range divide(c.Entries) {
		if u.To > limit {
			break
		}
		for i := u.From; i < u.To; i++ {
			u.Cost += CostOf(c, i)
		}
		units = append(units, u)
	}
	return units
}

// divide divides all entries into units without their cost.
func divide(entries []core.Entry) []Unit {
	groups := history.GroupsAround(len(entries), func(i int) message.Message { return entries[i].Message }, func(i int) bool {
		return entries[i].Type == core.TypeSummary || entries[i].Type == core.TypeSubagent
	})
	units := make([]Unit, len(groups))
	for i, g := range groups {
		units[i] = Unit{From: g.From, To: g.To}
	}
	return units
}

// CostOf returns what c.Entries[i] costs in the window now, in tokens.
func CostOf(c core.Compaction, i int) int {
	if i < len(c.Cost) {
		return c.Cost[i]
	}
	return c.Entries[i].Tokens
}

// SummaryCost returns what a summary costs in the window, in tokens.
func SummaryCost(c core.Compaction, s core.Summary) int {
	if s.Tokens > 0 {
		return s.Tokens
	}
	return c.Count(s.Text) + Overhead
}

// IDs returns the ids of the entries of u.
func IDs(c core.Compaction, u Unit) []string {
	ids := make([]string, 0, u.To-u.From)
	for i := u.From; i < u.To; i++ {
		ids = append(ids, c.Entries[i].ID)
	}
	return ids
}

// Enough decides how far a compaction goes. It is asked after each unit that is taken.
type Enough struct {
	forced bool
	left   int
	target int
}

// EnoughFor returns the rule for c: the target must be met and no entry that the window does not show any more may
// stay without a text that stands for it. A forced compaction below its target takes everything that may go.
func EnoughFor(c core.Compaction) Enough {
	left := min(c.Left, len(c.Entries)-max(0, c.Protected))
	return Enough{forced: c.Force && c.Tokens <= c.Target, left: left, target: c.Target}
}

// Met reports whether taking the entries before to, after which the session costs after tokens, is enough.
func (e Enough) Met(to, after int) bool {
	return !e.forced && to >= e.left && after <= e.target
}

// Period returns the times of the oldest and the newest of entries, in UTC; zero when none has a time.
func Period(entries []core.Entry) (first, last time.Time) {
	for i := range entries {
		t := entries[i].Time.UTC()
		if t.IsZero() {
			continue
		}
		if first.IsZero() || t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
	}
	return first, last
}
