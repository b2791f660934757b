package conformance

import (
	"fmt"
	"math/rand"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// grantTimes are times of grants, from seconds to days, few of them a whole number of anything, and some that are drawn.
func (s *script) grantTimes() []time.Duration {
	out := []time.Duration{10 * time.Minute, 2 * time.Second, 30 * time.Second, 59 * time.Second, 90 * time.Second, 61*time.Minute + 7*time.Second, 25*time.Hour + 31*time.Minute + 1500*time.Millisecond}
	draw := rand.New(rand.NewSource(s.seed)) //nolint:gosec // a draw that can be repeated
	for _, most := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
		out = append(out, 2*time.Second+time.Duration(draw.Int63n(int64(most/time.Millisecond)))*time.Millisecond)
	}
	return out
}

// timedGrants opens a parent's history for a time each, and looks shortly before and after its end.
func (s *script) timedGrants(e core.SubagentHost, name string, mode core.SpawnMode, mark string) string {
	_, back := s.engine.(engine.Recaller)
	for n, ttl := range s.grantTimes() {
		child := core.SessionID{Agent: "agent-c", Session: fmt.Sprintf("%s %d", name, n)}
		sp, err := e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: s.id, Child: child, Mode: mode, TTL: ttl})
		if err != nil {
			return fmt.Sprintf("prepare spawn (%s): error %v", mode, err)
		}
		if sp.GrantID == "" {
			continue
		}
		margin := min(ttl/4, 10*time.Second)
		s.env.Host.advance(ttl - margin)
		if back && !s.reaches(child, mark) {
			return fmt.Sprintf("a subagent (%s) with a grant for %v does not find its parent's history after %v", mode, ttl, ttl-margin)
		}
		s.env.Host.advance(2 * margin)
		if s.reaches(child, mark) {
			return fmt.Sprintf("a subagent (%s) with a grant for %v finds its parent's history after %v", mode, ttl, ttl+margin)
		}
	}
	return ""
}

// recallsBefore lets a parent go on after a spawn: what it says then is no memory of the subagent's.
func (s *script) recallsBefore() string {
	parent := core.SessionID{Agent: "agent-a", Session: "goes on after a spawn"}
	says := func(n int) ([]string, string) {
		var marks []string
		for _, m := range s.facts(n) {
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: parent, Message: m}); err != nil {
				return nil, fmt.Sprintf("ingest: error %v", err)
			}
			s.env.Host.advance(time.Second)
			marks = append(marks, marksIn(m.Text())...)
		}
		return marks, ""
	}
	if _, text := says(2); text != "" {
		return text
	}
	e, _ := s.engine.(core.SubagentHost)
	child := kid("of one that goes on")
	if _, err := e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: parent, Child: child, Mode: core.SpawnIsolated, TTL: time.Hour}); err != nil {
		return fmt.Sprintf("prepare spawn: error %v", err)
	}
	after, text := says(6)
	if text == "" {
		text = s.question(child, asked)
	}
	if text != "" {
		return text
	}
	for _, mode := range []core.PromptMode{"", core.PromptFull} {
		res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: child, Budget: 8000, PromptMode: mode})
		if err != nil {
			return fmt.Sprintf("assemble for a subagent: error %v", err)
		}
		if text := shownOf(res, after); text != "" {
			return "an isolated subagent recalls what its parent said after it was spawned: " + text
		}
	}
	return ""
}
