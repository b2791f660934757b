package core

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// recentForQuery is how many of the newest entries a retriever is shown.
const recentForQuery = 8

// keepRecall lets the block of a turn that is over stay where it was shown: without it, what stood behind it would be billed again. It reports whether
// anything changed.
func (v *View) keepRecall() bool {
	r := v.Recall
	if r == nil || r.Turn >= v.Turns {
		return false
	}
	if r.Text != "" {
		v.Kept = append(v.Kept, *r)
	}
	v.Recall = nil
	return true
}

// recall fills the recall block: anew at the beginning of a turn and after a step, and as it was otherwise.
func (e *Engine) recall(ctx context.Context, f *frame, c *call) error {
	if c.share == 0 {
		if f.v.Recall != nil {
			f.v.Recall, c.dirty = nil, true
		}
		return nil
	}
	if !e.recallStale(f, c) {
		c.recall = f.v.Recall
		return nil
	}
	total := e.fixed(f, c.additionCost) + sum(f.costs)
	allowance := min(c.marks.Recall, c.marks.Hard-total)
	r, err := e.retrieve(ctx, f, c, allowance)
	if err != nil {
		return err
	}
	f.v.Recall, c.recall, c.dirty = r, r, true
	return nil
}

// recallStale reports whether the recall block was made for another turn, or the window moved.
func (e *Engine) recallStale(f *frame, c *call) bool {
	r := f.v.Recall
	return r == nil || c.stepped || r.Turn != f.v.Turns || r.Prompt != promptKey(c.req) || e.moreToRecall(f, c)
}

// moreToRecall reports whether what a retriever asked for in this turn came too late for its first answer, and is there now.
func (e *Engine) moreToRecall(f *frame, c *call) bool {
	late, ok := e.retriever.(LateRetriever)
	return ok && late.Late(e.query(f, c, 0))
}

func promptKey(req AssembleRequest) string {
	if req.Prompt == "" {
		return ""
	}
	return message.Fingerprint(message.New(message.User, req.Prompt))
}

// minRecall is the smallest allowance worth asking a retriever for, in tokens.
const minRecall = 60

// retrieve asks the retriever and builds the block of what fits.
func (e *Engine) retrieve(ctx context.Context, f *frame, c *call, allowance int) (*Recall, error) {
	r := &Recall{Turn: f.v.Turns, Prompt: promptKey(c.req), Time: f.v.newest(f.s, e.now), At: f.newestTurn(c.hosted())}
	if allowance < minRecall {
		return r, nil
	}
	sets := f.shownSets()
	q := e.query(f, c, allowance)
	q.InWindow = f.v.quotes(f.inWindow(sets))
	asks := askingOf(q.Prompt)
	gated := e.cfg.Recall.Gate && !asks.certain
	if gated {
		q.Limit = min(q.Limit, gateCandidates)
	}
	candidates, err := e.ask(ctx, q)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("core: assemble %q: %w", f.s.id, ctx.Err())
		}
		if e.cfg.Failure == FailStrict {
			return nil, fmt.Errorf("core: assemble %q: retriever: %w", f.s.id, err)
		}
		e.warn(ctx, "retriever", "retrieve", err)
		c.warnings = append(c.warnings, "retriever: "+err.Error())
	}
	if gated && !asks.misses(f, c, candidates) {
		return r, nil
	}
	in, room := e.choose(f, c, &q, candidates, f.seen(sets, candidates), allowance)
	chosen := len(in)
	if in, err = e.confirmed(ctx, f, in); err != nil {
		if ctx.Err() != nil || e.cfg.Failure == FailStrict {
			return nil, fmt.Errorf("core: assemble %q: recall: %w", f.s.id, err)
		}
		e.warn(ctx, "store", "recall", err)
		c.warnings = append(c.warnings, "recall: "+err.Error())
		return r, nil
	}
	if len(in) < chosen {
		room = e.quoteRoom(f.s, allowance)
		for i := range in {
			room -= in[i].cost
		}
	}
	e.build(f, r, &q, in, allowance-room)
	return r, nil
}

// quotes adds to the test for entries that the window shows those that blocks of earlier turns quote whole.
func (v *View) quotes(inWindow func(id string) bool) func(id string) bool {
	if len(v.Kept) == 0 {
		return inWindow
	}
	quoted := make(map[string]struct{})
	for i := range v.Kept {
		for _, it := range v.Kept[i].Items {
			if !it.Part { // other parts may be what is asked for now
				quoted[it.ID] = struct{}{}
			}
		}
	}
	return func(id string) bool {
		_, ok := quoted[id]
		return ok || inWindow(id)
	}
}

// newest returns the time of the newest entry: a block stamped so is the same whenever it is made.
func (v *View) newest(s *session, now func() time.Time) time.Time {
	if n := len(s.items); n > 0 {
		return s.items[n-1].entry.Time
	}
	return now()
}

func (e *Engine) query(f *frame, c *call, allowance int) Query {
	s := f.s
	q := Query{
		Session: s.id, Scope: s.id.Scope(), Prompt: c.req.Prompt, Now: e.now(),
		Tokens: allowance, Limit: e.cfg.Recall.Candidates,
	}
	if e.cfg.Recall.AcrossSessions && c.req.PromptMode != PromptMinimal {
		q.Scope.Session = ""
	}
	q.Granted = e.granted(&f.v, q.Now)
	for i := max(len(s.items)-recentForQuery, 0); i < len(s.items); i++ {
		if s.items[i].entry.Type == TypeMessage {
			q.Recent = append(q.Recent, s.items[i].entry)
		}
	}
	if q.Prompt == "" {
		for _, entry := range slices.Backward(q.Recent) {
			if entry.Role == message.User {
				q.Prompt = entry.Text()
				break
			}
		}
	}
	if q.Prompt == "" && s.pinned != nil {
		q.Prompt = s.pinned.entry.Text()
	}
	return q
}

// granted returns the scopes that are open at a time.
func (e *Engine) granted(v *View, now time.Time) []Scope {
	var out []Scope
	for _, g := range v.Grants {
		if now.Before(g.Until) {
			out = append(out, g.Scope)
		}
	}
	return out
}

// ask runs the retriever under the deadline. A retriever that does not return in time is left behind, and not asked for a while; Dispose waits for it. Its
// own time ends a little sooner, so that what it has by then is handed over within the deadline.
func (e *Engine) ask(ctx context.Context, q Query) ([]Candidate, error) {
	if err := e.patience.Try(q.Now); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Recall.Deadline)
	defer cancel()
	own, end := context.WithTimeout(ctx, e.cfg.Recall.Deadline*9/10)
	defer end()
	type answer struct {
		candidates []Candidate
		err        error
	}
	ch := make(chan answer, 1)
	e.work.Go(func() {
		c, err := e.retriever.Retrieve(own, q)
		ch <- answer{c, err}
	})
	var a answer
	select {
	case a = <-ch:
	case <-ctx.Done():
		a.err = fmt.Errorf("no answer within %v: %w", e.cfg.Recall.Deadline, context.Cause(ctx))
	}
	switch waited := errors.Is(a.err, context.DeadlineExceeded) && !errors.Is(a.err, ErrPartial); {
	case waited, errors.Is(a.err, context.Canceled):
		e.patience.Note(q.Now, a.err)
	default: // also one that fails at once: it costs no time
		e.patience.Note(q.Now, nil)
	}
	return a.candidates, a.err
}

// quotation is a candidate as it would stand in the block.
type quotation struct {
	*Candidate
	text string
	cost int
	// part says that it is not all of the entry.
	part bool
}

// quoteRoom is what an allowance leaves for the quotations themselves.
func (e *Engine) quoteRoom(s *session, allowance int) int {
	return allowance - e.cachedCount(s, recallOpen) - e.cachedCount(s, recallClose) - messageOverhead - roleCost - 2
}

// choose packs candidates in rank order, skipping what does not fit. It adds to seen what it takes, and returns the room that is left.
func (e *Engine) choose(f *frame, c *call, q *Query, candidates []Candidate, seen map[string]bool, allowance int) ([]quotation, int) {
	room := e.quoteRoom(f.s, allowance)
	in := make([]quotation, 0, len(candidates))
	prompt := strings.TrimSpace(c.req.Prompt)
	for i := range candidates {
		cand := &candidates[i]
		id, fp := cand.Entry.ID, cand.Entry.Fingerprint
		// What says the same as something in the window, or as a better candidate, says nothing new.
		if seen[id] || seen[fp] || !e.mayRecall(f, q, &cand.Entry) {
			continue
		}
		seen[id], seen[fp] = true, fp != ""
		text, part := cand.Text, cand.Text != ""
		if !part || cand.Entry.Tokens <= e.cfg.Recall.Whole {
			if whole := cand.Entry.Text(); !part || len(whole) > len(text) {
				text, part = whole, false
			}
		}
		if text = strings.TrimSpace(text); text == "" || text == prompt {
			continue
		}
		// Counting is most of what recall costs: what surely does not fit is not counted.
		if room < minQuote || cand.Text == "" && e.quoteFloor(&cand.Entry) > room {
			c.leaveOut(cand, cand.Entry.Tokens)
			continue
		}
		short := e.shorten(text, &cand.Entry)
		quote := quotation{Candidate: cand, text: quoted(f.s.id, &cand.Entry, short), part: part || len(short) < len(text)}
		if f.v.quotesAlready(quote.text) {
			continue
		}
		// Quotations begin with "[" and end with a newline: what they cost together is the sum of what they cost alone.
		if quote.cost = e.cachedCount(f.s, quote.text); quote.cost > room {
			c.leaveOut(cand, quote.cost)
			continue
		}
		room -= quote.cost
		in = append(in, quote)
	}
	return in, room
}

// quotesAlready reports whether a block of an earlier turn says the same as a quotation, of this entry or of another one.
func (v *View) quotesAlready(quotation string) bool {
	const end = "]\n" // of the line above the text, which names the entry
	_, text, _ := strings.Cut(quotation, end)
	return slices.ContainsFunc(v.Kept, func(r Recall) bool {
		return strings.Contains(r.Text, end+text+"[") || strings.Contains(r.Text, end+text+recallClose)
	})
}

// build writes the block in the order in which things were said.
func (e *Engine) build(f *frame, r *Recall, q *Query, in []quotation, tokens int) {
	if len(in) == 0 {
		return
	}
	size := len(recallOpen) + len(recallClose)
	for i := range in {
		size += len(in[i].text)
	}
	slices.SortStableFunc(in, func(a, b quotation) int { return chronological(&a.Entry, &b.Entry) })
	var b strings.Builder
	b.Grow(size)
	b.WriteString(recallOpen)
	r.Items = make([]RecallItem, 0, len(in))
	for _, quote := range in {
		b.WriteString(quote.text)
		r.Items = append(r.Items, RecallItem{ID: quote.Entry.ID, Score: quote.Score, Source: quote.Source, Part: quote.part})
		r.bound(&f.v, q.Scope, quote.Entry.SessionID())
	}
	b.WriteString(recallClose)
	r.Text, r.Tokens = b.String(), tokens
	// It was counted quotation by quotation; counting it again as a whole would take as long as all the rest of the call.
	m := recallMessage(r)
	f.s.rememberCost(e.hash(&m), r.Tokens)
}

// bound ends the block with the grants that it needs.
func (r *Recall) bound(v *View, scope Scope, owner SessionID) {
	if scope.Contains(owner) {
		return
	}
	for _, g := range v.Grants {
		if g.Scope.Contains(owner) && (r.Until.IsZero() || g.Until.Before(r.Until)) {
			r.Until = g.Until
		}
	}
}

// quoteFloor is less than what a quotation of all of an entry costs, in tokens; 0 when that is not known without counting.
func (e *Engine) quoteFloor(entry *Entry) int {
	if entry.Tokens > e.cfg.Recall.Quote || len(entry.Message.Parts) != 1 || entry.Message.Parts[0].Kind != message.Text {
		return 0
	}
	return (entry.Tokens - messageOverhead - roleCost) * 9 / 10
}

// minQuote is the smallest room worth looking for a quotation that fits it, in tokens.
const minQuote = 12

func (c *call) leaveOut(cand *Candidate, cost int) {
	c.outAllowance = append(c.outAllowance, Choice{
		Message: -1, Entry: cand.Entry.ID, Count: 1, Reason: OutAllowance, Tokens: cost, Score: cand.Score, Source: cand.Source,
	})
}

// shorten bounds a quotation. What the whole entry costs is known, so the length that fits is estimated instead of counted.
func (e *Engine) shorten(text string, entry *Entry) string {
	limit := e.cfg.Recall.Quote
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
	return window.HeadTail(text, max(size, 16), "\n...\n")
}

// cachedCount counts a text that is likely to be counted again.
func (e *Engine) cachedCount(s *session, text string) int {
	key := maphash.String(e.seed, text)
	if n, ok := s.costs[key]; ok {
		return n
	}
	n := e.count(text)
	s.rememberCost(key, n)
	return n
}

func chronological(a, b *Entry) int {
	if c := a.Time.Compare(b.Time); c != 0 {
		return c
	}
	if a.Session == b.Session {
		return int(a.Seq - b.Seq)
	}
	return strings.Compare(a.ID, b.ID)
}

// mayRecall is the last guard in front of the prompt: whatever a retriever proposes, nothing of another agent or session gets in, nothing that
// is shown already, and nothing of a conversation that was reset or forked away.
func (e *Engine) mayRecall(f *frame, q *Query, entry *Entry) bool {
	// What a summary says is recalled from the entries it stands for.
	if entry.ID == "" || entry.Hidden() || entry.Type == TypeSummary || lookedUp(entry) || Reserved(entry.Session) || q.InWindow(entry.ID) {
		return false
	}
	id := entry.SessionID()
	if id == f.s.id {
		return e.cfg.Recall.ResetHistory || onPath(&f.v, id, entry.Seq)
	}
	if q.Scope.Contains(id) {
		return true
	}
	for _, g := range q.Granted {
		if g.Contains(id) {
			return true
		}
	}
	return false
}

// Degradable errors are those of parts; bad input, cancellation and budgets are the caller's to solve.
func (e *Engine) mayDegrade(err error) bool {
	if e.cfg.Failure != FailDegrade {
		return false
	}
	for _, own := range []error{ErrInvalid, ErrBudget, ErrNeedTranscript, ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, own) {
			return false
		}
	}
	return true
}
