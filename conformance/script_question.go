package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
)

var questionChecks = []Check{
	{ID: "contract.question", Promise: 5, Suite: SuiteEngine, script: scriptQuestion,
		Rule: "what the user asked last is shown as long as its turn goes on, also where a provider's rules merge it with what stands in front and where it was typed beside the results of tools, if it and the newest group take at most half of the budget"},
}

func scriptQuestion(s *script) string {
	places := []string{"an answer", "a result", "a call without a result", "a result, with a message that says nothing later", "a call, beside its result"}
	providers := []string{"", history.ProviderAnthropic, history.ProviderGoogle, history.ProviderMistral, history.ProviderOpenAI}
	var behind string
	var all int // what the session costs, shown whole
	for _, n := range s.few(len(places) * len(providers)) {
		if place := places[n/len(providers)]; place != behind {
			behind = place
			var text string
			if all, text = s.wholeBehind(behind); text != "" {
				return text
			}
		}
		provider := providers[n%len(providers)]
		for eighths := 4; eighths < 8; eighths++ {
			if text := s.stillAsked(provider, behind, all, eighths); text != "" {
				return text
			}
		}
		if text := s.askedAgain(provider, behind, all/2); text != "" {
			return text
		}
	}
	return ""
}

// wholeBehind returns what a session costs in which the user asks behind something, shown whole.
func (s *script) wholeBehind(behind string) (int, string) {
	s.id = recallSession(fmt.Sprintf("asks behind %s, shown whole", behind))
	if _, text := s.asksBehind(behind); text != "" {
		return 0, text
	}
	res, err := s.assemble(1<<20, nil)
	if err != nil {
		return 0, fmt.Sprintf("assemble: error %v", err)
	}
	return s.recounted(res)
}

// stillAsked looks for the question in a window of some eighths of what all costs.
func (s *script) stillAsked(provider, behind string, all, eighths int) string {
	s.id = recallSession(fmt.Sprintf("asks %q behind %s, %d", provider, behind, eighths))
	asked, text := s.asksBehind(behind)
	if text != "" {
		return text
	}
	budget := all * eighths / 8
	res, err := s.assemble(budget, func(r *core.AssembleRequest) { r.Settings.Provider = provider })
	if err != nil {
		return fmt.Sprintf("assemble with a budget of %d: error %v", budget, err)
	}
	if !slices.ContainsFunc(res.Messages, func(m message.Message) bool { return contains(marksIn(allOf(m)), asked) }) {
		return fmt.Sprintf("for the provider %q, behind %s, with %d of the %d tokens of everything, what the user asked last is not shown", provider, behind, budget, all)
	}
	return ""
}

// askedAgain looks for the question behind a call that took all of a budget, for once.
func (s *script) askedAgain(provider, behind string, budget int) string {
	for _, tenths := range []int{7, 9} {
		s.id = recallSession(fmt.Sprintf("asks %q behind %s, and a call of %d tenths", provider, behind, tenths))
		asked, text := s.asksBehind(behind)
		if text != "" {
			return text
		}
		long := s.looksUp()[1:]
		call := &long[0].Parts[len(long[0].Parts)-1]
		call.Args = fmt.Sprintf("{%q:%q}", "at", strings.Repeat("it ", budget*tenths/10))
		var res core.AssembleResult
		for n, list := range [][]message.Message{long, s.looksUp()[1:], s.looksUp()[1:]} {
			for _, m := range list {
				if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
					return fmt.Sprintf("ingest: error %v", err)
				}
			}
			var err error
			res, err = s.assemble(budget, func(r *core.AssembleRequest) { r.Settings.Provider = provider })
			if err != nil && (n > 0 || !errors.Is(err, core.ErrBudget)) {
				return fmt.Sprintf("assemble with a budget of %d: error %v", budget, err)
			}
		}
		if !slices.ContainsFunc(res.Messages, func(m message.Message) bool { return contains(marksIn(allOf(m)), asked) }) {
			return fmt.Sprintf("for the provider %q, behind %s, two calls behind one that took %d tenths of a budget of %d, what the user asked last is not shown", provider, behind, tenths, budget)
		}
	}
	return ""
}

// asksBehind stores a conversation that ends in a turn with tools. Its question is an eighth of it, and stands behind a longer one that nothing answers and that behind what
// is named. It returns the question's mark.
func (s *script) asksBehind(what string) (string, string) {
	list := append([]message.Message{s.message(message.User, "begins"), s.message(message.Assistant, "does")}, s.looksUp()...)
	switch what {
	case "an answer":
		list = append(list, s.message(message.Assistant, "it is found"))
	case "a call without a result":
		list = append(list, s.looksUp()[1])
	}
	aside, question := s.message(message.User, strings.Repeat("and another thing ", 120)), s.message(message.User, strings.Repeat("now this ", 32))
	if what == "a call, beside its result" {
		called := s.looksUp()[1:]
		result := &called[len(called)-1]
		result.Parts = append(result.Parts, question.Parts...)
		list = append(append(list, aside), called...)
	} else {
		list = append(list, aside, question)
	}
	list = append(list, s.looksUp()[1:]...)
	if what == "a result, with a message that says nothing later" {
		list = append(append(list, message.New(message.User, " ")), s.looksUp()[1:]...)
	}
	list = append(list, s.message(message.Assistant, "goes on"))
	for _, m := range list {
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
			return "", fmt.Sprintf("ingest: error %v", err)
		}
	}
	return marksIn(question.Text())[0], ""
}
