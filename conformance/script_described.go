package conformance

import (
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// describedAnew asks about sessions before and after each call that stores something, and each that takes something away.
func (s *script) describedAnew(r engine.Recaller) string {
	counts := func(id core.SessionID, what string, want int) string {
		d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: id})
		if err != nil || d.Entries != want {
			return fmt.Sprintf("describe of a session that was described before, after %s: %d entries, error %v, want %d", what, d.Entries, err, want)
		}
		return ""
	}
	for _, way := range s.storingWays() {
		id := core.SessionID{Agent: "agent-a", Session: "described anew after " + way.name}
		_, _ = r.Describe(s.ctx(), engine.DescribeRequest{Session: id}) // what it says of nothing is not looked at
		if _, err := way.store(s.ctx(), id, s.transcript(2).Messages); err != nil {
			return fmt.Sprintf("%s: error %v", way.name, err)
		}
		if text := counts(id, way.name+" stored 2 messages", 2); text != "" {
			return text
		}
	}
	id := core.SessionID{Agent: "agent-a", Session: "described anew"}
	entries, text := s.talk(id, 3, 3)
	if text == "" {
		text = counts(id, "3 messages were ingested", 3)
	}
	if text != "" {
		return text
	}
	if e, ok := s.engine.(core.SubagentHost); ok {
		if err := e.OnSubagentEnded(s.ctx(), core.SubagentEnded{Parent: id, Child: kid("described anew"), Reason: "completed", Result: "it is done"}); err != nil {
			return fmt.Sprintf("subagent ended: error %v", err)
		}
		if text := counts(id, "a subagent handed back its result", len(entries)+1); text != "" {
			return text
		}
	}
	if a, ok := s.engine.(engine.Armed); ok {
		if _, err := a.Arm(s.ctx(), id, func(string) string { return "an arm" }); err != nil {
			return fmt.Sprintf("arm: error %v", err)
		}
		if d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: id}); err != nil || d.Arm != "an arm" {
			return fmt.Sprintf("describe of a session that was described before it had an arm: the arm %q, error %v", d.Arm, err)
		}
	}
	if f, ok := s.engine.(engine.Forgetter); ok {
		if _, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: id.Scope(), Purge: true}); err != nil {
			return fmt.Sprintf("purge: error %v", err)
		}
		return counts(id, "it was purged", 0)
	}
	return ""
}
