package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/internal/transcript"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// Assemble returns what the model sees next: at most Budget tokens of system messages, summaries, recent history and recalled entries.
//
// A BudgetError says that not even the newest messages fit. With FailDegrade any other failure of a part lets legacy answer, provided that
// the host handed over its transcript; the result is then flagged.
func (e *Engine) Assemble(ctx context.Context, req core.AssembleRequest) (_ core.AssembleResult, err error) {
	ctx, end := e.begin(ctx, "Assemble", req.Session)
	defer func() { end(err) }()
	if req.Budget <= 0 {
		return core.AssembleResult{}, invalid("assemble", "tokenBudget", "must be a positive number of tokens")
	}
	if why := e.health.resting(req.Session, e.now()); why != "" && req.Transcript != nil && req.Transcript.Skipped == 0 {
		e.pending.note(req.Session, core.Tally{Degraded: 1})
		return e.degraded(ctx, req, why)
	}
	if err := e.quarantined(req.Session); err != nil {
		if req.Transcript != nil {
			err = fmt.Errorf("core: assemble %q: %w", req.Session, core.ErrNeedTranscript) // with all of it legacy can answer
		}
		return core.AssembleResult{}, err
	}
	var res core.AssembleResult
	var count core.Tally
	began := e.now()
	err = e.retry(ctx, req.Session, func(s *session) error {
		var err error
		if res, err = s.assemble(ctx, req); err != nil {
			s.cool() // what was tried is not what is published
			return err
		}
		if count = s.count; s.view.Arm != "" && count.Recalled > 0 {
			s.quote.counted = true
		}
		return nil
	})
	if err == nil {
		message.Own(res.Messages) // the window goes on holding what it shows
		e.health.worked(req.Session, "assemble")
		if count.Calls > 0 {
			count.Took = e.now().Sub(began)
			e.pending.note(req.Session, count)
		}
		return res, nil
	}
	if err := e.failedIn(ctx, req.Session, "engine", "assemble", err); !e.cfg.mayDegrade(err) || req.Transcript == nil || req.Transcript.Skipped > 0 {
		if ctx.Err() == nil {
			e.pending.note(req.Session, core.Tally{Errors: 1})
		}
		return core.AssembleResult{}, err
	}
	e.pending.note(req.Session, core.Tally{Degraded: 1})
	return e.degraded(ctx, req, err.Error())
}

// assemble works on an open session.
func (s *session) assemble(ctx context.Context, req core.AssembleRequest) (core.AssembleResult, error) {
	if err := s.expire(ctx); err != nil {
		return core.AssembleResult{}, err
	}
	policy, stranger, err := s.e.historyPolicy(ctx, req.Settings)
	if err != nil {
		return core.AssembleResult{}, err
	}
	if req.Transcript != nil {
		if _, err := s.reconcile(ctx, req.Transcript, momentOf(&req), req.Settings); err != nil {
			return core.AssembleResult{}, err
		}
	}
	if req.PromptMode == "" && s.view.Parent != nil {
		req.PromptMode = s.e.cfg.Subagents.PromptMode
	}
	c := &call{e: s.e, req: req, share: s.e.recallShare(req.PromptMode), ws: s.e.rooms.get()}
	defer s.e.rooms.put(c.ws)
	c.explain(s.view.Explains)
	c.speak(s.view.Mute)
	c.callBudget(s)
	if c.asked, err = s.asked(ctx, req.Prompt); err != nil {
		return core.AssembleResult{}, err
	}
	f, err := c.worded(ctx, s, policy)
	if err != nil {
		return core.AssembleResult{}, err
	}
	if err := f.recall(ctx, c); err != nil {
		return core.AssembleResult{}, err
	}
	if c.wanted > 0 {
		s.cool()
		if f, err = c.worded(ctx, s, policy); err == nil {
			err = f.recall(ctx, c)
		}
		if err != nil {
			return core.AssembleResult{}, err
		}
	}
	res, err := f.emit(c)
	if err != nil {
		return core.AssembleResult{}, err
	}
	if err := f.remember(ctx, c, &res); err != nil {
		return core.AssembleResult{}, err
	}
	if c.turn != (turnBudget{}) {
		s.turn = c.turn
	}
	if stranger != "" && stranger != s.stranger {
		s.stranger = stranger
		res.Warnings = append(res.Warnings, fmt.Sprintf("provider %q: %s", stranger, strangerText))
	}
	return res, nil
}

// worded makes the window of a call, and makes it again where what is said behind the system prompt is another with it.
func (c *call) worded(ctx context.Context, s *session, policy history.Policy) (f *frame, err error) {
	again := func() {
		s.cool()
		f, err = c.shape(ctx, s, policy)
	}
	begin := func() {
		if c.begins(f, err) {
			c.explain(true)
			c.speak(false)
			again()
		}
	}
	f, err = c.shape(ctx, s, policy)
	if errors.Is(err, core.ErrBudget) && c.budget < c.req.Budget {
		// What the host grants now counts for more than what the turn began with.
		c.budget, c.stepped = c.req.Budget, false
		again()
	}
	begin()
	switch {
	case c.turnsMute(f, err):
		// What was said counts for more than what the engine has to say.
		c.speak(!c.mute)
		again()
		if !c.mute {
			begin()
		}
	case err == nil && f.crowdsOut(c):
		c.speak(true)
		again()
		if err != nil || f.unpinned() != nil || c.turnsMute(f, err) {
			c.speak(false) // it was of no use
			again()
		}
	}
	return f, err
}

// shape makes the window as the call stands.
func (c *call) shape(ctx context.Context, s *session, policy history.Policy) (*frame, error) {
	v := s.view.Clone()
	c.dirty = c.refer(&v)
	if v.Mute != c.mute || v.Explains != c.explains {
		if c.mute && !v.Mute {
			v.Apply(edit.Lean{Turn: v.LeanTurn}) // what it took, others may have
		}
		v.Apply(edit.Speak{Mute: c.mute, Explains: c.explains})
		c.stepped, c.dirty = true, true
	}
	if err := c.coldStart(ctx, s, &v); err != nil {
		return nil, err
	}
	return c.fit(ctx, s, v, policy)
}

// call is what one Assemble carries along.
type call struct {
	e     *Engine
	req   core.AssembleRequest
	ws    *workspace
	share float64
	// asked is what a person said of the prompt.
	asked string
	// full is the addition, with the engine's own text where it explains; addition is what this call says of it: all, or nothing where it is mute.
	full, addition         string
	fullCost, additionCost int
	mute, explains         bool
	// budget is what this call may use, in tokens; turn is what it is to be remembered by when it is the first of its turn.
	budget   int
	turn     turnBudget
	marks    window.Marks
	dirty    bool
	stepped  bool
	warnings []string
	recall   *core.Recall
	// wanted is what recall would take in this turn, in tokens, where the window has to step for it; 0 where it need not.
	wanted int
	// outAllowance are candidates that found no room.
	outAllowance []window.Choice
}

// strangerText says what becomes of messages for a provider that nothing is known of, and what to do.
const strangerText = "turn rules of this provider are not known: tool pairs are repaired and nothing else; set history.provider to the one whose rules it has"

// historyPolicy returns the rules of the provider at hand, and its name where they are not known. That is said once in the log, and once in each session.
func (e *Engine) historyPolicy(ctx context.Context, settings core.RuntimeSettings) (_ history.Policy, stranger string, _ error) {
	if provider := e.cfg.History.of(settings.Provider).Provider; provider != "" {
		p, err := history.PolicyFor(provider)
		return p, "", err
	}
	p, err := history.PolicyForModel(settings.Provider, settings.Model)
	if err == nil {
		return p, "", nil
	}
	if _, said := e.strangers.LoadOrStore(settings.Provider, true); !said {
		e.log.WarnContext(ctx, strangerText, "provider", settings.Provider, "model", settings.Model, "known", history.Providers())
	}
	return p, settings.Provider, nil
}

// expire takes entries of other sessions off the path, and out of the recall block, once the grant for them is over, or was taken back.
func (s *session) expire(ctx context.Context) error {
	now := s.e.now()
	if slices.ContainsFunc(recallsOf(&s.view), func(r *core.Recall) bool {
		return !r.Until.IsZero() && (!now.Before(r.Until) || len(granted(&s.view, now, false)) == 0)
	}) {
		v := s.view.Clone()
		v.Apply(edit.Unrecall{}, edit.Anew{})
		if err := s.settle(ctx, v); err != nil {
			return err
		}
	}
	open := granted(&s.view, now, false)
	for _, sp := range s.view.Path {
		if sp.Session == nil || slices.ContainsFunc(open, func(g core.Scope) bool { return g.Contains(*sp.Session) }) {
			continue
		}
		v := s.view.Clone()
		v.Apply(edit.Disown{Keep: open}, edit.Lapse{Now: now})
		s.cool()
		s.outputs = nil
		s.variants, s.trail = nil, nil // what was made of those entries is the host's own copy now, whole or not
		return s.settle(ctx, v)
	}
	return nil
}

// turnBudget is the budget of a turn's first call, and the prompt of that turn as far as the host told.
type turnBudget struct {
	tokens int
	// spare is what its other calls may use besides, in tokens.
	spare  int
	prompt string
}

// callBudget finds what this call may use. Inside a turn a host often states a budget without the deductions it made before the turn; what holds
// is the turn's own, less what the host appends meanwhile. A turn has one from its first call that succeeded on, until it is committed or another prompt
// comes.
func (c *call) callBudget(s *session) {
	req := &c.req
	began := s.turn.tokens > 0 && (req.Prompt == "" || promptKey(*req) == s.turn.prompt)
	if req.Call != core.CallLoop || req.Transcript == nil || !began {
		s.turn = turnBudget{}
		c.budget, c.turn = req.Budget, turnBudget{req.Budget, req.Settings.MaxOutputTokens / spareShare, promptKey(*req)}
		return
	}
	turn := s.turn.tokens + s.turn.spare
	c.budget = min(req.Budget, turn)
	if w := req.Settings.ContextWindow; w > req.Budget {
		c.budget = min(c.budget, turn-(w-req.Budget))
	}
	if c.budget <= 0 {
		c.budget = req.Budget
	}
}

// spareShare is what part of the room for an answer the calls inside a turn may use: better than a step in the middle of it.
const spareShare = 4

// loop reports whether the call is one inside a turn.
func (c *call) loop() bool { return c.req.Call == core.CallLoop }

// maxVariants bounds the memory of messages as they were sent.
const maxVariants = 4096

// unsure reports whether the session was read anew, or for the first time, and does not know yet what it sent.
func (s *session) unsure() bool { return s.variants == nil || s.reread }

// recollect makes a session that was read anew know what it sent last: what its view shows. The call that sent it may have been another process's, and inside a
// turn hosts hand it back.
func (s *session) recollect(ctx context.Context, settings core.RuntimeSettings) error {
	policy, _, err := s.e.historyPolicy(ctx, settings)
	if err != nil {
		return err
	}
	if err := s.warmUp(ctx); err != nil {
		return err
	}
	c := &call{e: s.e, budget: math.MaxInt, ws: s.e.rooms.get()}
	defer s.e.rooms.put(c.ws)
	f := s.frame(s.view.Clone(), policy, c.ws)
	res, err := f.emit(c)
	if err != nil {
		return err
	}
	f.note(&res)
	return nil
}

// remember publishes what changed and keeps what the next call compares with.
func (f *frame) remember(ctx context.Context, c *call, res *core.AssembleResult) error {
	s := f.s
	kept := f.note(res)
	s.count = core.Tally{}
	if f.v.Arm != "" {
		s.count = f.counted(c, res, kept)
	}
	if !c.dirty && s.owed == nil && s.goesOn() {
		return nil
	}
	if err := s.settle(ctx, f.v); err != nil {
		return fmt.Errorf("core: assemble: %w", err)
	}
	s.stale = false // that is what was sent
	return nil
}

// goesOn reports whether what was sent now begins with what the view says was sent last: whoever does not know of this call recognises it by that, when the host hands
// it back.
func (s *session) goesOn() bool {
	n := s.view.Output.Count
	return n == 0 || n <= len(s.trail) && s.trail[n-1].digest == s.view.Output.Digest && s.trail[n-1].calls.String() == s.view.Output.Calls
}

// note keeps what is known of a result when a host hands it back. It returns how many of its messages begin it as they began the last.
func (f *frame) note(res *core.AssembleResult) int {
	s := f.s
	s.reread, s.stale = false, false
	out := core.Ledger{Count: len(res.Messages), Len: f.v.Len()}
	if s.variants == nil || len(s.variants) > maxVariants {
		s.variants = make(map[string][]string)
	}
	room := make([]string, 0, 8)
	trail, before, kept := s.trail, true, 0 // most of what is sent was sent before
	var calls transcript.Calls
	for i := range res.Messages {
		fp := f.print(i, &res.Messages[i])
		calls = calls.Add(&res.Messages[i])
		if before && (i == len(trail) || trail[i].print != fp || trail[i].calls != calls) {
			trail, before = trail[:i], false
		}
		if !before {
			trail = append(trail, sentMessage{print: fp, digest: out.Digest.Add(fp), calls: calls})
		}
		if before {
			kept++
		}
		out.Digest = trail[i].digest
		if of := f.shownBy(i, room[:0]); len(of) != 1 || of[0] != fp {
			s.variants[fp] = slices.Clone(of)
		}
	}
	s.trail, out.Calls = trail[:len(res.Messages)], calls.String()
	s.sent(out)
	return kept
}

// sentMessage is one of the messages that were sent: its fingerprint, and the digests of the list up to it.
type sentMessage struct {
	print  string
	digest message.Digest
	calls  transcript.Calls
}

// print returns the fingerprint of message i of the result. That of a message which shows an entry as it is in the window is computed once.
func (f *frame) print(i int, m *message.Message) string {
	var it *item
	if n := f.ws.sent.first[i]; n >= 0 {
		it = f.ws.slots[n].it
	}
	if it == nil || it.msg.Type != m.Type || !same(&it.msg, m) {
		return message.Fingerprint(*m)
	}
	if it.print == "" {
		if it.print = message.Fingerprint(*m); it.print == it.entry.Fingerprint {
			it.print = it.entry.Fingerprint // the very same text is compared at once
		}
	}
	return it.print
}

// shownBy appends to out the fingerprints of the entries that message i of the result shows, and "" for what the engine put there: see ownMessages.
func (f *frame) shownBy(i int, out []string) []string {
	add := func(it *item) {
		if it.entry.Type == core.TypeMessage {
			out = append(out, it.entry.Fingerprint)
		}
	}
	for _, n := range f.ws.sent.members(i) {
		s := &f.ws.slots[n]
		if s.it != nil {
			add(s.it)
		} else {
			out = append(out, "")
		}
		for _, other := range s.others {
			if it := f.item(other); it != s.it {
				add(it)
			}
		}
	}
	return out
}
