package core

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// Assemble returns what the model sees next: at most Budget tokens of system messages, summaries, recent history and recalled entries.
//
// A BudgetError says that not even the newest messages fit. With FailDegrade any other failure of a part lets legacy answer, provided that
// the host handed over its transcript; the result is then flagged.
func (e *Engine) Assemble(ctx context.Context, req AssembleRequest) (AssembleResult, error) {
	if req.Budget <= 0 {
		return AssembleResult{}, invalid("assemble", "tokenBudget", "must be a positive number of tokens")
	}
	if p := e.health.quarantine(e.now()); p != "" && e.cfg.Failure == FailDegrade && req.Transcript != nil && req.Transcript.Skipped == 0 {
		return e.degraded(ctx, req, p)
	}
	var res AssembleResult
	err := e.retry(ctx, req.Session, func(s *session) error {
		var err error
		if res, err = e.assemble(ctx, s, req); err != nil {
			s.cool() // what was tried is not what is published
		}
		return err
	})
	if err == nil {
		return res, nil
	}
	if err := e.failed(ctx, "engine", "assemble", err); !e.mayDegrade(err) || req.Transcript == nil || req.Transcript.Skipped > 0 {
		return AssembleResult{}, err
	}
	return e.degraded(ctx, req, err.Error())
}

// assemble works on an open session.
func (e *Engine) assemble(ctx context.Context, s *session, req AssembleRequest) (AssembleResult, error) {
	if err := e.expire(ctx, s); err != nil {
		return AssembleResult{}, err
	}
	if req.Transcript != nil {
		if _, err := e.reconcile(ctx, s, req.Transcript); err != nil {
			return AssembleResult{}, err
		}
	}
	policy, err := e.historyPolicy(req)
	if err != nil {
		return AssembleResult{}, err
	}
	c := &call{req: req, share: e.recallShare(req.PromptMode)}
	if req.PromptMode != PromptNone {
		c.addition = addition(req.Memory)
	}
	c.additionCost = e.count(c.addition)
	c.budget = e.callBudget(s, req)

	v := s.view.Clone()
	c.dirty = e.refer(&v, c)
	if err := e.coldStart(ctx, s, &v, c); err != nil {
		return AssembleResult{}, err
	}
	f, err := e.fit(ctx, s, v, policy, c)
	if err != nil {
		return AssembleResult{}, err
	}
	if err := e.recall(ctx, f, c); err != nil {
		return AssembleResult{}, err
	}
	res, err := e.emit(f, c)
	if err != nil {
		return AssembleResult{}, err
	}
	return res, e.remember(ctx, f, c, &res)
}

// call is what one Assemble carries along.
type call struct {
	req          AssembleRequest
	share        float64
	addition     string
	additionCost int
	// budget is what this call may use, in tokens.
	budget   int
	marks    window.Marks
	dirty    bool
	stepped  bool
	warnings []string
	recall   *Recall
	// outAllowance are candidates that found no room.
	outAllowance []Choice
}

// historyPolicy returns the rules of the provider at hand.
func (e *Engine) historyPolicy(req AssembleRequest) (history.Policy, error) {
	if e.cfg.History.Provider != "" {
		return history.PolicyFor(e.cfg.History.Provider)
	}
	if p, err := history.PolicyFor(req.Settings.Provider); err == nil {
		return p, nil
	}
	return history.PolicyFor("")
}

// addition returns the text behind the host's system prompt.
func addition(m MemoryPrompt) string {
	var text strings.Builder
	text.WriteString(SystemPromptAddition)
	for _, section := range m.Sections {
		text.WriteString("\n\n" + section)
	}
	if len(m.AvailableTools) > 0 && slices.Contains(m.AvailableTools, "context_search") {
		text.WriteString("\n\nEntries that are not shown can be looked up with the tool context_search.")
		if m.CitationMode == "on" {
			text.WriteString(" Cite the entry id (#id) of what you use.")
		}
	}
	return text.String()
}

// expire takes entries of other sessions off the path, and out of the recall block, once the grant for them is over.
func (e *Engine) expire(ctx context.Context, s *session) error {
	now := e.now()
	if r := s.view.Recall; r != nil && !r.Until.IsZero() && !now.Before(r.Until) {
		v := s.view.Clone()
		v.Recall = nil
		v.Epoch++
		if err := e.publish(ctx, s, v); err != nil {
			return err
		}
	}
	open := e.granted(&s.view, now)
	for _, sp := range s.view.Path {
		if sp.Session == nil || slices.ContainsFunc(open, func(g Scope) bool { return g.Contains(*sp.Session) }) {
			continue
		}
		v := s.view.Clone()
		v.disown()
		v.Grants = nil
		s.cool()
		s.outputs = nil
		return e.publish(ctx, s, v)
	}
	return nil
}

// callBudget returns what this call may use. Inside a turn a host often states a budget without the deductions it made before the turn; what holds
// is the turn's own, less what the host appends meanwhile.
func (e *Engine) callBudget(s *session, req AssembleRequest) int {
	if req.Call != CallLoop || req.Transcript == nil || s.turnBudget == 0 {
		s.turnBudget = req.Budget
		return req.Budget
	}
	budget := min(req.Budget, s.turnBudget)
	if w := req.Settings.ContextWindow; w > req.Budget {
		budget = min(budget, s.turnBudget-(w-req.Budget))
	}
	if budget <= 0 {
		return req.Budget
	}
	return budget
}

// refer updates the budget the window is shaped for. Only the first call of a turn may change it: budgets inside a turn shrink by what the
// host appends.
func (e *Engine) refer(v *View, c *call) bool {
	if c.req.Call == CallLoop && c.req.Transcript != nil && v.Budget > 0 {
		return false
	}
	ref := window.Reference(v.Budget, c.budget)
	if ref == v.Budget {
		return false
	}
	if v.Budget > 0 && float64(ref) >= reopen*float64(v.Budget) && v.Start > max(v.Frontier, v.Lead) {
		v.Start = -1 // a much larger window has room for what had to leave a smaller one
	}
	before := len(e.shownSummaries(v))
	v.Budget = ref
	if len(e.shownSummaries(v)) != before {
		v.Epoch++
		c.stepped = true
	}
	return true
}

// reopen is how much larger than before a budget must be for the window to take back what had left it.
const reopen = 1.5

// coldStart finds the window's start where there is none: a long history was imported, the path was cut, or the budget grew. It reads from the end.
func (e *Engine) coldStart(ctx context.Context, s *session, v *View, c *call) error {
	n := v.Len()
	c.marks = e.policy().Marks(v.Budget, c.budget, c.share, 0)
	first := max(v.Start, v.Frontier, v.Lead)
	if v.Start >= 0 && (s.warm || n-first <= coldEntries) {
		return nil
	}
	start, err := e.walkBack(ctx, v, n, max(c.marks.Low-c.additionCost, 1))
	if err != nil {
		return err
	}
	if v.Start >= 0 && start <= first {
		return nil
	}
	// Never less than the newest entry; groups torn by the cut are mended by fit, which starts at a group's first message.
	start = min(start, max(n-1, 0))
	start, err = e.groupStart(ctx, v, start)
	if err != nil {
		return err
	}
	old := s.view
	v.Start, v.Shown = max(start, v.Frontier, v.Lead), nil
	if v.Pinned, err = e.promptBefore(ctx, v, v.Start); err != nil {
		return err
	}
	v.Backlog = e.backlogGuess(&old, v)
	v.Epoch++
	c.dirty, c.stepped = true, true
	s.view, s.warm = *v, false
	err = e.warmUp(ctx, s)
	s.view = old
	return err
}

// promptBefore returns the user message that the window's first turn began with, when the window begins behind it; "" when a turn begins inside.
func (e *Engine) promptBefore(ctx context.Context, v *View, start int) (string, error) {
	items, err := e.read(ctx, v, start, v.Len())
	if err != nil {
		return "", err
	}
	for i := range items {
		if isPrompt(items[i].entry) {
			return "", nil
		}
	}
	const page = 64
	for to := start; to > v.Lead && start-to < coldEntries*4; to -= page {
		from := max(to-page, v.Lead)
		if items, err = e.read(ctx, v, from, to); err != nil {
			return "", err
		}
		for _, it := range slices.Backward(items) {
			if isPrompt(it.entry) {
				return it.entry.ID, nil
			}
		}
	}
	return "", nil
}

// coldEntries is how many entries a window may be made of before it is sought from its end.
const coldEntries = 512

// groupStart moves a position back to the beginning of a group: to the assistant message whose results stand there, and over what
// is no message of the conversation.
func (e *Engine) groupStart(ctx context.Context, v *View, pos int) (int, error) {
	for back := 0; pos > max(v.Lead, v.Frontier) && back < coldEntries; back++ {
		items, err := e.read(ctx, v, pos, pos+1)
		if err != nil {
			return 0, err
		}
		if ent := items[0].entry; ent.Role != message.Tool && ent.Type == TypeMessage {
			return pos, nil
		}
		pos--
	}
	return pos, nil
}

// backlogGuess estimates what the entries between frontier and start cost, without reading them.
func (e *Engine) backlogGuess(old, v *View) int {
	left := v.Start - v.Frontier
	if left <= 0 {
		return 0
	}
	if old.Backlog > 0 && old.Start > old.Frontier {
		return old.Backlog * left / (old.Start - old.Frontier)
	}
	return left * 100
}

// fit makes the window fit: clips what is new and too large, and steps when the window exceeds the high mark.
func (e *Engine) fit(ctx context.Context, s *session, v View, policy history.Policy, c *call) (*frame, error) {
	if err := e.warmUp(ctx, s); err != nil {
		return nil, err
	}
	if first := max(v.Start, v.Lead); first > s.base {
		s.drop(first - s.base)
	}
	e.clipNew(s, &v, c)
	if start := e.limitStart(s, &v, c); start > s.base {
		e.moveStart(s, &v, start, c)
	}
	if v.Lean > 0 && v.LeanTurn != v.Turns {
		v.Lean = 0 // a new turn may have room again
		v.Epoch++
		c.stepped, c.dirty = true, true
	}
	for {
		f, err := e.fitLean(s, &v, policy, c)
		if err == nil || v.Lean >= leanUnpinned {
			return f, err
		}
		v.Lean++
		v.LeanTurn = v.Turns
		c.stepped, c.dirty = true, true
	}
}

// fitLean makes the window fit at one level of leanness.
func (e *Engine) fitLean(s *session, v *View, policy history.Policy, c *call) (*frame, error) {
	var f *frame
	for range 64 {
		f = e.frame(s, *v, policy)
		total := e.fixed(f, c.additionCost) + sum(f.costs)
		mean := 0
		if len(f.groups) > 0 {
			mean = sum(f.costs) / len(f.groups)
		}
		c.marks = e.policy().Marks(v.Budget, c.budget, c.share, mean)
		high := c.marks.High
		if r := v.Recall; r != nil && !c.stepped && !e.recallStale(f, c) {
			// Inside a turn the recall block stays: the window must leave room for it.
			high = min(high, c.marks.Hard-r.Tokens)
		}
		if total <= high {
			return f, nil
		}
		if !e.step(f, v, c) {
			break
		}
	}
	if r := v.Recall; r != nil && r.Tokens > 0 && !c.stepped && e.fixed(f, c.additionCost)+sum(f.costs)+r.Tokens > c.marks.Hard {
		// The window cannot give way, so the recall block does.
		v.Recall = nil
		v.Epoch++
		c.stepped, c.dirty = true, true
		f.v = *v
	}
	return f, e.squeeze(f, v, c)
}

func sum(costs []int) int {
	n := 0
	for _, c := range costs {
		n += c
	}
	return n
}

// step moves the window down to the low mark. It returns false when nothing can give way any more.
func (e *Engine) step(f *frame, v *View, c *call) bool {
	s := f.s
	groups := e.plannerGroups(f)
	fixed := e.fixed(f, c.additionCost)
	if e.left(f) == 0 && e.cfg.Window.Note {
		fixed += noteCost
	}
	plan := window.Step(groups, fixed, c.marks, e.cfg.Window.KeepResults, noteCost)
	if plan.Drop == 0 && len(plan.Masks) == 0 {
		return e.splitMerged(f, v, c)
	}
	v.Shown = nil
	for _, m := range plan.Masks {
		e.maskResult(f, v, m)
	}
	if plan.Pin {
		e.pin(f, v, plan.PinGroup)
	}
	if plan.Drop > 0 {
		start := f.start(plan.Drop)
		if start <= s.base && len(plan.Masks) == 0 {
			return false
		}
		e.moveStart(s, v, start, c)
	}
	c.stepped, c.dirty = true, true
	v.Epoch++
	return true
}

// splitMerged lets the oldest of several texts leave that a rule merged into the window's first message. It returns false when there is none.
func (e *Engine) splitMerged(f *frame, v *View, c *call) bool {
	if len(f.msgs) == 0 || f.msgs[0].Role != message.User || !slices.ContainsFunc(f.members[0][min(1, len(f.members[0])):], f.isTurn) {
		return false
	}
	v.Shown = nil
	e.moveStart(f.s, v, f.place[f.members[0][1]], c)
	v.Epoch++
	return true
}

// start returns the position at which a group begins: that of its first message that shows an entry.
func (f *frame) start(group int) int {
	for _, m := range f.msgs[f.groups[group].From:] {
		if place, ok := f.place[m.Entry]; ok {
			return place
		}
	}
	return f.s.base
}

// maskResult masks the r-th entry of a group that carries results.
func (e *Engine) maskResult(f *frame, v *View, m window.Mask) {
	r := 0
	for j := f.groups[m.Group].From; j < f.groups[m.Group].To; j++ {
		if f.msgs[j].Role != message.Tool {
			continue
		}
		for _, id := range f.members[j] {
			if !f.isResult(id) {
				continue
			}
			if r == m.Result {
				it := f.known[id]
				e.setStub(f.s, v, it, e.mask(it.entry))
				return
			}
			r++
		}
	}
}

// setStub changes what the window shows of an entry.
func (e *Engine) setStub(s *session, v *View, it *item, st Stub) {
	if v.Stubs == nil {
		v.Stubs = make(map[string]Stub)
	}
	v.Stubs[it.entry.ID] = st
	*it = e.item(it.entry, &st)
}

// pin keeps a user message in front although its turn begins behind it.
func (e *Engine) pin(f *frame, v *View, group int) {
	for _, id := range slices.Backward(f.members[f.groups[group].From]) {
		if it := f.known[id]; f.isTurn(id) {
			pinned := *it
			f.s.pinned = &pinned
			v.Pinned = id
			return
		}
	}
}

// moveStart lets the window begin at a position and forgets what only concerned the entries in front of it.
func (e *Engine) moveStart(s *session, v *View, start int, c *call) {
	n := min(max(start-s.base, 0), len(s.items))
	for i := range n {
		it := &s.items[i]
		v.Backlog += it.cost
		if it.entry.ID != v.Pinned {
			delete(v.Stubs, it.entry.ID)
		}
	}
	// A turn that the window begins with needs no pin; one that ended is history.
	for i := n; i < len(s.items); i++ {
		if isPrompt(s.items[i].entry) {
			if v.Pinned != "" {
				delete(v.Stubs, v.Pinned)
			}
			v.Pinned, s.pinned = "", nil
			break
		}
	}
	s.drop(n)
	v.Start, v.Shown = s.base, nil
	c.stepped, c.dirty = true, true
}

// cool forgets the window; the next call reads it again.
func (s *session) cool() {
	s.items, s.lead, s.pinned, s.base, s.warm = nil, nil, nil, 0, false
}

// drop forgets the first n items.
func (s *session) drop(n int) {
	n = min(n, len(s.items))
	s.items = slices.Clone(s.items[n:])
	s.base += n
}

// limitStart returns where the window must begin for the limit of user turns. Like the budget's it moves in steps.
func (e *Engine) limitStart(s *session, v *View, c *call) int {
	limit := history.LimitFor(c.req.Session.Session, e.cfg.History.Limits)
	if limit <= 0 {
		limit = e.cfg.History.LimitTurns
	}
	if limit <= 0 {
		return s.base
	}
	msgs := make([]message.Message, len(s.items))
	for i := range s.items {
		msgs[i] = s.items[i].msg
		msgs[i].Entry = strconv.Itoa(i)
	}
	kept := history.LimitTurns(msgs, limit)
	if len(kept) == len(msgs) || len(kept) == 0 {
		return s.base
	}
	v.Epoch++
	first, _ := strconv.Atoi(kept[0].Entry)
	return s.base + first
}

// maxVariants bounds the memory of messages as they were sent.
const maxVariants = 4096

// remember publishes what changed and keeps what the next call compares with.
func (e *Engine) remember(ctx context.Context, f *frame, c *call, res *AssembleResult) error {
	s := f.s
	out := Ledger{Count: len(res.Messages), Len: f.v.Len()}
	if s.variants == nil || len(s.variants) > maxVariants {
		s.variants = make(map[string][]string)
	}
	shows := f.shownBy(res)
	for i := range res.Messages {
		fp := message.Fingerprint(res.Messages[i])
		out.Digest = out.Digest.Add(fp)
		if of := shows[i]; len(of) != 1 || of[0] != fp {
			s.variants[fp] = of
		}
	}
	s.sent(out)
	if !c.dirty {
		return nil
	}
	if err := e.publish(ctx, s, f.v); err != nil {
		return fmt.Errorf("core: assemble: %w", err)
	}
	return nil
}

// shownBy lists for every message of a result the fingerprints of the entries it shows.
func (f *frame) shownBy(res *AssembleResult) map[int][]string {
	out := make(map[int][]string, len(res.Messages))
	for _, ch := range res.Choices {
		if ch.Message < 0 || ch.Reason == ReasonRecalled || ch.Reason == ReasonSummary {
			continue
		}
		it := f.known[ch.Entry]
		if it == nil {
			it = f.leadItem(ch.Entry)
		}
		if it != nil && it.entry.Type == TypeMessage {
			out[ch.Message] = append(out[ch.Message], it.entry.Fingerprint)
		}
	}
	return out
}

func (f *frame) isLead(id string) bool { return f.leadItem(id) != nil }

// leadItem returns the item of an entry that stands in front of the window: a leading system message or the pinned one.
func (f *frame) leadItem(id string) *item {
	for i := range f.s.lead {
		if f.s.lead[i].entry.ID == id {
			return &f.s.lead[i]
		}
	}
	if p := f.s.pinned; p != nil && p.entry.ID == id {
		return p
	}
	return nil
}
