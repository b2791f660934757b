package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/window"
)

// recalledChecks look at what is told of what was found, in a prompt and on a page.
var recalledChecks = []Check{
	{ID: "contract.recalled", Promise: 10, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, script: scriptRecalled,
		Rule: "what was found and had no room is among the choices, has its score there, and a page holds as many entries as are asked for"},
}

// factsOutside makes a conversation of so many facts about one thing, none like another, and of as much else behind them that a window of the budget shows none of them.
func (s *script) factsOutside(id core.SessionID, n, budget int) string {
	for i := range n {
		text := fmt.Sprintf("the harbour lantern invoice of %s names %d crates and clerk %s", time.Month(i%12+1), 37*i+11, strings.Repeat(string(rune('a'+i%26)), 5))
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: s.message("user", text)}); err != nil {
			return fmt.Sprintf("ingest: error %v", err)
		}
		s.env.Host.advance(time.Minute)
	}
	const words = 25
	_, text := s.talk(id, budget/(3*words)+2, words)
	return text
}

func scriptRecalled(s *script) string {
	r, _ := s.engine.(engine.Recaller)
	const many = 24
	wide, narrow := core.SessionID{Agent: "wide", Session: "main"}, core.SessionID{Agent: "narrow", Session: "main"}
	recalled := map[core.SessionID]int{}
	for _, of := range []struct {
		id     core.SessionID
		budget int
	}{{wide, 8 * recallBudget}, {narrow, recallBudget}} {
		if text := s.factsOutside(of.id, many, of.budget); text != "" {
			return text
		}
		if text := s.question(of.id, asked); text != "" {
			return text
		}
		res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: of.id, Budget: of.budget})
		if err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		for _, c := range res.Choices {
			if c.Reason == window.ReasonRecalled && c.Entry != "" {
				recalled[of.id]++
			}
		}
		if text := s.unscored(res.Choices); text != "" {
			return text
		}
		left := slices.ContainsFunc(res.Choices, func(c window.Choice) bool { return c.Reason == window.OutAllowance })
		if of.id == narrow && recalled[narrow] > 0 && recalled[wide] > recalled[narrow]+2 && !left {
			return fmt.Sprintf("a budget of %d recalls %d entries, one of %d recalls %d, and no choice says that another was found and had no room",
				8*recallBudget, recalled[wide], of.budget, recalled[narrow])
		}
	}
	return s.pagesFull(r)
}

// unscored looks for candidates that lost their score: beside others of the same source that have one, or where the retriever scores all that it proposes.
func (s *script) unscored(choices []window.Choice) string {
	scores := map[string]bool{}
	found := slices.DeleteFunc(slices.Clone(choices), func(c window.Choice) bool {
		return c.Entry == "" || c.Reason != window.ReasonRecalled && c.Reason != window.OutAllowance
	})
	for _, c := range found {
		scores[c.Source] = scores[c.Source] || c.Score > 0
	}
	for _, c := range found {
		if c.Score == 0 && (s.comb.Scored || scores[c.Source]) {
			return fmt.Sprintf("the choice of the entry %q (%s, of %q) has no score", c.Entry, c.Reason, c.Source)
		}
	}
	return ""
}

// pagesFull looks for pages that end although entries and tokens are left.
func (s *script) pagesFull(r engine.Recaller) string {
	id := core.SessionID{Agent: "pages", Session: "main"}
	if _, text := s.talk(id, engine.MaxFound+10, 2); text != "" {
		return text
	}
	for _, limit := range []int{engine.DefaultFound, engine.DefaultFound + 1, engine.MaxFound/2 + 1, engine.MaxFound} {
		res, err := r.Search(s.ctx(), engine.SearchRequest{Session: id, Query: "budget report", Limit: limit, Tokens: engine.MaxAnswer})
		if err != nil {
			return fmt.Sprintf("search: error %v", err)
		}
		if res.Next > 0 && len(res.Found) < limit && res.Tokens < engine.MaxAnswer/2 {
			return fmt.Sprintf("a page of %d entries holds %d, costs %d of %d tokens, and says that there is more at %d", limit, len(res.Found), res.Tokens, engine.MaxAnswer, res.Next)
		}
	}
	return ""
}
