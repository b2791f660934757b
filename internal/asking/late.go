package asking

import "github.com/contextengine/contextengine/core"

// Late reports whether a searcher has something by now that it did not have when it was asked for the text of a query.
func Late(s core.Searcher, q core.Query, text string) bool {
	late, ok := s.(core.LateSearcher)
	if !ok || text == "" {
		return false
	}
	for _, scope := range q.Scopes() {
		if late.Late(core.SearchQuery{Scope: scope, Text: text}) {
			return true
		}
	}
	return false
}
