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

// part is what the model sees in one call: a run of whole units.
type part struct {
	from, to int
	cost     int
	text     string
	tokens   int
}

// leaf becomes one summary. It has one part, or neighbouring ones whose texts are merged.
type leaf struct {
	parts []part
	cost  int
	// limit bounds the summary's text, in tokens.
	limit int
}

// plan says what a compaction will do.
type plan struct {
	leaves []leaf
	// condense are the earlier summaries to be merged into one of at most condenseLimit tokens.
	condense      []core.Summary
	condenseLimit int
	// after is what the session costs then, at most.
	after int
}

func (w *work) plan() plan {
	c := w.c
	var earlier int
	for _, s := range c.Summaries {
		earlier += compacting.SummaryCost(c, s)
	}
	condensed := w.condensedLimit(earlier)
	p := w.take(c.Tokens)
	crowded := len(c.Summaries)+len(p.leaves) > w.cfg.MaxSummaries ||
		float64(earlier+p.spent()) > summariesShare*float64(c.Target) && len(p.leaves) > 0 ||
		p.after > c.Target
	tooLong := len(c.Summaries) == 1 && earlier > w.summaryTokens()+compacting.Overhead
	if condensed > 0 && (crowded && len(c.Summaries) > 1 || tooLong) {
		saved := earlier - condensed - compacting.Overhead
		// With the room that is won fewer entries may have to go.
		p = w.take(c.Tokens - saved)
		p.condense, p.condenseLimit = c.Summaries, condensed
		earlier -= saved
	}
	room := int(summariesShare*float64(c.Target)) - earlier
	if over := p.after - c.Target; over > 0 {
		room = min(room, p.spent()-over)
	}
	p.shorten(room)
	return p
}

// condensedLimit bounds the text that stands for all earlier summaries; 0 when there is nothing to win.
func (w *work) condensedLimit(earlier int) int {
	limit := min(w.summaryTokens(), max(earlier/2, smallText), earlier*3/4-compacting.Overhead)
	if limit < shortText/2 {
		return 0
	}
	return limit
}

// take takes units from the oldest on until the rest of tokens is within the target.
func (w *work) take(tokens int) plan {
	enough := compacting.EnoughFor(w.c)
	units := compacting.Units(w.c)
	var parts []part
	var cur part
	spent, removed := 0, 0 // of closed parts; of all
	for i, u := range units {
		// A session that is within the target once its summaries are condensed loses nothing else.
		if i == 0 && enough.Met(0, tokens) {
			break
		}
		text := w.serialise(u)
		n := w.c.Count(text)
		if cur.to > cur.from && cur.tokens+n > w.cfg.ChunkTokens && cur.cost >= leastCost {
			parts = append(parts, cur)
			spent += w.limit(cur.cost) + compacting.Overhead
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
		if cur.cost >= leastCost && enough.Met(u.To, tokens-removed+spent+w.limit(cur.cost)+compacting.Overhead) {
			break
		}
	}
	switch {
	case cur.cost >= leastCost:
		parts = append(parts, cur)
	case cur.to > cur.from && len(parts) > 0:
		// Too little for a text of its own.
		last := &parts[len(parts)-1]
		last.to, last.text = cur.to, last.text+cur.text
		last.cost += cur.cost
		last.tokens += cur.tokens
	}
	for i := range parts {
		if parts[i].tokens > w.cfg.ChunkTokens {
			parts[i].text = compacting.Clip(parts[i].text, w.cfg.ChunkTokens, w.c.Count)
			parts[i].tokens = w.c.Count(parts[i].text)
		}
	}
	p := plan{leaves: w.leaves(parts), after: tokens}
	for _, l := range p.leaves {
		p.after -= l.cost
	}
	p.after += p.spent()
	return p
}

// leaves spreads parts over at most MaxSummaries summaries.
func (w *work) leaves(parts []part) []leaf {
	var out []leaf
	each := (len(parts) + w.cfg.MaxSummaries - 1) / w.cfg.MaxSummaries
	for len(parts) > 0 {
		n := min(each, len(parts))
		l := leaf{parts: parts[:n:n]}
		for _, p := range l.parts {
			l.cost += p.cost
		}
		l.limit = w.limit(l.cost)
		out = append(out, l)
		parts = parts[n:]
	}
	return out
}

// limit bounds the text that stands for entries of this cost: always less than they cost.
func (w *work) limit(cost int) int {
	return min(w.summaryTokens(), max(smallText, int(w.cfg.Ratio*float64(cost))), cost*3/4-compacting.Overhead)
}

// spent returns what the texts of p cost at most.
func (p *plan) spent() int {
	n := 0
	for _, l := range p.leaves {
		n += l.limit + compacting.Overhead
	}
	return n
}

// shorten lowers the limits so that all texts have room, as far as they stay useful.
func (p *plan) shorten(room int) {
	before := p.spent()
	if before <= room {
		return
	}
	for i := range p.leaves {
		l := &p.leaves[i]
		share := int(float64(l.limit+compacting.Overhead)*float64(max(room, 0))/float64(before)) - compacting.Overhead
		l.limit = min(l.limit, max(share, shortText))
	}
	p.after -= before - p.spent()
}
