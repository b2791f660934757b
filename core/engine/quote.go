package engine

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/internal/words"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// quotation is a candidate as it would stand in the block.
type quotation struct {
	*core.Candidate
	text string
	cost int
	// part says that it is not all of the entry.
	part bool
}

// quoteRoom is what an allowance leaves for the quotations themselves.
func (s *session) quoteRoom(allowance int) int {
	return allowance - s.cachedCount(recallOpen) - s.cachedCount(recallClose) - messageOverhead - s.cachedCount(string(message.User)) - 2
}

// packing is a block while it is filled. Quotations and the lines of days begin with "[" and end with a newline: what they cost together is the sum of what
// they cost alone.
type packing struct {
	s *session
	// room is what is left for quotations, in tokens.
	room int
	// days have their line in the block.
	days map[string]bool
}

// cost is what a quotation takes of the room: its own cost, and that of the line of a day that has none yet.
func (p *packing) cost(q *quotation) int {
	if line := dayLine(&q.Entry); !p.days[line] {
		return q.cost + p.s.cachedCount(line)
	}
	return q.cost
}

// take adds a quotation if there is room for it.
func (p *packing) take(q *quotation) bool {
	cost := p.cost(q)
	if cost > p.room {
		return false
	}
	p.room -= cost
	p.days[dayLine(&q.Entry)] = true
	return true
}

// packing begins a block for an allowance, in tokens.
func (s *session) packing(allowance int) *packing {
	return &packing{s: s, room: s.quoteRoom(allowance), days: make(map[string]bool)}
}

// choose packs candidates in rank order, skipping what does not fit. It adds to seen what it takes.
func (f *frame) choose(c *call, q *core.Query, candidates []core.Candidate, seen map[string]bool, pack *packing) []quotation {
	in, wordings := make([]quotation, 0, len(candidates)), words.Wordings{Seed: f.e.gauge.seed}
	floor := math.Inf(-1)
	prompt := strings.TrimSpace(c.req.Prompt)
	for i := range candidates {
		cand := &candidates[i]
		id, fp := cand.Entry.ID, cand.Entry.Fingerprint
		// What says the same as something in the window, or as a better candidate, says nothing new.
		if seen[id] || seen[fp] || !f.mayRecall(q, &cand.Entry) {
			continue
		}
		seen[id], seen[fp] = true, fp != ""
		text, part := cand.Text, cand.Text != ""
		if part && !quotes(strings.ToValidUTF8(cand.Entry.Text(), ""), strings.ToValidUTF8(text, "")) {
			c.warnings = append(c.warnings, "retriever: what it quotes of "+id+" is not what was said; the entry itself is quoted")
			part = false
		}
		if !part || cand.Entry.Tokens <= f.e.cfg.Recall.Whole {
			if whole := cand.Entry.Text(); !part || len(whole) > len(text) {
				text, part = whole, false
			}
		}
		said, handed := cand.Entry.Message.Text(), seen[f.wordsOf(&cand.Entry)]
		if text = strings.TrimSpace(text); text == "" || text == prompt || handed && text == strings.TrimSpace(said) {
			continue
		}
		if math.IsInf(floor, -1) {
			floor = f.e.cfg.floor(cand.Score, f.v.Budget)
		}
		if cand.Score < floor {
			break // they come best first
		}
		// Counting is most of what recall costs: what surely does not fit is not counted.
		if pack.room < minQuote || cand.Text == "" && f.e.cfg.quoteFloor(&cand.Entry) > pack.room {
			c.leaveOut(cand, min(cand.Entry.Tokens, f.e.cfg.Recall.Quote))
			continue
		}
		short := f.e.cfg.shorten(text, &cand.Entry)
		quote := quotation{Candidate: cand, text: quotedBehind("", f.s.id, &cand.Entry, short), part: part || len(short) < len(text)}
		// What a subagent handed back also stands in its own session, where more than the text may belong to it.
		same := func(better quotation) bool {
			return better.Entry.Role == quote.Entry.Role && better.Entry.SessionID() != quote.Entry.SessionID() && better.Entry.Message.Text() == quote.Entry.Message.Text()
		}
		if quotedAlready(&f.v, quote.text) || slices.ContainsFunc(in, same) || wordings.Again(text) {
			continue
		}
		// Blocks of earlier turns may quote the words from another entry, which has nothing else to it.
		var elsewhere []string
		if said != text && !window.Blank(said) && (handed || quotedAlready(&f.v, quotedBehind("", f.s.id, &cand.Entry, said))) {
			elsewhere, quote.part = []string{strings.TrimSpace(window.Escape(said))}, true
		}
		rest := newParts(&f.v, &cand.Entry, quote.text, short, elsewhere)
		if rest == "" {
			continue
		}
		if rest != short {
			quote.text, quote.part = quotedBehind("", f.s.id, &cand.Entry, rest), true
		}
		if quote.cost = f.s.cachedCount(quote.text); !pack.take(&quote) {
			c.leaveOut(cand, pack.cost(&quote))
			continue
		}
		in = append(in, quote)
	}
	return in
}

// quotes reports whether a text is what another one says: a passage of it, or several with something between them.
func quotes(whole, text string) bool {
	if strings.Contains(whole, text) {
		return true
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		at := strings.Index(whole, word)
		if at < 0 {
			return false
		}
		whole = whole[at+len(word):]
	}
	return true
}

// quotedAlready reports whether a block of an earlier turn says the same as a quotation, of this entry or of another one. What a subagent handed back also stands
// in its own session, where more than the text may belong to it: a quotation from another session that goes on says it, too.
func quotedAlready(v *core.View, quotation string) bool {
	head, said, _ := strings.Cut(quotation, quoteHeadEnd)
	own, text := citesOwn(head), quoteHeadEnd+said
	return slices.ContainsFunc(v.Kept, func(r core.Recall) bool {
		for from := 0; ; from++ {
			at := strings.Index(r.Text[from:], text)
			if at < 0 {
				return false
			}
			from += at
			behind := r.Text[from+len(text):]
			if strings.HasPrefix(behind, "[") || strings.HasPrefix(behind, recallClose) {
				return true
			}
			if above := r.Text[strings.LastIndexByte(r.Text[:from], '\n')+1 : from]; strings.HasPrefix(above, "[") && (!own || !citesOwn(above)) {
				return true
			}
		}
	})
}

// citesOwn reports whether the line above a quotation names an entry of the session that it stands in.
func citesOwn(head string) bool {
	id := head[strings.LastIndexByte(head, '#')+1:]
	return strings.Trim(id, "0123456789") == ""
}

// elided stands between parts of a text.
const elided = "\n...\n"

// newParts returns what a quotation says of parts of an entry that no block of an earlier turn quotes, of it or elsewhere; "" when that is nothing. text is what it quotes.
func newParts(v *core.View, entry *core.Entry, quotation, text string, elsewhere []string) string {
	before := append(quotedBefore(v, entry.ID, strings.TrimSuffix(quotation, quotedText(quotation))), elsewhere...)
	if len(before) == 0 {
		return text
	}
	type span struct{ from, to int }
	whole, said := window.Escape(entry.Text()), make([]span, 0, len(before))
	for _, part := range before {
		if at := strings.Index(whole, part); at >= 0 {
			said = append(said, span{at, at + len(part)})
		}
	}
	slices.SortFunc(said, func(a, b span) int { return a.from - b.from })
	var left []string
	for part := range strings.SplitSeq(window.Escape(text), elided) {
		part = strings.TrimSpace(part)
		from := strings.Index(whole, part)
		if from < 0 {
			left = append(left, part) // no passage as it stands
			continue
		}
		to := from + len(part)
		for _, s := range said {
			if s.from < to && s.to > from {
				left = append(left, whole[from:max(s.from, from)])
				from = min(s.to, to)
			}
		}
		left = append(left, whole[from:to])
	}
	for i := range left {
		left[i] = strings.TrimSpace(left[i])
	}
	return strings.Join(slices.DeleteFunc(left, window.Blank), elided)
}

// quotedBefore returns the parts of an entry that blocks of earlier turns quote below this line.
func quotedBefore(v *core.View, id, line string) (parts []string) {
	for i := range v.Kept {
		r := &v.Kept[i]
		if !slices.ContainsFunc(r.Items, func(it core.RecallItem) bool { return it.ID == id }) {
			continue
		}
		_, rest, _ := strings.Cut(r.Text, "\n"+line)
		var said []string
		for quoted := range strings.Lines(rest) {
			text, is := strings.CutPrefix(quoted, "> ")
			if !is {
				break
			}
			said = append(said, text)
		}
		for part := range strings.SplitSeq(strings.Join(said, ""), elided) {
			if part = strings.TrimSpace(part); part != "" {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// quoteHeadEnd ends the line above a quotation's text, which names the entry.
const quoteHeadEnd = "]\n"

// quotedText is what a quotation quotes.
func quotedText(quotation string) string {
	_, text, _ := strings.Cut(quotation, quoteHeadEnd)
	return text
}

// build writes the block, in the order in which things were said.
func (f *frame) build(r *core.Recall, q *core.Query, in []quotation) {
	if len(in) == 0 {
		return
	}
	size := len(recallOpen) + len(recallClose)
	for i := range in {
		size += len(in[i].text) + len("[2006-01-02]\n")
	}
	slices.SortStableFunc(in, func(a, b quotation) int { return chronological(&a.Entry, &b.Entry) })
	var b strings.Builder
	b.Grow(size)
	b.WriteString(recallOpen)
	r.Items = make([]core.RecallItem, 0, len(in))
	pack := f.s.packing(math.MaxInt32)
	for _, quote := range in {
		if line := dayLine(&quote.Entry); !pack.days[line] {
			b.WriteString(line)
		}
		pack.take(&quote)
		b.WriteString(quote.text)
		r.Items = append(r.Items, core.RecallItem{ID: quote.Entry.ID, Score: quote.Score, Source: quote.Source, Part: quote.part})
		boundRecall(r, &f.v, q.Scope, quote.Entry.SessionID())
	}
	b.WriteString(recallClose)
	// It was counted quotation by quotation; counting it again as a whole would take as long as all the rest of the call.
	r.Text, r.Tokens = b.String(), math.MaxInt32-pack.room
}

// boundRecall ends the block with the grants that it needs.
func boundRecall(r *core.Recall, v *core.View, scope core.Scope, owner core.SessionID) {
	if scope.Contains(owner) {
		return
	}
	for _, g := range v.Grants {
		if !g.Search && g.Scope.Contains(owner) && (r.Until.IsZero() || g.Until.Before(r.Until)) {
			r.Until = g.Until
		}
	}
}

// quoteFloor is less than what a quotation of all of an entry costs, in tokens; 0 when that is not known without counting.
func (c *Config) quoteFloor(entry *core.Entry) int {
	if entry.Tokens > c.Recall.Quote || len(entry.Message.Parts) != 1 || entry.Message.Parts[0].Kind != message.Text {
		return 0
	}
	return (entry.Tokens - messageOverhead - usualRole) * 9 / 10
}

// minQuote is the smallest room worth looking for a quotation that fits it, in tokens.
const minQuote = 12

func (c *call) leaveOut(cand *core.Candidate, cost int) {
	c.outAllowance = append(c.outAllowance, window.Choice{
		Message: -1, Entry: cand.Entry.ID, Count: 1, Reason: window.OutAllowance, Tokens: cost, Score: cand.Score, Source: cand.Source,
	})
}

// shorten bounds a quotation. What the whole entry costs is known, so the length that fits is estimated instead of counted.
func (c *Config) shorten(text string, entry *core.Entry) string {
	limit := c.Recall.Quote
	if entry.Tokens <= limit {
		return text
	}
	whole := len(entry.Text())
	if whole == 0 {
		return text
	}
	size := int(float64(limit) * float64(whole) / float64(entry.Tokens))
	if len(text) <= size {
		return text
	}
	return window.HeadTail(text, max(size, 16), elided)
}

// cachedCount counts a text that is likely to be counted again.
func (s *session) cachedCount(text string) int {
	key := maphash.String(s.e.gauge.seed, text)
	if n, ok := s.costs[key]; ok {
		return n
	}
	n := s.e.gauge.count(text)
	s.rememberCost(key, n)
	return n
}

func chronological(a, b *core.Entry) int {
	if c := a.Time.Compare(b.Time); c != 0 {
		return c
	}
	if a.Session == b.Session {
		return int(a.Seq - b.Seq)
	}
	return strings.Compare(a.ID, b.ID)
}

// What recall may cost in a call. Tokens that nothing asked for are wasted, so a turn of which it is not certain that it asks gets little: half of the
// configured share, and at most so many tokens. One that asks gets all of the share, as far as there are candidates worth it.

const (
	// minRecall is the smallest allowance worth asking a retriever for, in tokens.
	minRecall = 60
	// perCandidate is how much of an allowance a candidate stands for: less than a short message costs, so that those that say nothing new can be passed over.
	perCandidate = 20
	// minCandidates is how many candidates are asked for however small the allowance is.
	minCandidates = 50
)

// ordinaryRoom is what a budget leaves room for in every turn, in tokens.
func (c *Config) ordinaryRoom(share float64, budget int) int {
	return min(int(share/2*float64(budget)), c.Recall.Tokens)
}

// askedRoom is the most that recall takes of a budget, in tokens.
func (c *Config) askedRoom(share float64, budget int) int { return int(share * float64(budget)) }

// recallRoom is what the window leaves to recall in this call, in tokens.
func (c *call) recallRoom(budget int) int {
	return max(c.e.cfg.ordinaryRoom(c.share, budget), c.wanted)
}

// allowance is what recalled entries may cost in all, in tokens. In a window that shows all there is nobody else needs what is free.
func (f *frame) allowance(c *call, asks bool) int {
	free := c.marks.Hard - f.fixed(c.additionCost) - sum(f.costs)
	if !asks {
		return min(f.e.cfg.ordinaryRoom(c.share, f.v.Budget), free)
	}
	room := f.e.cfg.askedRoom(c.share, f.v.Budget)
	if f.v.Front().Left == 0 {
		room = max(room, free/2)
	}
	return min(room, free)
}

// candidates is how many candidates make sense for an allowance.
func (c *Config) candidates(allowance int) int {
	return min(max(allowance/perCandidate, minCandidates), c.Recall.Candidates)
}

// floorBudget is the largest budget, in tokens, in which the floor is what the configuration says.
const floorBudget = 64_000

// floor is the score below which a candidate is not worth its tokens, given that of the best one. Scores that are not positive say nothing of worth.
// Measured by what a window costs at all a token of recall costs less the larger the window is, so larger ones have a lower floor.
func (c *Config) floor(best float64, budget int) float64 {
	if best <= 0 {
		return -math.MaxFloat64
	}
	return c.Recall.Floor * best * math.Cbrt(floorBudget/float64(max(budget, floorBudget)))
}

// want notes what a turn that asks would take if it had the room, when that is a good deal more than it took: a step makes room for it.
func (c *call) want(took, room int) {
	if c.stepped || c.loop() || c.wanted > 0 {
		return
	}
	need := took
	for i := range c.outAllowance {
		need += c.outAllowance[i].Tokens
	}
	if need = min(need, room); took < int(wantShare*float64(need)) {
		c.wanted = need
	}
}

// wantShare is the share of what it would take that a turn makes do with before the window steps for it.
const wantShare = 0.7

// gateCandidates is how many candidates are looked at when it is not certain that a turn asks.
const gateCandidates = 12

// offered visits what candidates quote.
func offered(candidates []core.Candidate) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range candidates {
			text := candidates[i].Text
			if text == "" {
				text = candidates[i].Entry.Text()
			}
			if !yield(text) {
				return
			}
		}
	}
}

// inFront visits what the window says in front of the turn.
func inFront(f *frame, c *call) iter.Seq2[words.Sketch, string] {
	return func(yield func(words.Sketch, string) bool) {
		for i := range f.v.Kept {
			if !yield(nil, f.v.Kept[i].Text) {
				return
			}
		}
		says := func(it *item) bool {
			texts := func(visit func(string) bool) { eachText(&it.msg, visit) }
			if it.sketch == nil {
				it.sketch = words.SketchOf(texts)
			}
			return eachText(&it.msg, func(text string) bool { return yield(it.sketch, text) })
		}
		end := f.newestTurn(c)
		for n := range f.visible {
			if f.place(n) < end && !says(f.item(n)) {
				return
			}
		}
		for i := range f.s.lead {
			if !says(&f.s.lead[i]) {
				return
			}
		}
	}
}

// eachText visits what a message says in words, until visit returns false.
func eachText(m *message.Message, visit func(string) bool) bool {
	for i := range m.Parts {
		text := ""
		switch p := &m.Parts[i]; p.Kind {
		case message.Text, message.ToolResult:
			text = p.Text
		case message.ToolCall:
			text = p.Args
		}
		if !visit(text) {
			return false
		}
	}
	return true
}

// carries reports whether a call may be given something of what was before a reset, whatever is recalled else.
func (f *frame) carries(c *call) bool {
	return f.v.Reset != nil && f.e.cfg.Recall.ResetMessages > 0 && c.req.PromptMode != core.PromptNone
}

// carried quotes what the first turn after a reset is given of what was before it, as far as an allowance goes: half of it is the newest summary's at most,
// the rest the newest messages'.
func (f *frame) carried(ctx context.Context, pack *packing) ([]quotation, error) {
	reset, most := f.v.Reset, f.e.cfg.Recall.ResetMessages
	if reset == nil || most == 0 || pack.room < minQuote {
		return nil, nil
	}
	entries, err := f.e.reader.before(ctx, f.s.id, reset, most)
	if err != nil {
		if ctx.Err() != nil || f.e.cfg.Failure == FailStrict {
			return nil, fmt.Errorf("core: assemble %q: before the reset: %w", f.s.id, err)
		}
		f.e.warn(ctx, "store", "before the reset", err)
		return nil, nil
	}
	open := granted(&f.v, f.e.now(), false)
	entries = slices.DeleteFunc(entries, func(entry core.Entry) bool { // those of others until the grant for them is over
		id := entry.SessionID()
		return id != f.s.id && !slices.ContainsFunc(open, func(g core.Scope) bool { return g.Contains(id) })
	})
	var out []quotation
	take := func(entry *core.Entry, text string) bool {
		text = quotedBehind("", f.s.id, entry, text)
		quote := quotation{Candidate: &core.Candidate{Entry: *entry, Source: "reset"}, text: text, cost: f.s.cachedCount(text), part: true}
		if !pack.take(&quote) {
			return false
		}
		out = append(out, quote)
		return true
	}
	for i := range entries {
		entry := &entries[i]
		if slices.ContainsFunc(f.items, func(it item) bool {
			return it.entry.Fingerprint == entry.Fingerprint && f.v.Stubs[it.entry.ID].Kind != window.Masked
		}) {
			continue // the host went back to it, or said it again
		}
		text := f.e.cfg.shorten(entry.Said(), entry)
		if entry.Type == core.TypeSummary {
			text = window.HeadTail(entry.Text(), len(entry.Text())*min(pack.room/2, entry.Tokens)/max(entry.Tokens, 1), elided)
		}
		if !window.Blank(text) && !take(entry, text) && entry.Type != core.TypeSummary {
			break
		}
	}
	return out, nil
}
