package conformance

import (
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// forcedTwice forces a compaction, and directly behind it one to less.
func (s *script) forcedTwice() string {
	id := core.SessionID{Agent: "agent-a", Session: "forced twice"}
	if _, text := s.talk(id, 24, 25); text != "" {
		return text
	}
	budget := 900
	for n := range 2 {
		res, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: budget, Force: true})
		if err != nil || !res.OK || !res.Compacted || res.TokensAfter > budget {
			return fmt.Sprintf("compaction %d that is forced, to a budget of %d: %+v, error %v", n+1, budget, res, err)
		}
		budget = res.TokensAfter * 2 / 3
	}
	return ""
}

// askedBefore asks for what is erased then, and the same again behind the erasure.
func (s *script) askedBefore(f engine.Forgetter) string {
	r, ok := s.engine.(engine.Recaller)
	if !ok {
		return ""
	}
	const word = "zircon"
	id := core.SessionID{Agent: "agent-a", Session: "asked before"}
	if text := s.question(id, "the "+word+" ledger lies in the ninth drawer"); text != "" {
		return text
	}
	if _, text := s.talk(id, 4, 4); text != "" {
		return text
	}
	held := s.held(id)
	if len(held) == 0 {
		return "a session in which something was said holds no entry"
	}
	said := held[0].ID
	asks := map[string]func() (text string, err error){
		"search": func() (string, error) {
			res, err := r.Search(s.ctx(), engine.SearchRequest{Session: id, Query: word + " ledger"})
			return fmt.Sprint(res.Text, res.Found), err
		},
		"expand": func() (string, error) {
			res, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: id, ID: said, After: 2})
			return fmt.Sprint(res.Text, res.Found), err
		},
	}
	for what, ask := range asks {
		if text, err := ask(); err != nil || !strings.Contains(text, word) {
			return fmt.Sprintf("%s of what was said: it does not hold %q, error %v", what, word, err)
		}
	}
	if _, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: id.Scope(), Entries: []string{said}}); err != nil {
		return fmt.Sprintf("forget: error %v", err)
	}
	for what, ask := range asks {
		if text, _ := ask(); strings.Contains(text, word) {
			return fmt.Sprintf("%s of what was said, as before it was erased: it holds %q", what, word)
		}
	}
	return ""
}
