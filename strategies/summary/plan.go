package summary

import (
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
)

const (
	// defaultSummaryTokens bounds a text where the caller names no bound.
	defaultSummaryTokens = 2000
	// smallText is what a text may cost however small its source is, shortText what none is shortened below.
	smallText, shortText = 160, 64
	// leastCost is the cost from which on entries are worth a text of their own.
	leastCost = 96
	// summariesShare is the share of the target that summaries may take together.
	summariesShare = 0.4
)

// part is what the model sees in one call: a run of whole units. It becomes a leaf, a summary of raw entries.
type part struct {
	from, to int
	cost     int
	text     string
	tokens   int
	// limit bounds the summary's text, in tokens.
	limit int
}

// plan says what a compaction will do.
type plan struct {
	parts []part
	// most is the number of summaries that may be live at once, room what they may cost together.
	most, room int
	// after is what the session costs then, about.
	after int
}

// plan takes units until the target is met and divides them into parts.
func (w *work) plan() plan {
	p := plan{room: max(int(summariesShare*float64(w.c.Target)), shortText+compacting.Overhead)}
	p.most = min(w.cfg.MaxSummaries, max(p.room/(shortText+compacting.Overhead), 1))
	earlier := 0
	for _, s := range w.c.Summaries {
		earlier += compacting.SummaryCost(w.c, s)
	}
	w.take(&p, earlier)
	w.share(&p, earlier)
	return p
}

// take takes units from the oldest on until the rest is within the target. Summaries that become too many are condensed: they never count for more than
// their room.
func (w *work) take(p *plan, earlier int) {
	enough := compacting.EnoughFor(w.c)
	raw := w.c.Tokens - earlier
	texts, removed := earlier, 0 // what all texts cost, and what was taken
	after := func(more int) int { return raw - removed + min(texts+more, max(p.room, min(earlier, p.room))) }
	if len(w.c.Summaries) < 2 {
		// A single one is not condensed just to make room.
		after = func(more int) int { return raw - removed + max(min(texts+more, p.room), min(earlier, texts)) }
	}
	var cur part
	for i, u := range compacting.Units(w.c) {
		// A session that is within the target once its summaries are condensed loses nothing else.
		if i == 0 && len(w.c.Summaries) > 1 && enough.Met(0, after(0)) {
			break
		}
		text := w.serialise(u)
		n := w.c.Count(text)
		if cur.to > cur.from && cur.tokens+n > w.cfg.ChunkTokens && cur.cost >= leastCost {
			p.parts = append(p.parts, cur)
			texts += w.limit(cur.cost) + compacting.Overhead
			cur = part{}
		}
		if cur.to == cur.from {
			cur = part{from: u.From}
		}
		cur.to = u.To
		cur.text += text
		cur.cost += u.Cost
		cur.tokens += n
		removed += u.Cost
		if cur.cost >= leastCost && enough.Met(u.To, after(w.limit(cur.cost)+compacting.Overhead)) {
			break
		}
	}
	switch {
	case cur.cost >= leastCost:
		p.parts = append(p.parts, cur)
		texts += w.limit(cur.cost) + compacting.Overhead
	case cur.to > cur.from && len(p.parts) > 0:
		// Too little for a text of its own.
		last := &p.parts[len(p.parts)-1]
		last.to, last.text = cur.to, last.text+cur.text
		last.cost += cur.cost
		last.tokens += cur.tokens
	case cur.to > cur.from:
		removed -= cur.cost
	}
	for i := range p.parts {
		if t := &p.parts[i]; t.tokens > w.cfg.ChunkTokens {
			t.text = compacting.Clip(t.text, w.cfg.ChunkTokens, w.c.Count)
			t.tokens = w.c.Count(t.text)
		}
	}
	p.after = after(0)
}

// share gives every part its limit: all texts together have room, as far as they stay useful.
func (w *work) share(p *plan, earlier int) {
	whole := 0
	for i := range p.parts {
		p.parts[i].limit = w.limit(p.parts[i].cost)
		whole += p.parts[i].limit + compacting.Overhead
	}
	room := p.room - earlier
	if len(w.c.Summaries)+len(p.parts) > p.most {
		room = p.room * len(p.parts) / p.most // they are condensed as they come
	}
	if whole <= room {
		return
	}
	for i := range p.parts {
		t := &p.parts[i]
		fair := int(float64(t.limit+compacting.Overhead)*float64(max(room, 0))/float64(whole)) - compacting.Overhead
		t.limit = min(t.limit, max(fair, shortText))
	}
}

// limit bounds the text that stands for entries of this cost: always less than they cost.
func (w *work) limit(cost int) int {
	return min(w.summaryTokens(), max(smallText, int(w.cfg.Ratio*float64(cost))), cost*3/4-compacting.Overhead)
}

// live is a summary of the session as it is now.
type live struct {
	// id is a summary's id, or the ref of one that this compaction made.
	id, text       string
	tokens, covers int
}

func (w *work) living() []live {
	var out []live
	for _, s := range w.c.Summaries {
		out = append(out, live{id: s.ID, text: s.Text, tokens: compacting.SummaryCost(w.c, s), covers: s.Covers})
	}
	return out
}

// crowded returns the run of neighbouring summaries to be condensed next, and what their text may cost; limit is 0 when there is room for
// all. The smallest go together, so that no text is written anew more often than the logarithm of their number.
func (w *work) crowded(all []live, p *plan) (from, to, limit int) {
	total := 0
	for _, l := range all {
		total += l.tokens
	}
	if len(all) <= p.most && total <= p.room {
		return 0, 0, 0
	}
	if len(all) == 1 {
		if all[0].tokens <= w.summaryTokens()+compacting.Overhead {
			return 0, 0, 0
		}
		return 0, 1, w.condensed(all, p, total)
	}
	fewest, last := 0.0, 0
	for i := range all {
		n := w.together(all[i:])
		if n < 2 || i+n == last {
			continue // or a part of the run before it
		}
		covers := 0
		for _, l := range all[i : i+n] {
			covers += l.covers
		}
		if share := float64(covers) / float64(n); last == 0 || share < fewest {
			fewest, from, to = share, i, i+n
		}
		last = i + n
	}
	return from, to, w.condensed(all[from:to], p, total)
}

// together returns how many of these go into one text: Fanout, or as many as one call has room for, but two always have. So every call that is paid for is
// published, and none only prepares another.
func (w *work) together(these []live) int {
	n, tokens := 0, 0
	for n < min(w.cfg.Fanout, len(these)) {
		if tokens += min(these[n].tokens, w.quoteTokens()) + quoteOverhead; tokens > w.cfg.ChunkTokens {
			break
		}
		n++
	}
	return n
}

// condensed bounds the text that stands for summaries; 0 when there is nothing to win. total is what all live ones cost.
func (w *work) condensed(these []live, p *plan, total int) int {
	sum := 0
	for _, l := range these {
		sum += l.tokens
	}
	limit := min(w.summaryTokens(), max(sum/2, smallText), sum*3/4-compacting.Overhead)
	// As much shorter as the others leave room for.
	limit = min(limit, max(p.room-(total-sum)-compacting.Overhead, p.room/p.most-compacting.Overhead, shortText))
	if limit < shortText/2 || limit+compacting.Overhead >= sum {
		return 0
	}
	return limit
}

// worthwhile reports whether a session without anything to take has summaries to be condensed.
func (w *work) worthwhile(p *plan) bool {
	_, _, limit := w.crowded(w.living(), p)
	return limit > 0
}

// text of entries for an audit.
func entriesText(entries []core.Entry) string {
	n := 0
	for i := range entries {
		for _, p := range entries[i].Message.Parts {
			n += len(p.Text) + len(p.Args) + 2
		}
	}
	b := make([]byte, 0, n)
	for i := range entries {
		if entries[i].Hidden() {
			continue
		}
		for _, p := range entries[i].Message.Parts {
			b = append(append(b, p.Text...), '\n')
			for _, t := range compacting.ArgTexts(p.Args) {
				b = append(append(b, t...), '\n')
			}
		}
	}
	return string(b)
}
