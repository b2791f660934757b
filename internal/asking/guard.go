package asking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Guard stands between a retriever and a searcher that may fail: the retriever is not kept waiting when its time is over, and a searcher that keeps failing
// is left alone for a while, see core.Breaker. It is safe for concurrent use.
type Guard struct {
	searcher core.Searcher
	breaker  core.Breaker
}

var _ core.Searcher = (*Guard)(nil)

// NewGuard returns a guard of s.
func NewGuard(s core.Searcher) *Guard { return &Guard{searcher: s} }

// Search asks the searcher, unless it is left alone now. It returns when ctx ends, also when the searcher does not heed that; then the search is left
// behind, and ends when the searcher returns. What a searcher has without the slowest of its own is an answer: core.LateSearcher says when there is more.
func (g *Guard) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if err := g.breaker.Try(time.Now()); err != nil {
		return nil, err
	}
	type answer struct {
		hits []core.Hit
		err  error
	}
	ch := make(chan answer, 1)
	// The goroutine ends with the search; a searcher that keeps its contract ends it with ctx.
	go func() {
		hits, err := g.searcher.Search(ctx, q)
		ch <- answer{hits, err}
	}()
	var a answer
	select {
	case a = <-ch:
	case <-ctx.Done():
		select {
		case a = <-ch:
		default:
			a.err = fmt.Errorf("no answer in time: %w", ctx.Err())
		}
	}
	if errors.Is(a.err, core.ErrPartial) {
		a.err = nil
	}
	g.breaker.Note(time.Now(), a.err)
	return a.hits, a.err
}
