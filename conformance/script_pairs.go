package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// pairsChecks look at where compactions end.
var pairsChecks = []Check{
	{ID: "contract.pairs", Promise: 5, Suite: SuiteEngine, Needs: []Need{NeedOwner}, script: scriptPairs,
		Rule: "a compaction takes a call with all of its results, or leaves them all, also where a subagent ended between them"},
}

// scriptPairs compacts conversations in which a subagent ended between a call and its result, at places that the newest that stay may begin at.
func scriptPairs(s *script) string {
	e, ok := s.engine.(core.SubagentHost)
	if !ok {
		return ""
	}
	const places = 12
	for _, behind := range s.few(places) {
		s.id = recallSession(fmt.Sprintf("pairs %d", behind))
		if _, text := s.talk(s.id, 11, 10); text != "" {
			return text
		}
		pair, text := s.started(e, 1+behind%2)
		if text != "" {
			return text
		}
		if _, text := s.talk(s.id, behind, 10); text != "" {
			return text
		}
		for _, budget := range []int{900, 500} {
			res, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: budget, Force: true})
			if err != nil {
				return fmt.Sprintf("%d messages behind a call and its results, compact to %d: error %v", behind, budget, err)
			}
			if at := slices.Index(pair, res.FirstKept); at > 0 {
				return fmt.Sprintf("%d messages behind a call and its results, a compaction to %d takes %d of these %d entries", behind, budget, at, len(pair))
			}
		}
	}
	return ""
}

// started stores a call that starts subagents, the end of one, and the results, and returns the ids of these entries.
func (s *script) started(e core.SubagentHost, calls int) ([]string, string) {
	call := message.Message{Role: message.Assistant}
	var said []message.Message
	for i := range calls {
		id := fmt.Sprintf("spawn-%d", i)
		call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "spawn", Args: "{}"})
		result := s.message(message.Tool, strings.Repeat("the subagent was started ", 8))
		result.Parts = []message.Part{{Kind: message.ToolResult, CallID: id, Name: "spawn", Text: result.Text()}}
		said = append(said, result)
	}
	said = append([]message.Message{call}, said...)
	n := len(s.held(s.id))
	for i, m := range said {
		if res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil || len(res.IDs) != 1 {
			return nil, fmt.Sprintf("ingest of a %s: %+v, error %v", m.Role, res, err)
		}
		if i == len(said)-2 {
			kid := core.SessionID{Agent: s.id.Agent, Session: s.id.Session + " kid"}
			if err := e.OnSubagentEnded(s.ctx(), core.SubagentEnded{Parent: s.id, Child: kid, Reason: "completed", Result: strings.Repeat("the ferry was late ", 8)}); err != nil {
				return nil, fmt.Sprintf("a subagent ends: error %v", err)
			}
		}
	}
	held := s.held(s.id)
	if len(held) != n+len(said)+1 {
		return nil, fmt.Sprintf("a call, its results and the end of a subagent are %d entries, want %d", len(held)-n, len(said)+1)
	}
	return idsOf(held[n:]), ""
}
