package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// plainText is all that an entry says, for readers: text, calls with their arguments, results, and what images are.
func plainText(entry *core.Entry) string {
	if len(entry.Message.Parts) == 1 && entry.Message.Parts[0].Kind == message.Text {
		return entry.Message.Parts[0].Text
	}
	var b strings.Builder
	for i := range entry.Message.Parts {
		p := &entry.Message.Parts[i]
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		switch p.Kind {
		case message.ToolCall:
			b.WriteString("call " + p.Name + " " + p.Args)
		case message.Image, message.Other:
			writeMedia(&b, p)
		default:
			b.WriteString(p.Text)
			for _, in := range message.Inside(*p) {
				b.WriteByte('\n')
				writeMedia(&b, &in)
			}
		}
	}
	return b.String()
}

// writeMedia says what a block is and, of a document that is text, what it holds. Anything else is no text: it stays in the store.
func writeMedia(b *strings.Builder, p *message.Part) {
	m, _ := message.MediaOf(*p)
	b.WriteString("(" + m.Kind)
	if s := m.String(); s != "" {
		b.WriteString(": " + s)
	}
	if m.Text == "" {
		b.WriteString("; stored whole, its data is no text")
	}
	b.WriteByte(')')
	for _, text := range []string{p.Text, m.Text} {
		if text != "" {
			b.WriteString(" " + text)
		}
	}
}

// bytesFor estimates how many bytes of an entry's text cost so many tokens, the citation included.
func bytesFor(entry *core.Entry, text string, tokens int) int {
	tokens -= citationCost
	if entry.Tokens <= tokens || len(text) == 0 {
		return len(text)
	}
	return max(int(float64(max(tokens, 0))*float64(len(text))/float64(entry.Tokens)*0.9), 32)
}

// citationCost is about what the line in front of a quotation costs, in tokens.
const citationCost = 16

// answerWriter writes quoted entries as long as there is room.
type answerWriter struct {
	e *Engine
	// to is the session that is answered.
	to    core.SessionID
	b     strings.Builder
	found []Found
	room  int // tokens
}

// add quotes an entry. It returns false, and adds nothing, when there is no room; the text is shortened before that.
func (w *answerWriter) add(entry *core.Entry, text string, whole bool, score float64) bool {
	for {
		block := quoted(w.to, entry, text)
		if !whole {
			block = strings.TrimSuffix(block, "\n") + " ...\n"
		}
		cost := w.e.gauge.count(block)
		if cost <= w.room {
			w.room -= cost
			w.b.WriteString(block)
			w.found = append(w.found, Found{
				ID: entry.ID, Session: entry.Session, Turn: entry.Turn, Seq: entry.Seq, Role: entry.Role, Type: entry.Type, Time: entry.Time,
				Tokens: entry.Tokens, Excerpt: text, Whole: whole, Score: score,
			})
			return true
		}
		if len(text) < 64 {
			return false
		}
		text, whole = window.CutRune(text, len(text)*w.room/(cost+1)*9/10), false
	}
}

// Expand implements Recaller. An id that the session does not reach is ErrNotFound.
func (e *Engine) Expand(ctx context.Context, req ExpandRequest) (_ ExpandResult, err error) {
	ctx, end := e.begin(ctx, "Expand", req.Session)
	defer func() { end(err) }()
	req.ID = strings.TrimPrefix(strings.TrimSpace(req.ID), "#")
	switch {
	case req.ID == "":
		return ExpandResult{}, invalid("expand", "id", "give the id of an entry or a summary, as citations name it")
	case req.Offset < 0:
		return ExpandResult{}, invalid("expand", "offset", "must be the next of the page before")
	case req.Before < 0 || req.Before > MaxFound || req.After < 0 || req.After > MaxFound:
		return ExpandResult{}, invalid("expand", "before", fmt.Sprintf("before and after must be 0 to %d", MaxFound))
	}
	tokens, err := answerTokens("expand", req.Tokens)
	if err != nil {
		return ExpandResult{}, err
	}
	r, err := e.reachOf(ctx, "expand", req.Session)
	if err != nil {
		return ExpandResult{}, err
	}
	entry, err := r.reached(ctx, req.ID)
	if errors.Is(err, core.ErrNotFound) { // a mistyped id is nobody's failure
		return ExpandResult{}, fmt.Errorf("core: expand %q in %q: %w", req.ID, req.Session, err)
	}
	if err != nil {
		return ExpandResult{}, e.failed(ctx, "store", "expand", fmt.Errorf("core: expand %q in %q: %w", req.ID, req.Session, err))
	}
	w := answerWriter{e: e, to: req.Session, room: tokens}
	var res ExpandResult
	switch {
	case entry.Type == core.TypeSummary:
		res, err = r.expandSpans(ctx, spansOf(entry), req.Offset, &w)
	case req.Before > 0 || req.After > 0:
		around := core.Span{From: max(entry.Seq-int64(req.Before), 0), To: entry.Seq + int64(req.After) + 1}
		if res, err = r.expandSpans(ctx, []core.Span{around.Owned(entry.SessionID())}, req.Offset, &w); err == nil {
			res.Total, err = r.shownOf(ctx, around.Owned(entry.SessionID()))
		}
	default:
		res, err = expandEntry(&entry, req.Offset, &w)
	}
	if err != nil {
		return ExpandResult{}, e.failed(ctx, "store", "expand", fmt.Errorf("core: expand %q in %q: %w", req.ID, req.Session, err))
	}
	res.Found, res.Text = w.found, w.b.String()
	res.Tokens = e.gauge.count(res.Text)
	return res, nil
}

// reached reads an entry that the session may see, by its id or, of the session itself, by its position.
func (r *reach) reached(ctx context.Context, id string) (core.Entry, error) {
	if seq, err := strconv.ParseInt(id, 10, 64); err == nil && seq >= 0 && seq < math.MaxInt64 {
		entry, err := core.First(ctx, r.e.store, core.ScanQuery{Scope: r.session.Scope(), FromSeq: seq, ToSeq: seq + 1})
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return core.Entry{}, err
		}
		if err == nil && r.holds(&entry) {
			return entry, nil
		}
	}
	for _, scope := range r.scopes { // among them are those of all entries on the path, see expire
		got, err := r.e.store.Get(ctx, scope, []string{id})
		if err == nil && r.holds(&got[0]) {
			return got[0], nil
		}
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return core.Entry{}, err
		}
	}
	return core.Entry{}, core.ErrNotFound
}

// expandEntry shows a page of one entry's text.
func expandEntry(entry *core.Entry, offset int, w *answerWriter) (ExpandResult, error) {
	text := plainText(entry)
	res := ExpandResult{Total: len(text)}
	if offset > len(text) {
		return res, invalid("expand", "offset", fmt.Sprintf("the entry has %d bytes", len(text)))
	}
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	rest := text[offset:]
	page := window.CutRune(rest, bytesFor(entry, text, w.room))
	if !w.add(entry, page, len(page) == len(text), 0) {
		return res, invalid("expand", "tokens", "not even the beginning fits: ask for more")
	}
	shown := w.found[len(w.found)-1].Excerpt
	if len(shown) == 0 && len(rest) > 0 {
		return res, invalid("expand", "tokens", "not even the beginning fits: ask for more")
	}
	if next := offset + len(shown); next < len(text) {
		res.Next = next
	}
	return res, nil
}

// shownOf counts the entries of a neighbourhood: a session may end inside it, and not all that it holds may be shown.
func (r *reach) shownOf(ctx context.Context, sp core.Span) (int, error) {
	n := 0
	q := core.ScanQuery{Scope: sp.Session.Scope(), FromSeq: sp.From, ToSeq: sp.To, Limit: min(sp.Len(), core.MaxPage)}
	for {
		page, err := r.e.store.Scan(ctx, q)
		for i := range page.Entries {
			if r.holds(&page.Entries[i]) && page.Entries[i].Type != core.TypeSummary {
				n++
			}
		}
		if q.Cursor = page.Next; err != nil || q.Cursor == "" {
			return n, err
		}
	}
}

// expandSpans shows the entries of spans from the offset-th on, as many as fit.
func (r *reach) expandSpans(ctx context.Context, spans []core.Span, offset int, w *answerWriter) (ExpandResult, error) {
	var res ExpandResult
	for _, sp := range spans {
		res.Total += sp.Len()
	}
	n, end, full := 0, 0, false // n is how many entries are on the pages up to here, end how many the spans up to one hold
	for _, sp := range spans {
		begin := end
		if end += sp.Len(); end <= offset {
			continue
		}
		q := core.ScanQuery{Scope: sp.Session.Scope(), FromSeq: sp.From + int64(max(offset-begin, 0)), ToSeq: sp.To, Limit: 64}
		for !full {
			page, err := r.e.store.Scan(ctx, q)
			if err != nil {
				return res, err
			}
			for i := range page.Entries {
				entry := &page.Entries[i]
				if r.holds(entry) && entry.Type != core.TypeSummary {
					text := plainText(entry)
					cut := window.CutRune(text, bytesFor(entry, text, max(w.room/2, 200)))
					if w.room < citationCost*2 || !w.add(entry, cut, len(cut) == len(text), 0) {
						full = true
						break
					}
				}
				n = begin + int(entry.Seq-sp.From) + 1
			}
			if page.Next == "" {
				break
			}
			q.Cursor = page.Next
		}
		if full {
			break
		}
	}
	if full {
		if n <= offset {
			return res, invalid("expand", "tokens", "not even one entry fits: ask for more")
		}
		res.Next = n
	}
	return res, nil
}

// Describe implements Recaller. It reads two entries, whatever the session's length, and those that the window shows shortened.
func (e *Engine) Describe(ctx context.Context, req DescribeRequest) (_ DescribeResult, err error) {
	ctx, end := e.begin(ctx, "Describe", req.Session)
	defer func() { end(err) }()
	for again := true; ; again = false {
		r, err := e.reachOf(ctx, "describe", req.Session)
		if err != nil {
			return DescribeResult{}, err
		}
		res, err := e.describe(ctx, &r.view)
		if again && errors.Is(err, errMissing) && e.reread(ctx, req.Session) == nil {
			continue
		}
		return res, e.failed(ctx, "store", "describe", err)
	}
}

func (e *Engine) describe(ctx context.Context, v *core.View) (DescribeResult, error) {
	d := DescribeResult{
		Session: v.Session, Entries: v.Len(), Turns: v.Turns, Shown: v.Len() - max(v.Start, v.Lead, 0) + v.Lead, Left: v.Left(),
		Epoch: v.Epoch, Budget: v.Budget, Arm: v.Arm,
	}
	for _, sum := range v.Summaries {
		d.Summaries = append(d.Summaries, SummaryInfo{
			ID: sum.ID, Kind: sum.Kind, Covers: sum.Covers, Tokens: sum.Tokens, Time: sum.Time, Of: ownSpans(sum.Of), Head: window.CutRune(window.FirstLine(sum.Text), 160),
		})
	}
	if n := v.Len(); n > 0 {
		for _, at := range []int{0, n - 1} {
			items, err := e.reader.read(ctx, v, at, at+1)
			if err != nil {
				return DescribeResult{}, err
			}
			if at == 0 {
				d.First = items[0].entry.Time
			}
			d.Last = items[0].entry.Time
		}
	}
	stubs, err := e.reader.shortened(ctx, v)
	if err != nil {
		return DescribeResult{}, err
	}
	d.Shortened = len(stubs)
	d.Text = d.text() + shortenedText(stubs)
	d.Tokens = e.gauge.count(d.Text)
	return d, nil
}

func (d DescribeResult) text() string {
	var b strings.Builder
	day := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }
	fmt.Fprintf(&b, "%d messages in %d turns", d.Entries, d.Turns)
	if !d.First.IsZero() {
		fmt.Fprintf(&b, ", %s to %s", day(d.First), day(d.Last))
	}
	fmt.Fprintf(&b, "; %d shown (%d of them shortened), %d stored but not shown.\n", d.Shown, d.Shortened, d.Left)
	for _, s := range d.Summaries {
		fmt.Fprintf(&b, "- %s #%s of %d messages, %d tokens, %s:\n%s\n", cmp.Or(s.Kind, "summary"), s.ID, s.Covers, s.Tokens, day(s.Time), window.Quote(s.Head))
	}
	return b.String()
}

// ownSpans returns spans that a caller may write to.
func ownSpans(spans []core.Span) []core.Span {
	out := slices.Clone(spans)
	for i := range out {
		if owner := out[i].Session; owner != nil {
			id := *owner
			out[i].Session = &id
		}
	}
	return out
}
