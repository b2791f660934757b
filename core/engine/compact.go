package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/internal/exact"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// Compact shrinks what is live of a session: the summaries and the entries behind them. The session is not blocked while the compactor works; what
// it proposes is checked against the state at the time of publishing.
//
// A compactor that does not own compaction calls the runtime once, and its result is passed through. An owning one makes progress, or the
// result says in words the host understands why none was needed; a forced compaction over budget always ends below it, if need be without
// the compactor.
func (e *Engine) Compact(ctx context.Context, req core.CompactRequest) (_ core.CompactResult, err error) {
	ctx, end := e.begin(ctx, "Compact", req.Session)
	defer func() { end(err) }()
	if err := req.Session.Validate(); err != nil {
		return core.CompactResult{}, err
	}
	leave, err := e.join("compact")
	if err != nil {
		return core.CompactResult{}, err
	}
	defer leave()
	if err := e.quarantined(req.Session); err != nil {
		if slices.Contains(e.host.Capabilities(), capability.DelegateHost) {
			return e.legacy.Compact(ctx, req)
		}
		return core.CompactResult{}, err
	}
	if !e.compactor.OwnsCompaction() {
		return e.delegate(ctx, req)
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Compaction.Deadline)
	defer cancel()
	done, waited, err := e.compactAlone(ctx, req.Session)
	if err != nil {
		return core.CompactResult{}, err
	}
	defer done()
	for n := 0; ; n++ {
		res, err := e.compact(ctx, req, waited || n > 0)
		if err == nil {
			e.health.worked(req.Session, "compact")
		}
		if !errors.Is(err, errOvertaken) {
			return res, err
		}
		if err := pause(ctx, n); err != nil {
			return core.CompactResult{}, fmt.Errorf("core: compact %q: others keep changing the session: %w", req.Session, err)
		}
	}
}

// compactAlone waits until no other compaction of the session is under way in this engine: two would pay for the same text. waited says that there was one.
func (e *Engine) compactAlone(ctx context.Context, id core.SessionID) (done func(), waited bool, err error) {
	s, err := e.lookup(id)
	if err != nil {
		return nil, false, err
	}
	done = func() { <-s.compacting; s.leave() }
	select {
	case s.compacting <- struct{}{}:
		return done, false, nil
	default:
	}
	select {
	case s.compacting <- struct{}{}:
		return done, true, nil
	case <-ctx.Done():
		s.leave()
		return nil, false, fmt.Errorf("core: compact %q: another compaction is under way: %w", id, ctx.Err())
	}
}

// compact is one try of Compact. overlapped says that another compaction ran since it was asked for: what that achieved need not be done again.
func (e *Engine) compact(ctx context.Context, req core.CompactRequest, overlapped bool) (core.CompactResult, error) {
	t, res, err := e.prepare(ctx, req)
	if err != nil || t == nil {
		return res, e.failedIn(ctx, req.Session, "store", "compact", err)
	}
	if overlapped && t.before <= t.budget && t.before <= int(e.cfg.Compaction.Target*float64(t.budget)) {
		res.Reason = core.ReasonAlreadyCompacted + ": by another call, at the same time"
		return res, nil
	}
	patch, cerr := e.askCompactor(ctx, t.Compaction)
	unpublished := t.close()
	if len(patch.Warnings) > 0 {
		e.warn(ctx, "compactor", "part", errors.New(strings.Join(patch.Warnings, "; ")))
	}
	if t.overtaken {
		return core.CompactResult{}, errOvertaken // whatever the compactor made of it
	}
	if err := t.apply(ctx, patch); err != nil {
		refused := errors.Is(err, core.ErrInvalid)
		switch {
		case errors.Is(err, errOvertaken):
			return core.CompactResult{}, err
		case !refused || e.cfg.Failure == FailStrict:
			return core.CompactResult{}, e.failedIn(ctx, req.Session, "compactor", "compact", err)
		}
		patch, cerr = core.Patch{Reason: err.Error()}, errors.Join(cerr, err) // as good as none
	}
	if cerr != nil {
		if parent := ctx.Err(); parent != nil && !errors.Is(parent, context.DeadlineExceeded) {
			return core.CompactResult{}, fmt.Errorf("core: compact %q: %w", req.Session, parent)
		}
		e.warn(ctx, "compactor", "compact", cerr)
	}
	res, err = t.conclude(context.WithoutCancel(ctx), patch, cerr)
	if err == nil && !res.Compacted && patch.Empty() && unpublished != nil && !errors.Is(unpublished, core.ErrInvalid) { // whatever the compactor says of it
		return core.CompactResult{}, e.failedIn(ctx, req.Session, "store", "compact", unpublished)
	}
	return res, err
}

// delegate passes a compaction on to the runtime.
func (e *Engine) delegate(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	if err := ctx.Err(); err != nil {
		return core.CompactResult{}, fmt.Errorf("core: compact %q: %w", req.Session, err)
	}
	patch, err := e.askCompactor(ctx, core.Compaction{
		Session: req.Session, Host: e.host, Request: req, Now: e.now(), Count: e.gauge.count, Force: req.Force, Instructions: req.Instructions,
	})
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // whatever the compactor calls it
		}
		return core.CompactResult{}, e.failedIn(ctx, req.Session, "host", "compact", fmt.Errorf("core: compact %q: %w", req.Session, err))
	}
	if patch.Delegated == nil {
		return core.CompactResult{OK: false, Reason: patch.Reason, Delegated: true}, nil
	}
	res := *patch.Delegated
	res.Delegated = true
	return res, nil
}

// task is a compaction under way.
type task struct {
	core.Compaction
	e      *Engine
	req    core.CompactRequest
	budget int
	before int
	// next is the Seq of the first entry that came later, end the length of the path, erased the view's count of erasures.
	next   int64
	end    int
	erased uint64
	// at finds Entries by id and by place; cut says for each whether a group begins there. Of the end nobody asks: the newest ones are protected.
	at  map[string]int
	seq map[place]int
	cut []bool
	// refs are the ids of the summaries published so far, by their Ref; told are the texts of all that the compactor knows and that stand in the view, by their ids.
	refs, told map[string]string
	// ground is what the session was when the task, or its last part, was made, see View.ground.
	ground string
	// shifted says that others changed that, overtaken that a patch was refused because others changed the session.
	shifted, overtaken bool
	// closed says that nothing is published any more, unpublished what became of the last patch, both under open: a compactor that was left behind may still be at work.
	open        sync.Mutex
	closed      bool
	unpublished error
}

// close returns why the last patch that was published meanwhile was not, which a compactor may not have said.
func (t *task) close() error {
	t.open.Lock()
	defer t.open.Unlock()
	t.closed = true
	return t.unpublished
}

// place is where an entry is stored.
type place struct {
	owner core.SessionID
	seq   int64
}

// survey notes what publishing checks patches against, so that it has nothing to read while the session waits.
func (t *task) survey(items []item) {
	t.at, t.seq = make(map[string]int, len(items)), make(map[place]int, len(items))
	for i := range items {
		t.at[items[i].entry.ID] = i
		t.seq[place{items[i].entry.SessionID(), items[i].entry.Seq}] = i
	}
	t.cut = make([]bool, len(items))
	for _, g := range groupsOf(items) {
		t.cut[g.From] = true
	}
}

// prepare takes stock of what is live. It returns no task, but a result, when there is nothing to do. The session does not wait while
// the entries are read.
func (e *Engine) prepare(ctx context.Context, req core.CompactRequest) (*task, core.CompactResult, error) {
	for try := 0; ; try++ {
		var v core.View
		err := e.retry(ctx, req.Session, func(s *session) error {
			if req.Transcript != nil {
				if _, err := s.reconcile(ctx, req.Transcript, anytime, req.Settings); err != nil {
					return err
				}
			}
			v = s.view.Clone()
			return nil
		})
		if err != nil {
			return nil, core.CompactResult{}, err
		}
		t, res, err := e.stock(ctx, v, req)
		if tied, ok := errors.AsType[*tiedError](err); ok && try < 3 {
			err = e.retry(ctx, req.Session, func(s *session) error { return s.mend(ctx, tied) })
			if err == nil {
				continue
			}
		}
		if try < 3 && errors.Is(err, core.ErrNotFound) && e.reread(ctx, req.Session) == nil {
			continue // it was changed while it was read
		}
		return t, res, err
	}
}

func (e *Engine) stock(ctx context.Context, v core.View, req core.CompactRequest) (*task, core.CompactResult, error) {
	first := max(v.Frontier, v.Lead)
	items, err := e.reader.read(ctx, &v, first, v.Len())
	if err != nil {
		return nil, core.CompactResult{}, err
	}
	budget := req.Budget
	if budget <= 0 {
		budget = v.Budget
	}
	t := &task{e: e, req: req, budget: budget, next: v.Next, end: v.Len(), erased: v.Erased, refs: make(map[string]string), told: make(map[string]string), ground: groundOf(&v, v.Len())}
	t.survey(items)
	t.Compaction = core.Compaction{
		Session: v.Session, Summaries: v.Summaries, Stubs: v.Stubs, Force: req.Force, Instructions: req.Instructions,
		Now: e.now(), Count: e.gauge.count, Host: e.host, Request: req, Left: max(v.Start-first, 0),
	}
	for i := range t.Summaries {
		t.Tokens += t.Summaries[i].Tokens
		t.told[t.Summaries[i].ID] = t.Summaries[i].Text
	}
	for i := range items {
		entry := items[i].entry
		if entry.Hidden() {
			entry.Message.Parts = nil // nothing to summarise
		}
		t.Entries = append(t.Entries, entry)
		t.Cost = append(t.Cost, items[i].cost)
		t.Tokens += items[i].cost
	}
	t.before = t.Tokens
	res := core.CompactResult{OK: true, TokensBefore: t.before, TokensAfter: t.before, FirstKept: firstID(t.Entries)}
	if budget <= 0 {
		if !req.Force {
			res.Reason = core.ReasonBelowThreshold + ": no budget is known yet"
			return nil, res, nil
		}
		budget = max(t.Tokens, 1)
		t.budget = budget
	}
	t.Target = int(e.cfg.Compaction.Target * float64(budget))
	t.Protected = protected(items, t.Target, e.cfg.recentMessages(&v))
	if !req.Force {
		// Unasked it takes nothing that the window still shows. Where no window was cut to this budget yet, that is what it will have room for.
		if t.shown() > budget {
			t.Left = max(t.Left, len(t.Entries)-protected(items, t.Target, len(items)))
		}
		t.Protected = max(t.Protected, len(t.Entries)-t.Left)
		if t.Tokens <= t.Target || t.Left == 0 {
			res.Reason = core.ReasonUnderTarget
			return nil, res, nil
		}
	} else if t.Tokens <= t.Target {
		t.Target = t.Tokens * 3 / 4
	}
	t.SummaryTokens = max(min(e.cfg.Compaction.MaxSummary, int(e.cfg.Compaction.SummaryShare*float64(budget))), 64)
	// What no window shows needs nothing that stands for it.
	said := func(entry core.Entry) bool { return !entry.Hidden() }
	if len(t.Entries) == 0 || len(t.Summaries) < 2 && !slices.ContainsFunc(t.Entries[:max(len(t.Entries)-t.Protected, 0)], said) {
		res.Reason = core.ReasonAlreadyCompacted + ": only the newest messages are left"
		return nil, res, nil
	}
	t.Publish = func(ctx context.Context, p core.Patch) error {
		t.open.Lock()
		defer t.open.Unlock()
		if t.closed {
			return fmt.Errorf("core: compact %q: the compaction is over: %w", t.Session, core.ErrClosed)
		}
		t.unpublished = t.apply(ctx, p)
		return t.unpublished
	}
	return t, res, nil
}

// shown is what the summaries and the entries that the window shows cost.
func (t *task) shown() int {
	n := t.Tokens
	for _, cost := range t.Cost[:t.Left] {
		n -= cost
	}
	return n
}

// recentMessages is how many of a session's newest messages are not compacted.
func (c *Config) recentMessages(v *core.View) int {
	if v.Parent != nil {
		return c.Subagents.RecentMessages
	}
	return c.RecentMessages
}

// protected is how many of the newest entries must stay: RecentMessages, unless they alone exceed the target, and never less than the
// newest group and what belongs to it.
func protected(items []item, target, recent int) int {
	n, said, cost := 0, 0, 0
	for _, g := range slices.Backward(groupsOf(items)) {
		own, c := 0, 0
		for _, it := range items[g.From:g.To] {
			if c += it.cost; it.entry.Type == core.TypeMessage && !it.entry.Leads() {
				own++
			}
		}
		if said > 0 && (said+own > max(recent, 1) || float64(cost+c) > 0.8*float64(target)) {
			break
		}
		n, said, cost = n+g.To-g.From, said+own, cost+c
	}
	return n
}

func firstID(entries []core.Entry) string {
	if len(entries) == 0 {
		return ""
	}
	return entries[0].ID
}

// conclude reports what a compaction did, and does what a forced one must when the compactor did nothing.
func (t *task) conclude(ctx context.Context, patch core.Patch, cerr error) (core.CompactResult, error) {
	after, res, err := t.measure(ctx)
	if err != nil {
		return core.CompactResult{}, err
	}
	// Where not enough came of it and the prompt does not fit, the oldest entries leave without a summary. What was shortened meanwhile costs less than the
	// task says, so one round may not be enough.
	for t.Force && after > t.budget {
		p := t.leave(after, res.FirstKept)
		if p.Empty() {
			break
		}
		if err := t.apply(ctx, p); err != nil {
			if errors.Is(err, errOvertaken) {
				return core.CompactResult{}, err
			}
			return core.CompactResult{}, t.e.failedIn(ctx, t.Session, "engine", "compact", err)
		}
		if after, res, err = t.measure(ctx); err != nil {
			return core.CompactResult{}, err
		}
	}
	res.Compacted = after < t.before
	res.Reason = patch.Reason
	if !res.Compacted && res.Reason == "" {
		res.Reason = core.ReasonAlreadyCompacted
	}
	if !res.Compacted && after > t.budget {
		res.OK = false
		res.Reason = "newest messages alone exceed the target"
	}
	if cerr != nil && !res.Compacted {
		res.OK, res.Reason = false, cerr.Error()
	}
	if res.OK && !res.Compacted && !benign(res.Reason) { // a compactor's own words
		res.Reason = core.ReasonAlreadyCompacted + ": " + res.Reason
	}
	return res, nil
}

// benign reports whether hosts know a reason.
func benign(reason string) bool {
	return slices.ContainsFunc([]string{core.ReasonBelowThreshold, core.ReasonUnderTarget, core.ReasonAlreadyCompacted}, func(known string) bool {
		return strings.Contains(reason, known)
	})
}

// leave is the patch that needs nobody's help: the oldest groups from the first live entry on go, until the target is reached.
func (t *task) leave(after int, first string) core.Patch {
	from := slices.IndexFunc(t.Entries, func(entry core.Entry) bool { return entry.ID == first })
	if from < 0 {
		return core.Patch{}
	}
	live := make([]item, 0, len(t.Entries)-from)
	for _, entry := range t.Entries[from:] {
		live = append(live, item{entry: entry})
	}
	r := core.Replacement{Kind: "note"}
	for _, g := range groupsOf(live) {
		if after+noteCost <= t.Target || from+g.To > len(t.Entries)-t.Protected {
			break
		}
		for i := g.From; i < g.To; i++ {
			r.Entries = append(r.Entries, live[i].entry.ID)
			after -= t.Cost[from+i]
		}
	}
	if len(r.Entries) == 0 {
		return core.Patch{}
	}
	r.Text = window.NotShown(len(r.Entries))
	return core.Patch{Replace: []core.Replacement{r}}
}

// live reads what is live now.
func (t *task) live(ctx context.Context) (v core.View, items []item, err error) {
	if err = t.e.resume(ctx, t.Session, func(s *session) error { v = s.view.Clone(); return nil }); err == nil {
		items, err = t.e.reader.read(ctx, &v, max(v.Frontier, v.Lead), v.Len())
	}
	return v, items, err
}

// measure costs what is live now.
func (t *task) measure(ctx context.Context) (int, core.CompactResult, error) {
	var res core.CompactResult
	total := 0
	v, items, err := t.live(ctx)
	for try := 0; try < 3 && errors.Is(err, core.ErrNotFound) && t.e.reread(ctx, t.Session) == nil; try++ { // it was purged meanwhile
		v, items, err = t.live(ctx)
	}
	if err != nil {
		return 0, res, err
	}
	for _, sum := range v.Summaries {
		total += sum.Tokens
		res.Summary = sum.Text
	}
	for i := range items {
		// Entries that came in meanwhile are not the compaction's doing.
		if items[i].entry.SessionID() == t.Session && items[i].entry.Seq >= t.next {
			continue
		}
		total += items[i].cost
		if res.FirstKept == "" {
			res.FirstKept = items[i].entry.ID
		}
	}
	res.OK, res.TokensBefore, res.TokensAfter = true, t.before, total
	return total, res, err
}

// summaryMeta are the keys under which a summary's entry says what it stands for, so that a view can be rebuilt from the entries.
const (
	metaKind       = "kind"
	metaFrontier   = "frontier"
	metaCovers     = "covers"
	metaLate       = "late"
	metaSupersedes = "supersedes"
	metaOf         = "of"
	metaErasures   = "erasures"
	metaEmptied    = "emptied"
)

// adoptSummary puts a stored summary into a view that does not know it.
func adoptSummary(v *core.View, entry core.Entry) {
	frontier, err := strconv.Atoi(entry.Meta[metaFrontier])
	if err != nil || frontier > v.Len() {
		return
	}
	gone := make(map[string]bool)
	for id := range strings.SplitSeq(entry.Meta[metaSupersedes], ",") {
		gone[id] = true
	}
	delete(gone, "")
	if !takesSummary(v, entry, frontier, gone) {
		return
	}
	var kept []core.Summary
	at := 0
	for i, sum := range v.Summaries {
		switch {
		case !gone[sum.ID]:
			kept = append(kept, sum)
		case len(kept) == i:
			at = i
		}
	}
	sum := summaryOf(entry)
	shown := frontier > v.Start // what it stands for
	if !shown {
		before := v.Front()
		v.Apply(edit.Show{Front: &before})
	} else {
		v.Apply(edit.Show{}, edit.Anew{})
	}
	if frontier <= v.Frontier {
		// It stands for older summaries; it goes where the first of them was.
		v.Apply(edit.Summarise{Summaries: slices.Insert(kept, at, sum)})
		return
	}
	v.Apply(edit.Summarise{Summaries: append(kept, sum)}, edit.Advance{Frontier: frontier})
	if shown {
		v.Apply(edit.Seek{}) // the message that the newest turn began with may be among it
	}
}

// takesSummary reports whether a summary stands for what the view has where it is to stand: the path may have been cut, or compacted by others, after it was made.
func takesSummary(v *core.View, entry core.Entry, frontier int, gone map[string]bool) bool {
	found := 0
	for _, sum := range v.Summaries {
		if sum.ID == entry.ID {
			return false
		}
		if gone[sum.ID] {
			found++
		}
	}
	of := spansOf(entry)
	if of == nil {
		return true // it does not say
	}
	if found < len(gone) {
		return false
	}
	for _, sp := range v.Slice(max(v.Frontier, v.Lead), frontier) {
		sp = sp.Owned(v.Session)
		if !slices.ContainsFunc(of, func(o core.Span) bool { return o.Holds(*sp.Session, sp.From) && sp.To <= o.To }) {
			return false
		}
	}
	return true
}

// erasedSince reports whether something was erased since a summary that a view does not know was made: it may hold what was erased.
func erasedSince(v *core.View, entry *core.Entry) bool {
	return entry.Type == core.TypeSummary && erasuresBefore(entry) != v.Erased
}

// erasuresBefore is what the view of a summary's session counted as erased when that was made.
func erasuresBefore(summary *core.Entry) uint64 {
	n, _ := strconv.ParseUint(summary.Meta[metaErasures], 10, 64) // without it nothing had been erased
	return n
}

// summaryOf returns what a view holds of a summary's entry.
func summaryOf(entry core.Entry) core.Summary {
	covers, _ := strconv.Atoi(entry.Meta[metaCovers])
	late, _ := strconv.Atoi(entry.Meta[metaLate])
	emptied, err := strconv.Atoi(entry.Meta[metaEmptied])
	if err != nil && entry.Meta[metaErasures] != "" { // an older version knew of erasures, and did not say of which
		emptied = covers
	}
	return core.Summary{
		ID: entry.ID, Kind: entry.Meta[metaKind], Text: entry.Message.Text(), Tokens: entry.Tokens, Covers: covers, Of: spansOf(entry),
		Late: late, Time: entry.Time, Erased: emptied,
	}
}

// spansOf returns which entries a summary's entry stands for; nil when it does not say.
func spansOf(entry core.Entry) []core.Span {
	var of []core.Span
	if exact.Read(entry.Meta[metaOf], &of) != nil {
		return nil
	}
	return of
}

// standing says what a summary stands for.
type standing struct {
	covers   int
	of       []core.Span
	late     int
	frontier int
	// erased is how many of them are known to be erased.
	erased int
}

// summaryEntry makes the entry of a replacement.
func (e *Engine) summaryEntry(v *core.View, r core.Replacement, s standing, at time.Time) core.Entry {
	meta := make(map[string]string, len(r.Meta)+5)
	maps.Copy(meta, r.Meta)
	meta[metaKind], meta[metaCovers], meta[metaFrontier] = r.Kind, strconv.Itoa(s.covers), strconv.Itoa(s.frontier)
	if of, err := exact.Text(s.of); err == nil {
		meta[metaOf] = of
	}
	if s.late > 0 {
		meta[metaLate] = strconv.Itoa(s.late)
	}
	if v.Erased > 0 || s.erased > 0 {
		meta[metaErasures], meta[metaEmptied] = strconv.FormatUint(v.Erased, 10), strconv.Itoa(s.erased)
	}
	if len(r.Summaries) > 0 {
		meta[metaSupersedes] = strings.Join(r.Summaries, ",")
	}
	m := message.New(message.User, r.Text)
	entry := e.entry(v.Session, m, v.Next, draft{kind: core.TypeSummary, meta: meta})
	entry.Time = at
	entry.Turn = v.Turns
	entry.Key = summaryKey + entry.ID
	return entry
}
