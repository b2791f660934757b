package conformance

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

func scriptCompact(s *script) string {
	entries, text := s.talk(s.id, 24, 25)
	if text != "" {
		return text
	}
	wide, err := s.assemble(8000, nil)
	if err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	narrow, err := s.assemble(900, nil)
	if err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	if len(narrow.Messages) < len(wide.Messages) && (!narrow.Stepped || narrow.Epoch <= wide.Epoch) {
		return fmt.Sprintf("the window went from %d to %d messages: stepped is %v, the epoch was %d and is %d", len(wide.Messages), len(narrow.Messages), narrow.Stepped, wide.Epoch, narrow.Epoch)
	}
	wishes := "keep what was said about the kestrel bridge, and " + wordy(longWords)
	info, asked, calls := s.engine.Info(), s.env.Host.Compacts(), s.env.Model.Calls()
	res, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: 900, CurrentTokens: 77, Force: true, Instructions: wishes, Trigger: "manual"})
	if err != nil {
		return fmt.Sprintf("compact: error %v", err)
	}
	if res.Delegated == info.OwnsCompaction {
		return fmt.Sprintf("the engine owns compaction: %v, the result is delegated: %v", info.OwnsCompaction, res.Delegated)
	}
	if !info.OwnsCompaction {
		if n := s.env.Host.Compacts() - asked; n != 1 {
			return fmt.Sprintf("the runtime was asked %d times, want once", n)
		}
		return s.passedThrough()
	}
	if s.env.Model.Calls() > calls && !s.env.Model.heard(wishes) {
		return "the model was asked, never with the wishes"
	}
	if !res.OK || !res.Compacted || res.TokensBefore <= res.TokensAfter || res.TokensAfter <= 0 || res.Successor != (core.SessionID{}) {
		return fmt.Sprintf("a forced compaction far over budget: %+v", res)
	}
	if text := cmp.Or(liveCost(res, entries), s.firstKept(s.id, res, entries)); text != "" {
		return text
	}
	unforced := sessionOf(1)
	if _, text := s.talk(unforced, 24, 25); text != "" {
		return text
	}
	if res, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: unforced, Budget: 900, Target: core.TargetBudget}); err != nil || !res.Compacted {
		return fmt.Sprintf("a compaction far over budget, not forced: %+v, error %v", res, err)
	}
	unhurried := sessionOf(2)
	said, text := s.talk(unhurried, 24, 25)
	if text != "" {
		return text
	}
	for _, c := range []struct {
		current int
		force   bool
	}{{0, false}, {77, false}, {90000, true}} {
		res, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: unhurried, Budget: 100000, CurrentTokens: c.current, Force: c.force})
		if err != nil || res.Compacted != c.force || !c.force && !benign(res.Reason) {
			return fmt.Sprintf("a compaction far below budget, forced: %v: %+v, error %v", c.force, res, err)
		}
		if text := cmp.Or(liveCost(res, said), s.firstKept(unhurried, res, said)); text != "" {
			return fmt.Sprintf("a compaction far below budget, where the host believes in %d tokens, forced: %v: %s", c.current, c.force, text)
		}
	}
	if text := inTurn(s.forcedTwice, s.budgetsOfTheirOwn, s.handedOver); text != "" {
		return text
	}
	held := 0
	for _, e := range s.held(s.id) {
		for _, old := range entries {
			if e.ID == old.ID {
				held++
				if d := sameEntry(e, old); d != "" {
					return "a compaction changed what was stored: " + d
				}
			}
		}
	}
	if held != len(entries) {
		return fmt.Sprintf("a compaction left %d of %d entries in the store", held, len(entries))
	}
	if text := s.summarised(res, entries); text != "" {
		return text
	}
	if r, ok := s.engine.(core.Maintainer); ok {
		for _, reason := range []string{"turn", "bootstrap", "compaction"} {
			if _, err := r.Maintain(s.ctx(), core.MaintainRequest{Session: s.id, Reason: reason, Budget: 900}); err != nil {
				return fmt.Sprintf("maintain (%s): error %v", reason, err)
			}
		}
	}
	return s.compactsTimers()
}

// summarised looks at the summaries that a compaction made, from every side, and at what an erasure does to them.
func (s *script) summarised(res core.CompactResult, entries []core.Entry) string {
	var summaries []core.Entry
	for _, e := range s.held(s.id) {
		if e.Type == core.TypeSummary {
			summaries = append(summaries, e)
		}
	}
	if len(summaries) == 0 {
		return ""
	}
	if newest := summaries[len(summaries)-1].Text(); strings.TrimSpace(res.Summary) == "" || !strings.Contains(newest, strings.TrimSpace(res.Summary)) {
		return fmt.Sprintf("the result's summary is %.60q, the stored one %.60q", res.Summary, newest)
	}
	if r, ok := s.engine.(engine.Recaller); ok {
		d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: s.id})
		if err != nil || len(d.Summaries) == 0 || d.Entries != len(entries) {
			return fmt.Sprintf("describe after a compaction: %+v, error %v", d, err)
		}
		if text := s.describedSummaries(d.Summaries); text != "" {
			return text
		}
		for _, sum := range d.Summaries {
			page, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: s.id, ID: sum.ID, Tokens: engine.MaxAnswer})
			if err != nil || page.Total != sum.Covers || sum.Covers == 0 || sum.Tokens == 0 || sum.Kind == "" || sum.Head == "" || sum.Time.IsZero() {
				return fmt.Sprintf("the summary %+v expands to %d entries, error %v", sum, page.Total, err)
			}
		}
	}
	if r, ok := s.engine.(engine.Recaller); ok {
		now, err := s.assemble(900, nil)
		if err != nil {
			return fmt.Sprintf("assemble after a compaction: error %v", err)
		}
		if d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: s.id}); err != nil || d.Epoch != now.Epoch {
			return fmt.Sprintf("describe names the epoch %d, the prompt %d, error %v", d.Epoch, now.Epoch, err)
		}
	}
	if f, ok := s.engine.(engine.Forgetter); ok {
		rec, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: s.id.Scope(), Entries: []string{entries[0].ID}})
		if err != nil || rec.Entries != 1 || rec.Summaries == 0 || rec.Views == 0 {
			return fmt.Sprintf("forget of an entry that a summary stands for: %+v, error %v", rec, err)
		}
	}
	return ""
}

// benign reports whether hosts know a reason for one of those for which nothing had to be compacted.
func benign(reason string) bool {
	return strings.Contains(reason, core.ReasonBelowThreshold) || strings.Contains(reason, core.ReasonUnderTarget) || strings.Contains(reason, core.ReasonAlreadyCompacted)
}

// firstKept compares what a compaction names with what its summaries stand for.
func (s *script) firstKept(id core.SessionID, res core.CompactResult, entries []core.Entry) string {
	kept, text := s.get(id, res.FirstKept)
	if text != "" {
		return "FirstKept: " + text
	}
	r, ok := s.engine.(engine.Recaller)
	if !ok {
		return ""
	}
	d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: id})
	if err != nil {
		return fmt.Sprintf("describe: error %v", err)
	}
	covered := 0
	for _, sum := range d.Summaries {
		covered += sum.Covers
	}
	if covered < len(entries) && kept.ID != entries[covered].ID {
		return fmt.Sprintf("FirstKept is entry %d, the summaries stand for the first %d", kept.Seq, covered)
	}
	return ""
}

// passedThrough looks at every field of what the runtime is asked and answers.
func (s *script) passedThrough() string {
	want := core.CompactResult{
		OK: true, Compacted: true, Reason: "asked for", Summary: "the kestrel bridge", FirstKept: "kept", TokensBefore: 900, TokensAfter: 400,
		Successor: core.SessionID{Agent: "agent-a", Session: "successor"}, Delegated: true,
	}
	var asked core.CompactRequest
	s.env.Host.onCompact = func(req core.CompactRequest) core.CompactResult { asked = req; return want }
	all := want
	for _, c := range []struct {
		force   bool
		current int
		answers core.CompactResult
	}{
		{true, 1200, all}, {false, 1200, all}, {false, 10, all}, {true, 10, all}, {false, 0, all},
		{false, 10, core.CompactResult{OK: true, Reason: core.ReasonBelowThreshold, TokensBefore: 10, TokensAfter: 10}}, {true, 1200, core.CompactResult{Reason: "not now"}},
		{true, 10, core.CompactResult{OK: true}}, {false, 1200, core.CompactResult{}}, {true, 10, core.CompactResult{}},
	} {
		want = c.answers
		want.Delegated = true
		req := core.CompactRequest{Session: s.id, Budget: 900, CurrentTokens: c.current, Force: c.force, Instructions: "keep the bridge, and " + wordy(longWords), Trigger: "manual", Target: core.TargetThreshold}
		filled(&req.Settings)
		filled(&req.TranscriptScope)
		req.Transcript = s.transcript(2)
		if c.current == 0 { // what a host does not say, nobody adds
			req = core.CompactRequest{Session: s.id}
		}
		calls := s.env.Host.Compacts()
		res, err := s.engine.Compact(s.ctx(), req)
		if n := s.env.Host.Compacts() - calls; n != 1 {
			return fmt.Sprintf("the runtime, which answers compacted %v, was asked %d times, want once; forced: %v, %d of %d tokens", want.Compacted, n, c.force, c.current, req.Budget)
		}
		if err != nil || res != want {
			return fmt.Sprintf("the runtime's result was %+v, the engine's is %+v, error %v", want, res, err)
		}
		if d := differs(asked, req); d != "" {
			return "the request that reached the runtime: " + d
		}
	}
	return ""
}

// handedOver compacts a session that nothing is known of but the transcript that comes with the request.
func (s *script) handedOver() string {
	id := core.SessionID{Agent: "agent-a", Session: "handed over"}
	t := &core.Transcript{}
	for i := range 24 {
		t.Messages = append(t.Messages, s.message([]message.Role{message.User, message.Assistant}[i%2], strings.Repeat("the budget report moved ", 25)))
	}
	res, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: 900, Force: true, Transcript: t})
	said := 0
	for _, e := range s.held(id) {
		if e.Type == core.TypeMessage {
			said++
		}
	}
	if err != nil || !res.Compacted || said != len(t.Messages) {
		return fmt.Sprintf("a compaction that came with a transcript of %d messages: %+v, error %v, %d are stored", len(t.Messages), res, err, said)
	}
	return ""
}
