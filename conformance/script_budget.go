package conformance

import (
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
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
	return s.budgetsFall()
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

// recounted returns what a prompt costs.
func (s *script) recounted(res core.AssembleResult) (int, string) {
	var wire []wireMessage
	for _, m := range res.Messages {
		w, err := readWire(m, "")
		if err != nil {
			return 0, err.Error()
		}
		wire = append(wire, w)
	}
	return recount(wire, res.SystemPromptAddition, s.env.Count), ""
}
