package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/internal/words"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// recentForQuery is how many of the newest entries a retriever is shown.
const recentForQuery = 8

// keepRecall lets the block of a turn that is over stay where it was shown: without it, what stood behind it would be billed again. A turn is over where a
// newer one is stored, and where a block was made for what is stored while the call brings a prompt that is not. It reports whether anything changed.
func (c *call) keepRecall(v *core.View) bool {
	r := v.Recall
	if r == nil || r.Turn >= v.Turns && (r.Prompt != "" || !c.hosted()) {
		return false
	}
	v.Apply(edit.Keep{})
	return true
}

// recall fills the recall block: anew where it is stale, and as it was otherwise.
func (f *frame) recall(ctx context.Context, c *call) error {
	if c.share == 0 && !f.carries(c) {
		if f.v.Recall != nil {
			f.v.Apply(edit.Recall{})
			c.dirty = true
		}
		return nil
	}
	if !f.recallStale(c) {
		c.recall = f.v.Recall
		return nil
	}
	c.outAllowance = nil
	r, err := f.retrieve(ctx, c)
	if err != nil {
		return err
	}
	f.v.Apply(edit.Recall{Block: r})
	c.recall, c.dirty = r, true
	return nil
}

// recallStale reports whether the recall block was made for another turn or another prompt, whether the window moved, or a retriever has more to say by now.
func (f *frame) recallStale(c *call) bool {
	r := f.v.Recall
	return r == nil || c.stepped || r.Turn != f.v.Turns || r.Prompt != promptKey(c.req) || f.moreToRecall(c)
}

// moreToRecall reports whether what a retriever asked for in this turn came too late for its first answer, and is there now.
func (f *frame) moreToRecall(c *call) bool {
	late, ok := f.e.retriever.(core.LateRetriever)
	return ok && late.Late(f.query(c))
}

func promptKey(req core.AssembleRequest) string {
	if req.Prompt == "" {
		return ""
	}
	return message.Fingerprint(message.New(message.User, req.Prompt))
}

// retrieve asks the retriever and builds the block of what fits.
func (f *frame) retrieve(ctx context.Context, c *call) (*core.Recall, error) {
	r := &core.Recall{Turn: f.v.Turns, Prompt: promptKey(c.req), Time: newestOf(&f.v, f.s, f.e.now), At: f.newestTurn(c)}
	q := f.query(c)
	asks, err := words.Asked(ctx, q.Prompt)
	if err != nil {
		return nil, fmt.Errorf("core: recall: %w", err)
	}
	gated := f.e.cfg.Recall.Gate && !asks.Certain
	allowance := f.allowance(c, !gated)
	gated = gated && !begun(&f.v, q.Granted)
	all := f.allowance(c, true)
	pack := f.s.packing(all)
	room := pack.room
	carried, err := f.carried(ctx, pack)
	if err != nil {
		return nil, err
	}
	allowance = min(allowance, all-room+pack.room)
	if allowance < minRecall || c.share == 0 {
		f.build(r, &q, carried)
		return r, nil
	}
	q.Tokens, q.Limit = allowance, f.e.cfg.candidates(allowance)
	sets := f.shownSets()
	q.InWindow = quotesIn(&f.v, f.inWindow(sets))
	if gated {
		q.Limit = min(q.Limit, gateCandidates)
	}
	candidates, err := f.e.ask(ctx, q)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("core: assemble %q: %w", f.s.id, ctx.Err())
		}
		if f.e.cfg.Failure == FailStrict {
			return nil, fmt.Errorf("core: assemble %q: retriever: %w", f.s.id, err)
		}
		f.e.warn(ctx, "retriever", "retrieve", err)
		c.warnings = append(c.warnings, "retriever: "+err.Error())
	}
	if gated && !asks.Misses(offered(candidates), inFront(f, c)) {
		f.build(r, &q, carried)
		return r, nil
	}
	seen := f.seen(sets, candidates)
	for i := range carried {
		seen[carried[i].Entry.ID] = true
	}
	pack.room = f.s.quoteRoom(allowance)
	in, err := f.confirmed(ctx, c, f.choose(c, &q, candidates, seen, pack))
	if err != nil {
		if ctx.Err() != nil || f.e.cfg.Failure == FailStrict {
			return nil, fmt.Errorf("core: assemble %q: recall: %w", f.s.id, err)
		}
		f.e.warn(ctx, "store", "recall", err)
		c.warnings = append(c.warnings, "recall: "+err.Error())
	}
	if !gated && f.v.Front().Left > 0 { // a session that is shown whole stays so
		c.want(allowance-pack.room, f.e.cfg.askedRoom(c.share, f.v.Budget))
	}
	f.build(r, &q, append(carried, in...))
	return r, nil
}

// quotesIn adds to the test for entries that the window shows those that blocks of earlier turns quote whole.
func quotesIn(v *core.View, inWindow func(id string) bool) func(id string) bool {
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

// begun reports whether a subagent is at its first turn and sees nothing of its parent, which it may recall from: its task need not be a question.
func begun(v *core.View, granted []core.Scope) bool {
	return len(granted) > 0 && v.Turns <= 1 && !slices.ContainsFunc(v.Path, func(sp core.Span) bool { return sp.Session != nil })
}

// newestOf returns the time of the newest entry: a block stamped so is the same whenever it is made.
func newestOf(v *core.View, s *session, now func() time.Time) time.Time {
	if n := len(s.items); n > 0 {
		return s.items[n-1].entry.Time
	}
	return now()
}

func (f *frame) query(c *call) core.Query {
	s := f.s
	q := core.Query{Session: s.id, Scope: s.id.Scope(), Prompt: c.asked, Now: f.e.now(), Settings: c.req.Settings}
	if f.e.cfg.Recall.AcrossSessions && c.req.PromptMode != core.PromptMinimal {
		q.Scope.Session = ""
	}
	q.Granted = granted(&f.v, q.Now, false)
	for i := max(len(s.items)-recentForQuery, 0); i < len(s.items); i++ {
		if s.items[i].entry.Type == core.TypeMessage {
			q.Recent = append(q.Recent, s.items[i].entry.Clone())
		}
	}
	if q.Prompt == "" {
		for _, entry := range slices.Backward(q.Recent) {
			if q.Prompt = entry.Said(); entry.Role == message.User && !window.Blank(q.Prompt) {
				break
			}
			q.Prompt = ""
		}
	}
	if q.Prompt == "" && s.pinned != nil {
		q.Prompt = s.pinned.entry.Text()
	}
	return q
}

// closes reports whether a position was not in force when a grant was given.
func closes(g *core.Grant, seq int64) bool {
	return slices.ContainsFunc(g.Closed, func(sp core.Span) bool { return seq >= sp.From && seq < sp.To })
}

// outOfForce returns the positions of a view's own session that are not on its path.
func outOfForce(v *core.View) []core.Span {
	var own, out []core.Span
	for _, sp := range v.Path {
		if sp.Session == nil || *sp.Session == v.Session {
			own = append(own, sp)
		}
	}
	slices.SortFunc(own, func(a, b core.Span) int { return cmp.Compare(a.From, b.From) })
	at := int64(0)
	for _, sp := range append(own, core.Span{From: v.Next, To: v.Next}) {
		if at < sp.From {
			out = append(out, core.Span{From: at, To: sp.From})
		}
		at = max(at, sp.To)
	}
	return out
}

// granted returns the scopes that are open at a time, to recall or to a search.
func granted(v *core.View, now time.Time, search bool) []core.Scope {
	var out []core.Scope
	for _, g := range v.Grants {
		if now.Before(g.Until) && (search || !g.Search) {
			out = append(out, g.Scope)
		}
	}
	return out
}

// ask runs the retriever under the deadline. A retriever that does not return in time is left behind, and not asked for a while; Dispose waits for it. Its
// own time ends a little sooner, so that what it has by then is handed over within the deadline.
func (e *Engine) ask(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	if err := e.patience.Try(q.Now); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Recall.Deadline)
	defer cancel()
	own, end := context.WithTimeout(ctx, e.cfg.Recall.Deadline*9/10)
	defer end()
	type answer struct {
		candidates []core.Candidate
		err        error
	}
	ch := make(chan answer, 1)
	e.work.Go(func() {
		var a answer
		a.err = e.guarded(own, "retriever", func(ctx context.Context) (err error) {
			a.candidates, err = e.retriever.Retrieve(ctx, q)
			return err
		})
		ch <- a
	})
	var a answer
	select {
	case a = <-ch:
	case <-ctx.Done():
		a.err = fmt.Errorf("no answer within %v: %w", e.cfg.Recall.Deadline, context.Cause(ctx))
	}
	switch waited := errors.Is(a.err, context.DeadlineExceeded) && !errors.Is(a.err, core.ErrPartial); {
	case waited, errors.Is(a.err, context.Canceled):
		e.patience.Note(q.Now, a.err)
	default: // also one that fails at once: it costs no time
		e.patience.Note(q.Now, nil)
	}
	return a.candidates, a.err
}

// mayRecall is the last guard in front of the prompt: whatever a retriever proposes, nothing of another agent or session gets in but what
// the query's scope or a grant in force opens, nothing that is shown already, and nothing of this conversation that was reset or rewound, unless ResetHistory says so.
func (f *frame) mayRecall(q *core.Query, entry *core.Entry) bool {
	// What a summary says is recalled from the entries it stands for. What is said by the system holds where it stands, and no longer once it is replaced.
	if entry.ID == "" || entry.Hidden() || entry.Type == core.TypeSummary || entry.Role == message.System || core.Reserved(entry.Session) || q.InWindow(entry.ID) {
		return false
	}
	id := entry.SessionID()
	if id == f.s.id {
		return f.e.cfg.Recall.ResetHistory || onPath(&f.v, id, entry.Seq)
	}
	if q.Scope.Contains(id) {
		return true
	}
	return slices.ContainsFunc(f.v.Grants, func(g core.Grant) bool {
		return !g.Search && q.Now.Before(g.Until) && g.Scope.Contains(id) && (g.Before == 0 || entry.Seq < g.Before) && (f.e.cfg.Recall.ResetHistory || !closes(&g, entry.Seq))
	})
}

// Degradable errors are those of parts; bad input, cancellation and budgets are the caller's to solve.
func (c *Config) mayDegrade(err error) bool {
	if c.Failure != FailDegrade {
		return false
	}
	for _, own := range []error{core.ErrInvalid, core.ErrBudget, core.ErrNeedTranscript, core.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, own) {
			return false
		}
	}
	return true
}

// recallsOf returns the blocks that the window shows, oldest first; the one in force is the last.
func recallsOf(v *core.View) []*core.Recall {
	out := make([]*core.Recall, 0, len(v.Kept)+1)
	for i := range v.Kept {
		out = append(out, &v.Kept[i])
	}
	if v.Recall != nil && v.Recall.Text != "" {
		out = append(out, v.Recall)
	}
	return out
}

// confirmed leaves out of a list of quotations what the store does not hold as it is quoted: a retriever may go on remembering what was erased or purged, and say
// what nobody said.
func (f *frame) confirmed(ctx context.Context, c *call, in []quotation) ([]quotation, error) {
	reads := core.ReadsStore(f.e.retriever)
	erased := func(id core.SessionID) (bool, error) {
		if own := id == f.s.id; own && (reads || f.v.Erased > 0) {
			return f.v.Erased > 0, nil
		}
		return f.e.erasures.everErased(ctx, id.Agent) // a view that was purged begins anew, and counts no erasure
	}
	// What was just read in the store is believed, and so is what a store cannot look up, unless something was erased.
	held, asked := make(map[string]core.Entry, len(in)), make([]*core.Entry, 0, len(in))
	for i := range in {
		entry := &in[i].Entry
		if reads {
			if was, err := erased(entry.SessionID()); err != nil {
				return nil, err
			} else if !was {
				held[entry.ID] = *entry
				continue
			}
		}
		asked = append(asked, entry)
	}
	found, untold, err := f.e.reader.held(ctx, len(asked), func(i int) *core.Entry { return asked[i] })
	if err != nil {
		return nil, err
	}
	maps.Copy(held, found)
	for _, entry := range asked {
		if untold[entry.ID] {
			if was, err := erased(entry.SessionID()); err != nil {
				return nil, err
			} else if !was {
				held[entry.ID] = *entry
			}
		}
	}
	return slices.DeleteFunc(in, func(q quotation) bool {
		is, ok := held[q.Entry.ID]
		if gone := !ok || is.Type == core.TypeErased; gone || f.saysTheSame(&q.Entry, &is) {
			return gone
		}
		err := errors.New("what it says of " + q.Entry.ID + " is not what is stored; it is not quoted")
		f.e.warn(ctx, "retriever", "quote", err)
		c.warnings = append(c.warnings, "retriever: "+err.Error())
		return true
	}), nil
}

// saysTheSame reports whether two entries with one id may be recalled alike, and are quoted alike.
func (f *frame) saysTheSame(a, b *core.Entry) bool {
	head := func(entry *core.Entry) string { return quotedBehind("", f.s.id, entry, "") }
	return a.Seq == b.Seq && a.Type == b.Type && a.Role == b.Role && a.Time.Equal(b.Time) && head(a) == head(b) && a.Text() == b.Text()
}
