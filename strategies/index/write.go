package index

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
	"github.com/contextengine/contextengine/internal/compacting/inventory"
)

// page is an index in the making.
type page struct {
	*inventory.Inventory
	// messages is the number of entries it stands for, tokens what they cost at rest, first and last when they were made.
	messages, tokens int
	first, last      time.Time
}

// include takes up an earlier index, or a note. Everything is read from its text; what somebody else wrote has less to offer.
func (p *page) include(s core.Summary) {
	p.messages += s.Covers
	if s.Kind != kindIndex {
		return
	}
	head, rest, _ := strings.Cut(s.Text, "\n")
	tokens, first, last := figures(head)
	p.tokens += tokens
	p.span(first, last)
	p.Include(rest)
}

// read takes up the first n entries of c, which leave, and which words those behind them say.
func (p *page) read(ctx context.Context, c core.Compaction, n int) error {
	p.messages += n
	for i := range n {
		p.tokens += c.Entries[i].Tokens
	}
	p.span(compacting.Period(c.Entries[:n]))
	if err := p.Read(ctx, c.Entries[:n]); err != nil {
		return err
	}
	p.Stays(c.Entries[n:])
	return nil
}

// span widens the time that the index speaks of.
func (p *page) span(first, last time.Time) {
	if first.IsZero() {
		return
	}
	if p.first.IsZero() || first.Before(p.first) {
		p.first = first
	}
	if last.After(p.last) {
		p.last = last
	}
}

// timeLayout is how times are shown, in UTC.
const timeLayout = "2006-01-02 15:04"

// The words around the figures of a heading. Indexes of earlier compactions are read back by them.
const (
	opening  = "[Index of "
	counted  = " earlier messages, "
	tokened  = " tokens"
	from     = ", "
	until    = " to "
	stored   = " UTC. They are stored but not shown."
	storedAt = ". They are stored but not shown."
)

// write returns the text of at most limit tokens, and what is recorded with it.
func (x *Compactor) write(p *page, c core.Compaction, limit int) (string, map[string]string) {
	text := p.heading(x.cfg.Hint, limit, c.Count)
	room := limit - c.Count(text) - 1
	lines := p.Lines(int(x.cfg.Sentences*float64(room)), "", c.Count)
	said := strings.Join(lines, "\n")
	if said != "" {
		text += "\n" + said
	}
	row, n := p.Row(room-c.Count(said)-1, text, c.Count)
	if row != "" {
		text += "\n" + row
	}
	for c.Count(text) > limit && n > 0 {
		// Counts of pieces add up to a little less than the whole now and then.
		text = text[:max(strings.LastIndexByte(text, ' '), 0)]
		n--
	}
	if text = compacting.Head(text, limit, c.Count); text == "" {
		text = "…"
	}
	return text, map[string]string{
		"words": strconv.Itoa(n), "sentences": strconv.Itoa(len(lines)), "candidates": strconv.Itoa(p.Len()),
	}
}

// heading says what the index is about; long ones are for long texts only.
func (p *page) heading(hint string, limit int, count core.TokenCounter) string {
	short := opening + strconv.Itoa(p.messages) + counted + strconv.Itoa(p.tokens) + tokened
	long := short + storedAt
	if !p.first.IsZero() {
		long = short + from + p.first.Format(timeLayout) + until + p.last.Format(timeLayout) + stored
	}
	forms := []string{long + "]", short + "]"}
	if hint != "" {
		forms = append([]string{long + " " + hint + "]"}, forms...)
	}
	for _, f := range forms {
		if count(f) <= limit/3 {
			return f
		}
	}
	return short + "]"
}

// figures reads the heading of an index back.
func figures(head string) (tokens int, first, last time.Time) {
	_, rest, ok := strings.Cut(head, counted)
	if !ok {
		return 0, first, last
	}
	number, rest, _ := strings.Cut(rest, tokened)
	tokens, _ = strconv.Atoi(number)
	tokens = max(tokens, 0)
	if rest, ok = strings.CutPrefix(rest, from); !ok {
		return tokens, first, last
	}
	a, rest, _ := strings.Cut(rest, until)
	b, _, _ := strings.Cut(rest, " UTC")
	f, err1 := time.Parse(timeLayout, a)
	l, err2 := time.Parse(timeLayout, b)
	if err1 != nil || err2 != nil {
		return tokens, first, last
	}
	return tokens, f, l
}
