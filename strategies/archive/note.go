package archive

import (
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
)

const (
	// kindNote is the Kind of the summaries made here.
	kindNote = "note"
	// timeLayout is how times are shown, in UTC.
	timeLayout = "2006-01-02 15:04"
)

// The words around the figures of a note. Notes of earlier compactions are read back by them.
const (
	opening = "["
	counted = " earlier messages are stored but not shown"
	from    = ", from "
	until   = " to "
	closing = " UTC"
)

// note is what a note says.
type note struct {
	messages    int
	first, last time.Time
}

// text writes n within c.SummaryTokens, where that is set: without the hint, and then without the times, when they have no room.
func (n note) text(c core.Compaction, hint string) string {
	short := opening + strconv.Itoa(n.messages) + counted
	long := short
	if !n.first.IsZero() {
		long += from + n.first.Format(timeLayout) + until + n.last.Format(timeLayout) + closing
	}
	forms := []string{long + ".]", short + ".]"}
	if hint != "" {
		forms = append([]string{long + ". " + hint + "]"}, forms...)
	}
	if c.SummaryTokens <= 0 {
		return forms[0]
	}
	limit := c.SummaryTokens - min(compacting.Overhead, c.SummaryTokens/2)
	for _, f := range forms {
		if c.Count(f) <= limit {
			return f
		}
	}
	if head := compacting.Head(short, limit, c.Count); head != "" {
		return head
	}
	return "…"
}

// add counts entries made between first and last; zero times say nothing.
func (n *note) add(messages int, first, last time.Time) {
	n.messages += messages
	if first.IsZero() {
		return
	}
	if n.first.IsZero() || first.Before(n.first) {
		n.first = first
	}
	if last.After(n.last) {
		n.last = last
	}
}

// include adds an earlier note. Its times are read from its text; a note that somebody else wrote has none to offer.
func (n *note) include(s core.Summary) {
	first, last := period(s.Text)
	n.add(s.Covers, first, last)
}

func period(text string) (first, last time.Time) {
	_, rest, ok := strings.Cut(text, counted+from)
	if !ok {
		return first, last
	}
	a, rest, ok1 := strings.Cut(rest, until)
	b, _, ok2 := strings.Cut(rest, closing)
	first, err1 := time.Parse(timeLayout, a)
	last, err2 := time.Parse(timeLayout, b)
	if !ok1 || !ok2 || err1 != nil || err2 != nil {
		return time.Time{}, time.Time{}
	}
	return first, last
}
