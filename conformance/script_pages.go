package conformance

import (
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// foundToTheEnd follows the pages of a search to the end, where the bound of their text ends them, their number, or both.
func (s *script) foundToTheEnd(r engine.Recaller, id core.SessionID, entries []core.Entry) string {
	for _, c := range []struct{ limit, tokens int }{{engine.MaxFound, 150}, {engine.MaxFound, 600}, {20, 200}, {3, 150}, {0, 150}, {0, 0}, {1, 150}} {
		req := engine.SearchRequest{Session: id, Query: "budget report", Limit: c.limit, Tokens: c.tokens}
		seen := map[string]bool{}
		for pages := 1; ; pages++ {
			res, err := r.Search(s.ctx(), req)
			if err != nil || len(res.Found) == 0 || pages > len(entries) {
				return fmt.Sprintf("search with the limit %d and %d tokens: page %d, from %d on, has %d entries, error %v", c.limit, c.tokens, pages, req.Offset, len(res.Found), err)
			}
			for _, f := range res.Found {
				if seen[f.ID] {
					return fmt.Sprintf("search with the limit %d and %d tokens: page %d, from %d on, shows an entry once more", c.limit, c.tokens, pages, req.Offset)
				}
				seen[f.ID] = true
			}
			if res.Next == 0 {
				break
			}
			req.Offset = res.Next
		}
		if len(seen) != len(entries) {
			return fmt.Sprintf("search with the limit %d and %d tokens: the pages, followed to the end, show %d of the %d entries that hold the query", c.limit, c.tokens, len(seen), len(entries))
		}
	}
	return ""
}
