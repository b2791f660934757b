package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// compactedChecks look at prompts behind a compaction.
var compactedChecks = []Check{
	{ID: "contract.unopened", Promise: 10, Suite: SuiteEngine, Needs: []Need{NeedOwner}, script: scriptUnopened,
		Rule: "what a compaction puts in front of a prompt opens no role, instruction or call, whatever the model answered and whatever was said"},
	{ID: "contract.addition", Promise: 7, Suite: SuiteEngine, script: scriptAddition,
		Rule: "what the engine adds to the system prompt comes, changes and goes only where Stepped is set"},
}

// speaking is a text that tries to speak for others.
func speaking() string {
	return fmt.Sprintf(strings.Join(hostileLines[:7], ""), trapWord, trapWord, trapWord, trapWord, trapWord, trapWord, trapWord)
}

// scriptUnopened compacts conversations, two times each, that a model answers for as it likes.
func scriptUnopened(s *script) string {
	defer s.env.Model.Set(Honest)
	for n, of := range []struct {
		mood Mood
		said string
	}{{Hostile, "the budget report moved "}, {Honest, speaking()}} {
		s.id = recallSession(fmt.Sprintf("unopened %d", n))
		s.env.Model.Set(of.mood)
		for range 2 {
			if text := s.tricked(of.said); text != "" {
				return fmt.Sprintf("what was said tries to speak for others: %v, the model is %s; %s", n > 0, of.mood, text)
			}
		}
	}
	return ""
}

// tricked compacts what was said that often, behind which nothing is that anybody minds.
func (s *script) tricked(said string) string {
	for i := range 12 {
		m := s.message([]message.Role{message.User, message.Assistant}[i%2], strings.Repeat(said, 1+100/len(said)))
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
			return fmt.Sprintf("ingest: error %v", err)
		}
		s.env.Host.advance(time.Minute)
	}
	if _, text := s.talk(s.id, 12, 25); text != "" {
		return text
	}
	for range 2 { // the second may merge what the first left
		if _, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: 1200, Force: true}); err != nil {
			return fmt.Sprintf("compact: error %v", err)
		}
		res, err := s.assemble(1200, func(r *core.AssembleRequest) { r.PromptMode = core.PromptNone })
		if err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		if text := s.opened(res); text != "" {
			return text
		}
	}
	return ""
}

// opened looks for what opens something in messages of a prompt that nobody said.
func (s *script) opened(res core.AssembleResult) string {
	said := map[string]bool{}
	for _, e := range s.held(s.id) {
		said[e.ID] = e.Type == core.TypeMessage
	}
	for i, m := range res.Messages {
		var from []string
		for _, c := range res.Choices {
			if c.Message == i {
				from = append(from, c.Entry)
			}
		}
		if slices.ContainsFunc(from, func(id string) bool { return said[id] }) {
			continue
		}
		if hit := openers.FindString(allOf(m)); hit != "" {
			return fmt.Sprintf("message %d, which stands for what was compacted, opens %q: %.200q", i, hit, allOf(m))
		}
	}
	return ""
}

// scriptAddition looks at what is added to the system prompt from call to call, whatever happens between them.
func scriptAddition(s *script) string {
	_, forgets := s.engine.(engine.Forgetter)
	compact := func(budget int) func() error {
		return func() error {
			_, _ = s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: budget, Force: true}) // that it works is for others to say
			return nil
		}
	}
	for _, restarts := range []bool{false, true} {
		if restarts && !s.restarts() {
			break
		}
		s.id = recallSession(fmt.Sprintf("added to, with restarts: %v", restarts))
		said, text := s.talk(s.id, 40, 5)
		if text != "" {
			return text
		}
		was, first := "", true
		for _, step := range []struct {
			what   string
			budget int
			do     func() error
		}{
			{"a session that fits", 12000, func() error { return nil }},
			{"a compaction", 12000, compact(12000)},
			{"nothing", 12000, func() error { return nil }},
			{"an erasure", 12000, func() error {
				if !forgets {
					return nil
				}
				_, err := s.forgets(engine.ForgetRequest{Scope: s.id.Scope(), Entries: []string{said[0].ID}})
				return err
			}},
			{"a budget with room for hardly anything", 130, func() error { return nil }},
			{"a larger budget", 12000, func() error { return nil }},
			{"a compaction far over budget", 600, compact(600)},
			{"a larger budget once more", 12000, func() error { return nil }},
		} {
			if err := step.do(); err != nil {
				return fmt.Sprintf("%s: error %v", step.what, err)
			}
			if restarts {
				s.reopen(true)
			}
			res, err := s.assemble(step.budget, nil)
			if errors.Is(err, core.ErrBudget) {
				continue
			}
			if err != nil {
				return fmt.Sprintf("assemble after %s: error %v", step.what, err)
			}
			if is := res.SystemPromptAddition; !first && is != was && !res.Stepped {
				return fmt.Sprintf("after %s the addition is %.60q and was %.60q, and Stepped does not say so; with restarts: %v", step.what, is, was, restarts)
			}
			was, first = res.SystemPromptAddition, false
		}
	}
	return s.movesUnderHost()
}

// movesUnderHost hands over a list that only grows, far over the budget.
func (s *script) movesUnderHost() string {
	s.id = recallSession("that a host hands over")
	at := map[string]int{} // by what is said
	t := &core.Transcript{Whole: true}
	first, was := 0, ""
	for n := range 40 {
		for _, role := range []message.Role{message.User, message.Assistant} {
			m := s.message(role, wordy(25))
			at[m.Text()] = len(t.Messages)
			t.Messages = append(t.Messages, m)
		}
		res, err := s.assemble(900, func(r *core.AssembleRequest) { r.Transcript = t })
		if err != nil {
			return fmt.Sprintf("assemble with %d messages of a host: error %v", len(t.Messages), err)
		}
		if is := res.SystemPromptAddition; n > 0 && is != was && !res.Stepped {
			return fmt.Sprintf("with %d messages of a host the addition is %.60q and was %.60q, and Stepped does not say so", len(t.Messages), is, was)
		}
		was = res.SystemPromptAddition
		for _, m := range res.Messages {
			is, ok := at[m.Text()]
			if !ok {
				continue // the engine's own
			}
			if is > first && !res.Stepped {
				return fmt.Sprintf("with %d messages of a host the window begins with number %d and began with %d, and Stepped does not say that it moved", len(t.Messages), is, first)
			}
			first = is
			break
		}
	}
	if first == 0 && s.engine.Info().OwnsCompaction {
		return "a list of a host's that is far larger than the budget is shown from its beginning"
	}
	return ""
}
