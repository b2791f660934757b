package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// returnedChecks look at whose what an engine returns is.
var returnedChecks = []Check{
	{ID: "contract.returned", Suite: SuiteEngine, script: scriptReturned,
		Rule: "what is returned belongs to the caller: the same call answers the same after somebody wrote into its last answer, and an answer that was kept stays as it was"},
}

// scriptReturned asks three times for the same, and writes into the first two answers.
func scriptReturned(s *script) string {
	entries, text := s.talk(s.id, 12, 10)
	if text != "" {
		return text
	}
	list := s.transcript(7).Messages
	list = append(list, s.everyField()...)
	for i := range list {
		list[i].Parts[0].Raw = []byte(`{"type": "text"}`)
	}
	list = append(list, s.message(message.User, "what about the budget report"))
	host := core.SessionID{Agent: s.id.Agent, Session: "of a host"}
	if e, ok := s.engine.(engine.Scorer); ok {
		if err := e.Score(s.ctx(), engine.Outcome{Session: s.id, Name: "solved", Value: 1}); err != nil {
			return fmt.Sprintf("score: error %v", err)
		}
	}
	if e, ok := s.engine.(engine.Forgetter); ok {
		if _, err := e.Forget(s.ctx(), engine.ForgetRequest{Scope: s.id.Scope(), Entries: []string{entries[1].ID}, Reason: "asked to"}); err != nil {
			return fmt.Sprintf("forget: error %v", err)
		}
	}
	// Where it makes a summary, Describe has more to say. One that fails is looked at elsewhere.
	_, _ = s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: 300, Force: true})
	assembled := func(req core.AssembleRequest) func() (any, error) {
		return func() (any, error) {
			req := req
			if req.Transcript != nil {
				req.Transcript = &core.Transcript{Messages: copiedMessages(req.Transcript.Messages)}
			}
			res, err := s.engine.Assemble(s.ctx(), req)
			return &res, err
		}
	}
	hosts := &core.Transcript{Messages: list}
	calls := []struct {
		name string
		call func() (any, error)
	}{
		{"assemble without a transcript", assembled(core.AssembleRequest{Session: s.id, Budget: 4000})},
		{"assemble for a prompt", assembled(core.AssembleRequest{Session: s.id, Budget: 4000, Prompt: "what about the budget report"})},
		{"assemble with a transcript", assembled(core.AssembleRequest{Session: host, Budget: 4000, Transcript: hosts})},
		{"assemble inside a turn", assembled(core.AssembleRequest{Session: host, Budget: 4000, Transcript: hosts, Call: core.CallLoop})},
		{"assemble for little", assembled(core.AssembleRequest{Session: host, Budget: 500, Transcript: hosts, Prompt: "and now"})},
		{"info", func() (any, error) { info := s.engine.Info(); return &info, nil }},
		{"search", func() (any, error) {
			return answers(s, func(e engine.Recaller) (engine.SearchResult, error) {
				return e.Search(s.ctx(), engine.SearchRequest{Session: s.id, Query: "budget report"})
			})
		}},
		{"expand", func() (any, error) {
			return answers(s, func(e engine.Recaller) (engine.ExpandResult, error) {
				return e.Expand(s.ctx(), engine.ExpandRequest{Session: s.id, ID: entries[0].ID})
			})
		}},
		{"describe", func() (any, error) {
			return answers(s, func(e engine.Recaller) (engine.DescribeResult, error) {
				return e.Describe(s.ctx(), engine.DescribeRequest{Session: s.id})
			})
		}},
		{"outcomes", func() (any, error) {
			return answers(s, func(e engine.Scorer) ([]engine.Outcome, error) { return e.Outcomes(s.ctx(), s.id.Agent) })
		}},
		{"receipts", func() (any, error) {
			return answers(s, func(e recipient) ([]engine.Receipt, error) { return e.Receipts(s.ctx(), s.id.Agent) })
		}},
	}
	for _, c := range calls {
		var said []string
		var kept []any
		for n := range 3 {
			got, err := c.call()
			if err != nil {
				return fmt.Sprintf("%s: error %v", c.name, err)
			}
			if said = append(said, written(got)); strings.Contains(said[n], `"spoilt"`) {
				return fmt.Sprintf("%s: somebody wrote into the answer before, and the next one says so: it%s", c.name, differText("", said[n], said[0]))
			}
			if kept = append(kept, got); n > 0 {
				spoilt(kept[n-1])
			}
			if now := written(got); now != said[n] {
				return fmt.Sprintf("%s: somebody wrote into the answer before, and this one, which was there by then: it%s", c.name, differText("", now, said[n]))
			}
		}
		if said[1] != said[2] {
			return fmt.Sprintf("%s: somebody wrote into the second of three answers: the third%s", c.name, differText("", said[2], said[1]))
		}
	}
	return ""
}

// recipient is an engine that hands out receipts.
type recipient interface {
	Receipts(ctx context.Context, agent string) ([]engine.Receipt, error)
}

// answers asks an engine that has E; one that has not answers nothing.
func answers[E, R any](s *script, call func(E) (R, error)) (*R, error) {
	e, ok := s.engine.(E)
	if !ok {
		return new(R), nil
	}
	res, err := call(e)
	return &res, err
}

// written is an answer as text.
func written(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
