package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// prompt is an assembled prompt with what must hold for it.
type prompt struct {
	d   *driver
	t   *track
	req core.AssembleRequest
	res core.AssembleResult
	// log is what was in force, in order, the system messages in front.
	log, system []item
	// current are marks that the host appends itself.
	current []string
	wire    []wireMessage
	// made reports messages that are no history: summaries, notes, the recall block.
	made []bool
	// quotes reports messages that hold recalled text, alone or merged with what was said.
	quotes []bool
	// mixed reports messages that hold a summary, alone or merged with what was said.
	mixed []bool
	turn  int
	prev  *prompt
	// shaky prompts were made while the store failed: what they show lasts as long as the process at most, and until the next failure.
	shaky bool
}

// inRecall reports whether message i belongs to the recall block.
func (p *prompt) inRecall(i int) bool {
	return i >= p.res.RecallAt && i < p.res.RecallAt+p.res.RecallLen
}

// assemble asks for the next prompt and looks at it from all sides.
func (d *driver) assemble(t *track, o op) {
	req := d.request(t, o)
	full := req.Transcript
	if full != nil && o.N%3 == 0 && len(full.Messages) > 2 && req.Call != core.CallLoop {
		skip := len(full.Messages) - 1 - o.N%2
		req.Transcript = &core.Transcript{Skipped: skip, Digest: message.DigestOf(full.Messages[:skip]), Messages: full.Messages[skip:], Whole: full.Whole}
	}
	res, excused, err := d.ask(req)
	if errors.Is(err, core.ErrNeedTranscript) && req.Transcript != full {
		req.Transcript = full
		res, excused, err = d.ask(req)
	}
	if excused {
		t.prev, t.recalled = nil, true
	}
	p := d.newPrompt(t, req, res)
	p.shaky = excused
	if err != nil {
		d.refused(p, excused, err)
		return
	}
	if !excused && res.Degraded == "" {
		t.tell(req)
	}
	if res.Degraded != "" {
		if !excused {
			d.fail("failure.spurious", "assemble degrades (%s), nothing was wrong with the call", res.Degraded)
		}
		t.prev = nil
		return
	}
	if d.failed != "" || !d.inspect(p) {
		return
	}
	t.prev, t.moved, t.added = p, false, t.added || res.SystemPromptAddition != ""
	switch o.N % 5 {
	case 1:
		d.askAgain(p)
	case 2:
		d.feedBack(p, o.N%2 == 1)
	}
}

func (d *driver) ask(req core.AssembleRequest) (res core.AssembleResult, excused bool, err error) {
	var given []message.Message
	if req.Transcript != nil {
		given = slices.Clone(req.Transcript.Messages)
	}
	excused, err = d.call("assemble", true, func(ctx context.Context) (err error) {
		res, err = d.engine.Assemble(ctx, req)
		return err
	})
	for i, m := range given {
		if now := req.Transcript.Messages[i]; now.Role != m.Role || now.ID != m.ID || now.Key != m.Key || now.Type != m.Type || len(now.Parts) != len(m.Parts) {
			d.fail("contract.given", "assemble changed message %d of the %d it was given: it has role %q, id %q and type %q, and had %q, %q and %q", i, len(given), now.Role, now.ID, now.Type, m.Role, m.ID, m.Type)
			break
		}
	}
	return res, excused, err
}

// otherBudgets are asked for now and then, and so are tinyBudgets, most of which must be refused.
var (
	otherBudgets = []int{300, 700, 2000, 5000, 16000, 32000}
	tinyBudgets  = []int{1, 4, 9, 14, 19, 60}
)

// request makes the request that a host or a caller would make now.
func (d *driver) request(t *track, o op) core.AssembleRequest {
	budget := d.plan.Budget + d.plan.Budget*(o.N%7-3)/100
	if o.N%13 == 12 {
		budget = otherBudgets[o.Size%len(otherBudgets)]
	}
	if o.N%7 == 6 {
		budget = tinyBudgets[o.Size%len(tinyBudgets)]
	}
	req := core.AssembleRequest{Session: t.id, Budget: budget, Call: core.CallPrompt, Settings: d.settings()}
	if !d.plan.Managed {
		if last, ok := t.last(); ok && !plainUser(last) {
			req.Call = core.CallLoop
		}
		return req
	}
	req.Transcript = d.handed(t)
	if t.open && plainUser(t.cur[0]) {
		req.Prompt = t.cur[0].msg.Text()
	}
	if t.open && len(t.cur) > 1 {
		req.Call = core.CallLoop
		if p := t.prev; p != nil && p.turn == t.turn && o.N%2 == 0 {
			req.Transcript = &core.Transcript{Messages: p.res.Messages}
		}
	}
	return req
}

func (d *driver) newPrompt(t *track, req core.AssembleRequest, res core.AssembleResult) *prompt {
	p := &prompt{d: d, t: t, req: req, res: res, log: t.inForce(d.env.Host.Now()), turn: t.turn, prev: t.prev, made: make([]bool, len(res.Messages)), quotes: make([]bool, len(res.Messages)), mixed: make([]bool, len(res.Messages))}
	if req.Transcript != nil {
		p.system = t.system
		p.log = slices.Concat(p.system, p.log)
	}
	if t.open {
		for _, it := range t.cur {
			p.current = append(p.current, it.marks...)
		}
	}
	for _, m := range res.Messages {
		w, err := readWire(m, d.plan.Format)
		if err != nil {
			d.fail("lost.verbatim", "an emitted message cannot be read: %v", err)
		}
		p.wire = append(p.wire, w)
	}
	shown := make([]bool, len(p.made))
	for _, c := range res.Choices {
		if c.Message < 0 || c.Message >= len(p.made) {
			continue
		}
		p.mixed[c.Message] = p.mixed[c.Message] || c.Reason == window.ReasonSummary
		switch c.Reason {
		case window.ReasonSummary, window.ReasonNote, window.ReasonRecalled:
			p.made[c.Message] = true
		default:
			shown[c.Message] = true
		}
	}
	for i := range p.made {
		p.made[i] = (p.made[i] || p.inRecall(i)) && !shown[i]
		// Nothing that is said begins a line like this.
		p.quotes[i] = strings.Contains("\n"+p.wire[i].text(), "\n>")
	}
	return p
}

// history returns what message i holds of what was said: the lines that begin with a mark, as all that the suite says does, and arguments of
// calls. A rule of the provider may have merged a message with what the engine made.
func (p *prompt) history(i int) []string {
	texts := p.wire[i].Texts
	if len(texts) == 1 && (p.made[i] || p.inRecall(i) || p.mixed[i]) {
		return nil
	}
	var out []string
	for _, s := range texts {
		if strings.HasPrefix(s, "{") {
			out = append(out, s)
			continue
		}
		for line := range strings.SplitSeq(s, "\n") {
			if at := markPattern.FindStringIndex(line); at != nil && at[0] == 0 {
				out = append(out, line)
			}
			if len(texts) > 1 && p.mixed[i] {
				break // a part of its own begins with its mark
			}
		}
	}
	return out
}

// quoted returns the quoted lines of message i, those of summaries left out: a summary may mention a thing twice, and what is shown besides it.
func (p *prompt) quoted(i int) []string {
	var out []string
	summary := false
	for line := range strings.SplitSeq(p.wire[i].text(), "\n") {
		switch {
		case !strings.HasPrefix(line, ">"):
			summary = strings.HasPrefix(line, "[") && strings.Contains(line, "summary #")
		case !summary:
			out = append(out, line)
		}
	}
	return out
}

// recalled returns the recalled text of message i.
func (p *prompt) recalled(i int) string {
	if !p.inRecall(i) && (!p.quotes[i] || len(p.wire[i].Texts) == 1) {
		// Where a provider's rule made one text of both, what the user said may hold anything.
		return ""
	}
	var out []string
	for _, s := range p.wire[i].Texts {
		at := markPattern.FindStringIndex(s)
		if said := at != nil && at[0] == 0 && len(p.wire[i].Texts) > 1; !said {
			out = append(out, s)
		}
	}
	return strings.Join(out, "\n")
}

// inspect runs all checks on a prompt and reports whether it may be compared with later ones.
func (d *driver) inspect(p *prompt) bool {
	d.learn(p)
	if p.t.minBudget == 0 || p.req.Budget < p.t.minBudget {
		p.t.minBudget = p.req.Budget
	}
	if _, fits := p.fits(); !fits {
		p.t.outgrew = true
	}
	for _, w := range p.wire {
		fmt.Fprintln(d.outputs, w.Raw)
	}
	fmt.Fprintln(d.outputs, p.res.SystemPromptAddition, p.res.RecallAt, p.res.RecallLen)
	for _, c := range slices.Concat(promptChecks, resultChecks, headChecks) {
		if _, ok := d.checks[c.ID]; !ok || c.prompt == nil {
			continue
		}
		if applies := promptApplies[c.ID]; applies == nil || applies(p) {
			d.saw(c.ID)
		}
		if text := c.prompt(p); text != "" {
			d.fail(c.ID, "%s%s", text, p.dump())
		}
	}
	return d.failed == ""
}

// dump shows a prompt, shortened.
func (p *prompt) dump() string {
	var b strings.Builder
	for i, w := range p.wire {
		if i == 40 {
			fmt.Fprintf(&b, "\n... %d more", len(p.wire)-i)
			break
		}
		kind := " "
		switch {
		case p.inRecall(i):
			kind = "r"
		case p.made[i]:
			kind = "m"
		}
		const shown = 160
		raw := w.Raw
		if len(raw) > shown {
			raw = strings.ToValidUTF8(raw[:shown*2/3]+" … "+raw[len(raw)-shown/3:], "?")
		}
		fmt.Fprintf(&b, "\n%2d%s %s", i, kind, raw)
	}
	return b.String()
}

// learn remembers the tags of recall blocks: hostile messages try to close them.
func (d *driver) learn(p *prompt) {
	for i := range p.wire {
		for _, tag := range tagsIn(p.recalled(i)) {
			if len(d.closing) < 3 && !contains(d.closing, tag) {
				d.closing = append(d.closing, tag)
			}
		}
	}
}

func contains(list []string, s string) bool {
	return slices.Contains(list, s)
}

// refused judges an error of Assemble.
func (d *driver) refused(p *prompt, excused bool, err error) {
	if !errors.Is(err, core.ErrBudget) {
		d.spurious("assemble", excused, err)
		return
	}
	d.saw("budget.refused")
	d.watch.tally.did(opRefused, 1)
	var b *core.BudgetError
	if !errors.As(err, &b) {
		d.fail("budget.refused", "assemble: error %v wraps ErrBudget and is no BudgetError", err)
		return
	}
	if b.Needed <= b.Budget {
		d.fail("budget.refused", "assemble refuses although %d of %d tokens are needed", b.Needed, b.Budget)
		return
	}
	// What cannot be left out: system messages, the newest user message, the newest group. Marks and repairs take some room.
	need, groups := 0, 0
	users := 0
	for _, it := range slices.Backward(p.log) {

		cost := d.words(it) // images give way
		switch {
		case it.beat:
		case it.msg.Role == message.System:
			need += cost
		case groups == 0 || groups == 1 && len(it.results) > 0, plainUser(it) && users == 0:
			need += cost
		}
		if !it.beat && len(it.results) == 0 {
			groups++
		}
		if plainUser(it) && !it.beat && !it.blank {
			users++
		}
	}
	const slack = 250
	if fits := need + slack; fits <= p.req.Budget*9/10 {
		d.fail("budget.refused", "assemble refuses (%v) although the newest messages cost only %d of %d tokens", err, need, p.req.Budget)
	}
}

// words counts a message without its images.
func (d *driver) words(it item) int {
	w, err := readWire(it.msg, d.plan.Format)
	if err != nil {
		return 0
	}
	w.Images = 0
	return recount([]wireMessage{w}, "", d.env.Count)
}

// cost counts a message the way prompts are recounted.
func (d *driver) cost(it item) int {
	if n, ok := d.costs[it.wire]; ok && it.wire != "" {
		return n
	}
	w, err := readWire(it.msg, d.plan.Format)
	if err != nil {
		return 0
	}
	n := recount([]wireMessage{w}, "", d.env.Count)
	d.costs[it.wire] = n
	return n
}

// askAgain repeats a request: nothing happened in between, so nothing changes.
func (d *driver) askAgain(p *prompt) {
	res, excused, err := d.ask(p.req)
	if excused || d.failed != "" {
		p.t.prev = nil
		return
	}
	if err != nil {
		d.fail("idempotent.repeat", "the same request fails the second time: %v", err)
		return
	}
	d.saw("idempotent.repeat")
	again := d.newPrompt(p.t, p.req, res)
	if text := sameWire(again.wire, p.wire); text != "" {
		d.fail("idempotent.repeat", "the same request a second time: %s%s", text, p.dump())
	}
	if res.SystemPromptAddition != p.res.SystemPromptAddition {
		d.fail("idempotent.repeat", "the same request a second time has another system prompt addition")
	}
}

// feedBack hands an engine its own output as the host's transcript, as hosts do inside a turn; or one that was started meanwhile.
func (d *driver) feedBack(p *prompt, restarted bool) {
	if p.req.Transcript == nil {
		return
	}
	if restarted && !p.shaky {
		d.restart(true)
	}
	before := d.storedCount(p.t)
	req := p.req
	req.Call = core.CallLoop
	req.Transcript = &core.Transcript{Messages: p.res.Messages}
	res, excused, err := d.ask(req)
	if excused || d.failed != "" {
		p.t.prev = nil
		return
	}
	if err != nil {
		d.fail("idempotent.own-output", "an engine fed its own output fails: %v", err)
		return
	}
	d.saw("idempotent.own-output")
	again := d.newPrompt(p.t, req, res)
	if text := sameWire(again.wire, p.wire); text != "" {
		d.fail("idempotent.own-output", "fed its own output: %s%s\nafter:%s", text, p.dump(), again.dump())
	}
	if after := d.storedCount(p.t); after != before {
		d.fail("idempotent.own-output", "fed its own output the engine stores %d more messages%s", after-before, p.dump())
	}
}

func sameWire(got, want []wireMessage) string {
	for i := range min(len(got), len(want)) {
		if got[i].Raw != want[i].Raw {
			return fmt.Sprintf("message %d is %.200q, was %.200q", i, got[i].Raw, want[i].Raw)
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d messages, were %d", len(got), len(want))
	}
	return ""
}
