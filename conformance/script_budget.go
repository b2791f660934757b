package conformance

import (
	"errors"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func scriptBudget(s *script) string {
	const budget = 900
	if _, text := s.talk(s.id, 24, 25); text != "" {
		return text
	}
	var want core.AssembleResult
	for n, settings := range []core.RuntimeSettings{
		{}, {}, {ContextWindow: 100 * budget}, {PromptTokenBudget: 100 * budget}, {ContextWindow: budget / 2}, {PromptTokenBudget: budget / 2}, {MaxOutputTokens: budget / 3},
		{ContextWindow: 2 * budget, PromptTokenBudget: budget, MaxOutputTokens: budget},
	} {
		res, err := s.assemble(budget, func(r *core.AssembleRequest) { r.Settings = settings })
		if err != nil {
			return fmt.Sprintf("assemble with the settings %+v: error %v", settings, err)
		}
		if n > 1 {
			if d := differs(res, want); d != "" {
				return fmt.Sprintf("the budget is %d as before, and with the settings %+v the result is another: %s", budget, settings, d)
			}
		}
		want = res
	}
	return inTurn(s.unknownWords, s.budgetsInLoops, s.budgetsFall, s.budgetsOfHostsRoles, s.budgetsOfLongCommands)
}

// budgetsInLoops lets a turn with tools grow over its budget, while the settings say that a model takes more.
func (s *script) budgetsInLoops() string {
	const budget = 600
	for n, settings := range []core.RuntimeSettings{{ContextWindow: 200 * budget}, {PromptTokenBudget: 200 * budget}, {ContextWindow: 200 * budget, PromptTokenBudget: 100 * budget, MaxOutputTokens: 10}} {
		s.id = recallSession(fmt.Sprintf("loops with %d", n))
		if _, text := s.talk(s.id, 6, 10); text != "" {
			return text
		}
		list := s.looksUp()[:1]
		for round := range 24 {
			for _, m := range list {
				if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
					return fmt.Sprintf("ingest: error %v", err)
				}
			}
			list = s.looksUp()[1:]
			if round == 0 || round%4 == 3 {
				res, err := s.assemble(budget, func(r *core.AssembleRequest) {
					if r.Settings = settings; round > 0 {
						r.Call = core.CallLoop
					}
					if n == 2 { // the host hands over what it has
						r.Transcript = s.heldTranscript()
					}
				})
				if err != nil {
					return fmt.Sprintf("assemble after %d calls of tools, with the settings %+v: error %v", round, settings, err)
				}
				if cost, text := s.recounted(res); text != "" || cost > budget {
					return fmt.Sprintf("after %d calls of tools in a turn, with the settings %+v, the prompt costs %d tokens, the budget is %d %s", round, settings, cost, budget, text)
				}
			}
		}
	}
	return ""
}

// budgetsFall asks for prompts that are smaller than the last one by little. Their newest message alone is longer than all of them.
func (s *script) budgetsFall() string {
	for n, by := range []int{1, 20, 50, 90} {
		s.id = recallSession(fmt.Sprintf("its budget falls by %d", by))
		if _, text := s.talk(s.id, 4, 10); text != "" {
			return text
		}
		if text := s.question(s.id, makeText(markOf(0, 900+n), textPlain, 3000, n, nil)); text != "" {
			return text
		}
		budget := 1000
		for range 4 {
			res, err := s.assemble(budget, nil)
			if errors.Is(err, core.ErrBudget) {
				break // it shortens no message of a user
			}
			if err != nil {
				return fmt.Sprintf("assemble with a budget of %d: error %v", budget, err)
			}
			if n, text := s.recounted(res); text != "" || n > budget {
				return fmt.Sprintf("with a budget of %d, %d less than the last one, the prompt costs %d %s", budget, by, n, text)
			}
			budget -= by
		}
	}
	return ""
}

// budgetsOfHostsRoles asks for prompts a little smaller than one of messages whose role has a name of the host's.
func (s *script) budgetsOfHostsRoles() string {
	for _, host := range []struct{ role, format, text string }{
		{message.CompactionSummary, message.FormatPi, "summary"}, {"bashExecution", message.FormatPi, "output"}, {"a role of its own", message.FormatPi, "content"}, {"developer", message.FormatOpenAI, "content"},
	} {
		s.id = recallSession("of the role " + host.role)
		codec, err := message.Lookup(host.format)
		if err != nil {
			return err.Error()
		}
		for n := range 8 {
			m, err := codec.Decode(fmt.Appendf(nil, `{"role":%q,%q:"what was said %d"}`, host.role, host.text, n))
			if err != nil {
				return err.Error()
			}
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
				return fmt.Sprintf("ingest of a message of the role %q: error %v", host.role, err)
			}
		}
		if text := s.question(s.id, "what was it?"); text != "" {
			return text
		}
		whole := 0
		for by := range 5 {
			budget := 1000
			if by > 0 {
				budget = whole - whole*by/32
			}
			n, text := s.within(budget)
			if text != "" {
				return fmt.Sprintf("with messages of the role %q: %s", host.role, text)
			}
			if by == 0 {
				whole = n
			}
		}
	}
	return ""
}

// budgetsOfLongCommands asks for prompts with one message that a host has in two pieces, of which either may be larger than all the room there is.
func (s *script) budgetsOfLongCommands() string {
	codec, err := message.Lookup(message.FormatPi)
	if err != nil {
		return err.Error()
	}
	for n, long := range []string{"command", "output"} {
		s.id = recallSession("of a long " + long)
		text := map[string]string{"command": "list", "output": "all of it"}
		text[long] = strings.Repeat("the harbour is far ", 1000)
		raw := fmt.Appendf(nil, `{"role":"bashExecution","command":%q,"output":%q,"exitCode":%d}`, text["command"], text["output"], n)
		m, err := codec.Decode(raw)
		if err != nil {
			return err.Error()
		}
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
			return fmt.Sprintf("ingest of an execution with a long %s: error %v", long, err)
		}
		if text := s.question(s.id, "what was it?"); text != "" {
			return text
		}
		for _, budget := range []int{300, 1000, 3000} {
			if _, text := s.within(budget); text != "" {
				return fmt.Sprintf("with an execution whose %s is long: %s", long, text)
			}
		}
	}
	return ""
}

// within asks for a prompt, and returns what it costs; a refusal for want of budget costs nothing.
func (s *script) within(budget int) (int, string) {
	res, err := s.assemble(budget, nil)
	if errors.Is(err, core.ErrBudget) {
		return 0, ""
	}
	if err != nil {
		return 0, fmt.Sprintf("assemble with a budget of %d: error %v", budget, err)
	}
	n, text := s.recounted(res)
	if text == "" && n > budget {
		text = fmt.Sprintf("with a budget of %d the prompt costs %d", budget, n)
	}
	return n, text
}

// recounted returns what a prompt costs.
func (s *script) recounted(res core.AssembleResult) (int, string) {
	var wire []wireMessage
	for _, m := range res.Messages {
		for _, piece := range message.Split(m, message.FormatOpenAI) {
			w, err := readWire(piece, "")
			if err != nil {
				return 0, err.Error()
			}
			wire = append(wire, w)
		}
	}
	return recount(wire, res.SystemPromptAddition, s.env.Count), ""
}

// liveCost holds what a compaction says that everything live cost against the entries that were, and what it did not change against that.
func liveCost(res core.CompactResult, entries []core.Entry) string {
	total := 0
	for _, e := range entries {
		total += e.Tokens
	}
	switch {
	case res.TokensBefore < total*9/10 || res.TokensBefore > total*11/10+200:
		return fmt.Sprintf("TokensBefore is %d, everything live costs %d", res.TokensBefore, total)
	case !res.Compacted && res.TokensAfter != res.TokensBefore:
		return fmt.Sprintf("nothing was compacted, and %d tokens are %d now", res.TokensBefore, res.TokensAfter)
	}
	return ""
}

// budgetsOfTheirOwn compacts sessions without a budget: each of them has that of its own last prompt, whatever others of the agent have, or one of the same
// name of another agent.
func (s *script) budgetsOfTheirOwn() string {
	narrow := recallSession("narrow")
	other := core.SessionID{Agent: narrow.Agent + "-b", Session: narrow.Session}
	for n, order := range [][]core.SessionID{{narrow, recallSession("wide")}, {recallSession("wide"), narrow}, {narrow, other}, {other, narrow}} {
		budget := func(id core.SessionID) int {
			if id == narrow {
				return 900
			}
			return 100000
		}
		for _, id := range order {
			if _, text := s.talk(id, 24, 25); text != "" {
				return text
			}
			if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: budget(id)}); err != nil {
				return fmt.Sprintf("assemble: error %v", err)
			}
		}
		for _, id := range order {
			res, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: id})
			if err != nil || res.Compacted != (id == narrow) {
				return fmt.Sprintf("round %d: a compaction of %s, whose last prompt had a budget of %d, that of %s, the last of all, %d: %+v, error %v", n+1, id, budget(id), order[1], budget(order[1]), res, err)
			}
		}
	}
	return ""
}
