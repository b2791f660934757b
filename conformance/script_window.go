package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

func (s *script) assemble(budget int, change func(*core.AssembleRequest)) (core.AssembleResult, error) {
	req := core.AssembleRequest{Session: s.id, Budget: budget}
	if change != nil {
		change(&req)
	}
	res, err := s.engine.Assemble(s.ctx(), req)
	return res, s.heard("assemble", err)
}

func scriptAssemble(s *script) string {
	var epoch uint64
	var entries []core.Entry
	for round := range 4 {
		more, text := s.talk(s.id, 2, 3)
		if text != "" {
			return text
		}
		entries = append(entries, more...)
		var last core.AssembleResult
		for again := range 2 {
			res, err := s.assemble(8000, nil)
			if err != nil {
				return fmt.Sprintf("assemble: error %v", err)
			}
			if text := s.trueResult(res, entries); text != "" {
				return text
			}
			if again == 1 || round > 0 {
				if res.Epoch != epoch || res.Stepped {
					return fmt.Sprintf("the window did not move, the epoch was %d and is %d, stepped is %v", epoch, res.Epoch, res.Stepped)
				}
			}
			if again == 1 {
				if d := differs(res, last); d != "" {
					return "the same call again gives another result: " + d
				}
			}
			last, epoch = res, res.Epoch
		}
	}
	return ""
}

// trueResult looks at a prompt of a conversation that fits whole.
func (s *script) trueResult(res core.AssembleResult, entries []core.Entry) string {
	if len(res.Messages) != len(entries) {
		return fmt.Sprintf("%d messages are shown of a conversation of %d that fits", len(res.Messages), len(entries))
	}
	var wire []wireMessage
	for i, m := range res.Messages {
		w, err := readWire(m, "")
		if err != nil {
			return err.Error()
		}
		wire = append(wire, w)
		if m.Entry != entries[i].ID {
			return fmt.Sprintf("message %d shows entry %q, want %q", i, m.Entry, entries[i].ID)
		}
		if !slices.ContainsFunc(res.Choices, func(c window.Choice) bool {
			return c.Message == i && c.Entry == entries[i].ID && c.Count == 1 && c.Reason == window.ReasonTail && c.Tokens == entries[i].Tokens && c.Stub == ""
		}) {
			return fmt.Sprintf("no choice says why message %d (entry %q, %d tokens) is there: %+v", i, entries[i].ID, entries[i].Tokens, res.Choices)
		}
	}
	for _, c := range res.Choices {
		if c.Message < 0 || c.Message >= len(res.Messages) {
			return fmt.Sprintf("a choice is about message %d, and nothing is out: %+v", c.Message, c)
		}
	}
	n := recount(wire, res.SystemPromptAddition, s.env.Count)
	switch {
	case res.EstimatedTokens != n:
		return fmt.Sprintf("the estimate is %d, the prompt costs %d", res.EstimatedTokens, n)
	case res.PromptAuthority != core.AuthorityAssembled:
		return fmt.Sprintf("the authority is %q", res.PromptAuthority)
	case res.CompactionDue:
		return "compaction is due for a conversation that fits"
	case len(res.Warnings) > 0 || res.Degraded != "":
		return fmt.Sprintf("warnings %q and degraded %q where nothing is wrong", res.Warnings, res.Degraded)
	case res.RecallAt != 0 || res.RecallLen != 0:
		return fmt.Sprintf("a recall block of %d at %d where everything is shown", res.RecallLen, res.RecallAt)
	}
	return ""
}

func scriptModes(s *script) string {
	if _, text := s.talk(s.id, 4, 5); text != "" {
		return text
	}
	const section = "The notes tool is called jotter."
	plain, err := s.assemble(4000, func(r *core.AssembleRequest) { r.Memory.Sections = []string{section} })
	if err != nil || !strings.Contains(plain.SystemPromptAddition, section) {
		return fmt.Sprintf("a section of the host is not passed through: addition %q, error %v", plain.SystemPromptAddition, err)
	}
	for _, call := range []core.Call{"", core.CallPrompt, core.CallLoop} {
		for _, mode := range []core.PromptMode{core.PromptFull, core.PromptMinimal, core.PromptNone} {
			res, err := s.assemble(4000, func(r *core.AssembleRequest) { r.Call, r.PromptMode, r.Memory.Sections = call, mode, []string{section} })
			if err != nil || len(res.Messages) != len(plain.Messages) {
				return fmt.Sprintf("assemble in mode %q, call %q: %d messages, error %v, want %d", mode, call, len(res.Messages), err, len(plain.Messages))
			}
			if mode == core.PromptNone && (res.SystemPromptAddition != "" || res.RecallLen != 0) {
				return fmt.Sprintf("mode none, call %q, adds %q and a recall block of %d", call, res.SystemPromptAddition, res.RecallLen)
			}
			if mode == core.PromptFull && res.SystemPromptAddition != plain.SystemPromptAddition {
				return fmt.Sprintf("mode full, call %q, has another addition than no mode", call)
			}
		}
	}
	prompt := markOf(0, 999) + " and what now"
	res, err := s.assemble(4000, func(r *core.AssembleRequest) {
		r.Prompt = prompt
		r.Transcript = &core.Transcript{Messages: plain.Messages}
	})
	if err != nil {
		return fmt.Sprintf("assemble with a prompt: error %v", err)
	}
	for i, m := range res.Messages {
		if strings.Contains(m.Text(), markOf(0, 999)) {
			return fmt.Sprintf("message %d is the prompt that the host appends itself", i)
		}
	}
	return ""
}

func scriptTiny(s *script) string {
	if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: s.message(message.System, strings.Repeat("be careful ", 20))}); err != nil {
		return fmt.Sprintf("ingest: error %v", err)
	}
	if _, text := s.talk(s.id, 7, 12); text != "" {
		return text
	}
	refusals := 0
	for _, budget := range []int{1, 2, 5, 10, 20, 40, 80, 120, 200, 400, 800, 2000} {
		res, err := s.assemble(budget, nil)
		if err == nil {
			if n, text := s.recounted(res); text != "" || n > budget || len(res.Messages) == 0 {
				return fmt.Sprintf("with a budget of %d the prompt has %d messages and costs %d %s", budget, len(res.Messages), n, text)
			}
			continue
		}
		refusals++
		var b *core.BudgetError
		switch {
		case !errors.Is(err, core.ErrBudget) || !errors.As(err, &b):
			return fmt.Sprintf("assemble with a budget of %d: error %v, want a BudgetError", budget, err)
		case b.Budget != budget, b.Needed <= budget, b.System < 0, b.System > b.Needed:
			return fmt.Sprintf("assemble with a budget of %d: refused with %+v", budget, *b)
		case b.Entry == "" && b.System <= budget:
			return fmt.Sprintf("assemble with a budget of %d: refused with %+v, and no entry is named although the system prompt has room", budget, *b)
		case b.Entry != "":
			if _, text := s.get(s.id, b.Entry); text != "" {
				return "the refusal: " + text
			}
		}
	}
	if refusals == 0 {
		return "a budget of 1 token was never refused"
	}
	var b *core.BudgetError
	if _, err := s.assemble(1, func(r *core.AssembleRequest) { r.Session, r.Transcript = sessionOf(1), s.transcript(3) }); !errors.As(err, &b) {
		return fmt.Sprintf("assemble of a transcript with a budget of 1: error %v, want a BudgetError", err)
	}
	if res, err := s.assemble(8000, nil); err != nil || len(res.Messages) != 8 {
		return fmt.Sprintf("with room again: %d messages, error %v, want 8", len(res.Messages), err)
	}
	return inTurn(s.blamed, s.sectionsGiveWay)
}

// sectionsGiveWay hands over sections that have no room beside what must stay. They can be left out.
func (s *script) sectionsGiveWay() string {
	for n, words := range []int{40, 400} {
		s.id = recallSession(fmt.Sprintf("under sections %d", n))
		if _, text := s.talk(s.id, 4, 2); text != "" {
			return text
		}
		sections := []string{strings.Repeat("note ", words), strings.Repeat("word ", words)}
		const budget = 60
		res, err := s.assemble(budget, func(r *core.AssembleRequest) { r.Memory.Sections = sections })
		if err != nil {
			return fmt.Sprintf("assemble with a budget of %d, which the newest messages fit, and sections that do not: error %v", budget, err)
		}
		if n, text := s.recounted(res); text != "" || n > budget {
			return fmt.Sprintf("with sections and a budget of %d the prompt costs %d %s", budget, n, text)
		}
		if text := s.endsNewest(res); text != "" {
			return "with sections that have no room: " + text
		}
	}
	return ""
}

// described compares what Describe counts with a prompt of a session that outgrew its budget, with a message in it that had to be shortened.
func (s *script) described(r engine.Recaller) string {
	id := core.SessionID{Agent: "agent-a", Session: "described"}
	if _, text := s.talk(id, 13, 25); text != "" {
		return text
	}
	if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: s.message(message.User, strings.Repeat("the kestrel bridge works again ", 400))}); err != nil {
		return fmt.Sprintf("ingest: error %v", err)
	}
	res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 900})
	if err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	shown, shortened := map[string]bool{}, map[string]bool{}
	out := 0
	for _, c := range res.Choices {
		if c.Message < 0 && c.Reason != window.OutAllowance {
			out += c.Count
		}
		if c.Message < 0 || c.Entry == "" || c.Reason == window.ReasonRecalled {
			continue
		}
		if shown[c.Entry] = true; c.Stub != "" {
			shortened[c.Entry] = true
		}
	}
	if out != 14-len(shown) {
		return fmt.Sprintf("the choices say why %d of 14 entries are shown and why %d are not: %+v", len(shown), out, res.Choices)
	}
	d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: id})
	if err != nil || d.Entries != 14 || d.Shown != len(shown) || d.Left != 14-len(shown) || d.Shortened != len(shortened) {
		return fmt.Sprintf("describe of 14 entries of which the prompt shows %d, %d of them shortened: %+v, error %v", len(shown), len(shortened), d, err)
	}
	return ""
}

func scriptForget(s *script) string {
	f, ok := s.engine.(engine.Forgetter)
	if !ok {
		return ""
	}
	other := sessionOf(1)
	entries, text := s.talk(s.id, 12, 4)
	if text != "" {
		return text
	}
	others, text := s.talk(other, 4, 4)
	if text != "" {
		return text
	}
	if _, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: s.id.Scope(), Entries: []string{entries[0].ID, "nobody"}}); !errors.Is(err, core.ErrNotFound) {
		return fmt.Sprintf("forget of an unknown entry: error %v, want ErrNotFound", err)
	}
	if d := sameEntries(s.held(s.id), entries); d != "" {
		return "after a forget that was refused: " + d
	}
	gone := map[string]bool{}
	var receipts []engine.Receipt
	for _, c := range []struct {
		req  engine.ForgetRequest
		from []core.Entry
	}{
		{engine.ForgetRequest{Scope: s.id.Scope(), Entries: idsOf(entries[1:4]), Reason: "asked for"}, entries[1:4]},
		{engine.ForgetRequest{Scope: s.id.Scope(), From: entries[5].Time, To: entries[8].Time}, entries[5:8]},
	} {
		rec, err := f.Forget(s.ctx(), c.req)
		if err != nil {
			return fmt.Sprintf("forget: error %v", err)
		}
		if rec.ID == "" || rec.Time.IsZero() || rec.Entries != len(c.from) || rec.Sessions != 1 || rec.Request.Reason != c.req.Reason || rec.Request.Scope != c.req.Scope || len(rec.Left) > 0 {
			return fmt.Sprintf("forget of %d entries: the receipt is %+v", len(c.from), rec)
		}
		for _, e := range c.from {
			gone[e.ID] = true
		}
		if text := s.without(entries, gone); text != "" {
			return text
		}
		receipts = append(receipts, rec)
		if text := s.kept(receipts); text != "" {
			return text
		}
		s.env.Host.advance(time.Second)
	}
	if d := sameEntries(s.held(other), others); d != "" {
		return "another session after an erasure: " + d
	}
	s.reopen(true)
	if text := s.without(entries, gone); text != "" {
		return "after a restart: " + text
	}
	before, err := s.assemble(8000, nil)
	if err != nil || len(before.Messages)-before.RecallLen != len(entries)-len(gone) {
		return fmt.Sprintf("after an erasure: %d messages and %d of recall, error %v, want %d", len(before.Messages)-before.RecallLen, before.RecallLen, err, len(entries)-len(gone))
	}
	f, _ = s.engine.(engine.Forgetter)
	rec, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: s.id.Scope(), Purge: true})
	if err != nil {
		return fmt.Sprintf("purge: error %v", err)
	}
	if text := s.kept(append(receipts, rec)); text != "" {
		return "after a restart and a purge: " + text
	}
	if n := len(s.held(s.id)); n != 0 {
		return fmt.Sprintf("a purged session holds %d entries", n)
	}
	if d := sameEntries(s.held(other), others); d != "" {
		return "another session after a purge: " + d
	}
	if text := s.anotherEpoch(before); text != "" {
		return text
	}
	return s.forgetsMany()
}

// anotherEpoch looks at the epoch once a session was purged and goes on: nothing of what was sent before is a prefix of what is sent now.
func (s *script) anotherEpoch(before core.AssembleResult) string {
	if _, text := s.talk(s.id, 1, 3); text != "" {
		return text
	}
	after, err := s.assemble(8000, nil)
	if err != nil {
		return fmt.Sprintf("assemble after a purge: error %v", err)
	}
	if len(before.Messages) > 0 && after.Epoch == before.Epoch {
		return fmt.Sprintf("as long as the epoch stays, what was sent is a prefix of what is sent; it is %d, as before the session was purged", after.Epoch)
	}
	return ""
}

// kept looks whether an engine that hands out receipts still has those of the session's agent, oldest first, and no other agent's.
func (s *script) kept(want []engine.Receipt) string {
	e, ok := s.engine.(interface {
		Receipts(ctx context.Context, agent string) ([]engine.Receipt, error)
	})
	if !ok {
		return ""
	}
	got, err := e.Receipts(s.ctx(), s.id.Agent)
	same := func(a, b engine.Receipt) bool {
		return a.ID == b.ID && a.Time.Equal(b.Time) && a.Entries == b.Entries && a.Sessions == b.Sessions && a.Request.Scope == b.Request.Scope && a.Request.Reason == b.Request.Reason
	}
	if err != nil || !slices.EqualFunc(got, want, same) {
		return fmt.Sprintf("the receipts of %d erasures are %+v, error %v, want %+v", len(want), got, err, want)
	}
	if got, err := e.Receipts(s.ctx(), "agent-c"); err != nil || len(got) > 0 {
		return fmt.Sprintf("the receipts of an agent without an erasure are %+v, error %v", got, err)
	}
	return ""
}

// without looks whether exactly what is gone is empty, in its place.
func (s *script) without(entries []core.Entry, gone map[string]bool) string {
	held := map[string]core.Entry{}
	for _, e := range s.held(s.id) {
		held[e.ID] = e
	}
	for _, e := range entries {
		h, ok := held[e.ID]
		switch {
		case gone[e.ID] && ok && (h.Text() != "" || h.Type != core.TypeErased || len(h.Message.Raw) > 0):
			return fmt.Sprintf("entry %q was erased and is %q (%s)", e.ID, h.Text(), h.Type)
		case !gone[e.ID]:
			if d := sameEntry(h, e); d != "" {
				return "an erasure of others: " + d
			}
		}
	}
	return ""
}

func scriptFaults(s *script) string {
	entries, text := s.talk(s.id, 6, 5)
	if text != "" {
		return text
	}
	for _, place := range []faultPlace{faultAppend, faultScan, faultSwap, faultUpdate, faultDelete} {
		calls := s.calls(s.id)
		if f, ok := s.engine.(engine.Forgetter); ok {
			id := entries[len(entries)-1].ID
			calls["forget"] = func(ctx context.Context) error {
				_, err := f.Forget(ctx, engine.ForgetRequest{Scope: s.id.Scope(), Entries: []string{id}})
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			if name == "compact" || name == "expand" {
				continue // the sessions look at the one; a window that is known needs no store for the other
			}
			s.env.faults.arm(place, 1000)
			err := calls[name](s.ctx())
			hits := s.env.faults.disarm()
			health := s.engine.Info().Health
			if hits > 0 && err == nil && (name == "forget" || name == "ingest" || len(health) == 0) && name != "assemble" {
				return fmt.Sprintf("%s while the store's %s fails (%d times): no error, and no problem in Info.Health", name, place, hits)
			}
			s.recover()
			if hits == 0 || name == "bootstrap" || name == "after turn" {
				continue
			}
			calls := s.calls(s.id)
			if again := calls[name]; again != nil && name != "forget" {
				if err := again(s.ctx()); err != nil {
					return fmt.Sprintf("%s after the store's %s failed: error %v, want none", name, place, err)
				}
			}
			s.env.Host.advance(time.Hour)
		}
		have := map[string]bool{}
		for _, e := range s.held(s.id) {
			have[e.ID] = true
		}
		for _, e := range entries {
			if !have[e.ID] {
				return fmt.Sprintf("entry %q is gone after the store's %s failed", e.ID, place)
			}
		}
	}
	s.reopen(true)
	s.env.faults.arm(faultScan, 1000)
	res, err := s.assemble(4000, func(r *core.AssembleRequest) { r.Transcript = s.transcript(2) })
	s.env.faults.disarm()
	given := slices.ContainsFunc(s.engine.Info().Health, func(p core.Problem) bool { return p.Quarantined })
	if err == nil && given && res.Degraded == "" {
		return "the engine left an answer to legacy, says Info.Health, and the result does not say so"
	}
	return ""
}
