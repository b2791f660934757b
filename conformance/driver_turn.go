package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// endTurn closes the open turn of a host: accepted turns are committed, failed ones only stand in the transcript.
func (d *driver) endTurn(t *track, o op, accepted bool) {
	if !d.plan.Managed || !t.open {
		return
	}
	turn, beat := t.cur, t.curBeat
	t.cur, t.open, t.curBeat = nil, false, false
	before := len(t.log)
	switch {
	case beat:
	case accepted:
		t.log = append(t.log, turn...)
	default:
		t.stands(turn)
	}
	if !accepted {
		return
	}
	t.commits++
	if e, ok := d.engine.(core.AfterTurner); ok && d.plan.AfterTurn && !beat {
		req := core.AfterTurnRequest{Session: t.id, Messages: messagesOf(t.log), PrePrompt: before}
		excused, err := d.call("after turn", true, func(ctx context.Context) error { return e.AfterTurn(ctx, req) })
		d.spurious("after turn", excused, err)
		if err == nil {
			d.took(t, turn)
			return
		}
		// Hosts do not repeat this call: the turn stands in the transcript.
		for _, it := range turn {
			t.loose[it.wire]++
		}
		return
	}
	e, ok := d.engine.(core.TurnCommitter)
	if !ok {
		return
	}
	req := core.CommitTurnRequest{
		Session: t.id, AdvancementKey: fmt.Sprintf("%s-turn-%d", t.id.Session, t.commits), Messages: messagesOf(turn), Heartbeat: beat,
		Settings: d.settings(),
	}
	var res core.CommitTurnResult
	done := d.persist("commit turn", func(ctx context.Context) (err error) { res, err = e.CommitTurn(ctx, req); return err }, t, turn)
	if !done {
		return
	}
	d.saw("idempotent.commit")
	if res.Status != core.Committed && res.Status != core.Duplicate {
		d.fail("idempotent.commit", "commit turn: status %q", res.Status)
		return
	}
	d.took(t, turn)
	t.commit = &req
}

// persist runs a call that stores a turn, and repeats it after an excused failure as hosts do.
func (d *driver) persist(name string, f func(context.Context) error, t *track, turn []item) bool {
	excused, err := d.call(name, true, f)
	d.spurious(name, excused, err)
	if err != nil && excused {
		d.noHalf(t, turn)
		if _, err = d.call(name, true, f); err != nil {
			d.fail("failure.spurious", "%s repeated after an injected failure: error %v", name, err)
		}
	}
	return err == nil
}

// commitAgain repeats the newest commit: the host's outbox does so after a crash.
func (d *driver) commitAgain(t *track) {
	e, ok := d.engine.(core.TurnCommitter)
	if !ok || t.commit == nil {
		return
	}
	before := d.storedCount(t)
	var res core.CommitTurnResult
	excused, err := d.call("commit turn again", true, func(ctx context.Context) (err error) {
		res, err = e.CommitTurn(ctx, *t.commit)
		return err
	})
	d.spurious("commit turn again", excused, err)
	if err != nil {
		return
	}
	if res.Status != core.Duplicate {
		d.fail("idempotent.commit", "commit of a known advancement key: status %q, want %q", res.Status, core.Duplicate)
	}
	if after := d.storedCount(t); after != before {
		d.fail("idempotent.commit", "commit of a known advancement key stores %d entries", after-before)
	}
}

func (d *driver) storedCount(t *track) int {
	n := 0
	for _, c := range d.storedWires(t) {
		n += c
	}
	return n
}

func (d *driver) settings() core.RuntimeSettings {
	return core.RuntimeSettings{Provider: d.plan.Provider, Format: d.plan.Format}
}

// rewind resets the host's transcript, or cuts it so that it goes on differently.
func (d *driver) rewind(t *track, o op) {
	if !d.plan.Managed || t.open || len(t.log) == 0 {
		return
	}
	if o.Kind == opReset && d.edited(t, o) {
		return
	}
	keep := 0
	if o.Kind == opFork {
		keep = o.N % len(t.log)
		// The cut is in front of a user message: hosts rewind to a prompt.
		for keep > 0 && !plainUser(t.log[keep]) {
			keep--
		}
	}
	t.log = t.log[:keep:keep]
	// A summary of what is still in force may stay.
	t.prev, t.compacted, t.waiting, t.commit = nil, t.compacted && keep > 0, nil, nil
	t.turn++
	// What follows is new, whatever it says.
	it := d.say(t, op{Size: 3, N: 1}, message.User)
	t.stands([]item{it})
	d.show(t)
}

// show lets the engine see the transcript, as every turn of a host begins.
func (d *driver) show(t *track) {
	for range 2 {
		d.assemble(t, op{N: 3})
		if t.prev != nil || d.failed != "" {
			return
		}
	}
}

// hostCompacts is the simulated host's own compaction: the older half of its transcript gives way to a summary.
func (d *driver) hostCompacts(req core.CompactRequest) core.CompactResult {
	res := core.CompactResult{OK: true, Compacted: true, Summary: "host summary", TokensBefore: 9000, TokensAfter: 4000, Delegated: true}
	if !d.plan.Managed || d.plan.Format != message.FormatPi {
		return res
	}
	for _, t := range d.tracks {
		if t == nil || t.id != req.Session || len(t.log) < 4 {
			continue
		}
		cut := len(t.log) / 2
		for cut > 0 && !plainUser(t.log[cut]) {
			cut--
		}
		if cut == 0 {
			return core.CompactResult{OK: true, Reason: core.ReasonUnderTarget, Delegated: true}
		}
		s, err := d.author.summary(fmt.Sprintf("host summary %d of %d messages", d.items, cut))
		if err != nil {
			d.tb.Fatalf("conformance: %v", err)
		}
		d.items++
		t.log = append([]item{s}, t.log[cut:]...)
		t.prev, t.waiting = nil, nil
		t.turn++
	}
	return res
}

func (d *driver) spawn(t *track, o op) {
	if _, ok := d.engine.(core.SubagentHost); !ok || t == d.tracks[3] {
		return
	}
	if d.plan.Managed && len(t.log) > 0 {
		d.show(t)
	}
	d.childs++
	child := newTrack(core.SessionID{Agent: t.id.Agent, Session: fmt.Sprintf("child-%d", d.childs)})
	if o.N%5 == 4 {
		child.id.Agent = "agent-c"
	}
	ttl := 30 * time.Minute
	req := core.SpawnRequest{Parent: t.id, Child: child.id, Mode: core.SpawnIsolated, TTL: ttl}
	if o.N%2 == 0 {
		req.Mode = core.SpawnFork
	}
	var sp core.Spawn
	excused, err := d.call("prepare spawn", true, func(ctx context.Context) (err error) {
		sp, err = d.engine.(core.SubagentHost).PrepareSubagentSpawn(ctx, req) // a fault may have made a new engine
		return err
	})
	d.spurious("prepare spawn", excused, err)
	if err != nil {
		return
	}
	if sp.Rollback == nil {
		d.fail("failure.spurious", "prepare spawn returns no rollback")
		return
	}
	if o.N%6 == 5 {
		if _, err := d.call("roll back spawn", true, sp.Rollback); err != nil {
			d.spurious("roll back spawn", excused, err)
		}
		return
	}
	child.parent, child.compacted, child.outgrew, child.added, child.minBudget, child.handedBack = t, t.compacted, t.outgrew, t.added, t.minBudget, t.handedBack
	if sp.GrantID != "" {
		child.granted = d.env.Host.Now().Add(ttl)
	}
	child.lines = t.lines
	child.grant, child.bounded = sp.GrantID, sp.GrantID != "" && !d.plan.Managed
	if req.Mode == core.SpawnFork {
		for _, it := range t.inForce(d.env.Host.Now()) {
			it.inherited = true
			child.log = append(child.log, it)
			for _, m := range it.marks {
				child.inherited[m], d.forked[m] = true, true
				if d.plan.Managed {
					d.copy(child.id.Agent, m)
				}
			}
		}
		for m := range t.floating {
			child.floating[m] = true
		}
		for m := range t.inherited {
			child.inherited[m] = true
		}
	}
	d.tracks[3] = child
}

// copy notes that a mark stands in the transcript of an agent's session.
func (d *driver) copy(agent, mark string) {
	if d.copies[agent] == nil {
		d.copies[agent] = map[string]int{}
	}
	d.copies[agent][mark]++
}

// ended hands a subagent's result back to its parent.
func (d *driver) ended(o op) {
	child := d.tracks[3]
	if _, ok := d.engine.(core.SubagentHost); !ok || child == nil {
		return
	}
	parent := child.parent
	req := core.SubagentEnded{Parent: parent.id, Child: child.id, Reason: "completed"}
	if o.N%3 == 0 {
		req.Parent = core.SessionID{}
	}
	if o.N%2 == 0 {
		m := d.mark(child)
		req.Result = m + " the subagent found it"
		parent.floating[m] = true
	}
	// An empty result lets the engine take the last answer, which is not longer than the longest message.
	const wrapped = 60
	longest := d.env.Count(req.Result)
	for _, it := range child.log {
		longest = max(longest, d.cost(it))
		for _, m := range it.marks {
			if !child.inherited[m] {
				parent.floating[m] = true
			}
		}
	}
	parent.handedBack += wrapped + 2*longest // each line is quoted
	excused, err := d.call("subagent ended", true, func(ctx context.Context) error {
		return d.engine.(core.SubagentHost).OnSubagentEnded(ctx, req)
	})
	d.spurious("subagent ended", excused, err)
	d.tracks[3] = nil
	if parent.prev != nil && parent.prev.quotesOf(child) { // as its result it stands there once: it is taken out of what was recalled, and what follows is sent anew
		parent.prev, parent.moved = nil, true
	}
}

// quotesOf reports whether a prompt recalls what a subagent said.
func (p *prompt) quotesOf(child *track) bool {
	for i := range p.wire {
		if !p.inRecall(i) && !p.quotes[i] {
			continue
		}
		text := strings.Join(p.wire[i].Texts, "\n")
		for _, it := range child.log {
			if slices.ContainsFunc(it.marks, func(m string) bool { return !child.inherited[m] && strings.Contains(text, m) }) {
				return true
			}
		}
	}
	return false
}

func (d *driver) maintain(t *track, o op) {
	e, ok := d.engine.(core.Maintainer)
	if !ok {
		return
	}
	req := core.MaintainRequest{Session: t.id, Reason: []string{"turn", "bootstrap", "compaction"}[o.N%3], Budget: d.plan.Budget}
	calls := d.env.Host.Compacts()
	excused, err := d.call("maintain", true, func(ctx context.Context) error { _, err := e.Maintain(ctx, req); return err })
	d.spurious("maintain", excused, err)
	t.compacted, t.moved = true, true
	if d.env.Host.Compacts() != calls {
		rule := "compact.exactly-once"
		if d.engine.Info().OwnsCompaction {
			rule = "compact.owner"
		}
		d.fail(rule, "maintain asked the runtime to compact")
	}
}
