package outbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/contextengine/contextengine/core"
)

// companions returns what Unwrap shows. Where the remote has no search of its own that is the local store, which then
// searches what it holds, if it can: everything.
func companions(s *Store) core.Store {
	if remote, ok := core.As[core.Searcher](s.far); ok {
		local, _ := core.As[core.Searcher](s.local)
		return &searching{Store: s, remote: remote, local: local}
	}
	return s.local
}

// searching adds a search to the companions of the local store.
type searching struct {
	core.Store // the outbox
	remote     core.Searcher
	local      core.Searcher // nil where the local store has none
}

var (
	_ core.Searcher  = (*searching)(nil)
	_ core.Unwrapper = (*searching)(nil)
)

// ByMeaning implements core.ByMeaning for a remote that does.
func (s *searching) ByMeaning() bool {
	m, ok := s.remote.(core.ByMeaning)
	return ok && m.ByMeaning()
}

// Unwrap returns the local store.
func (s *searching) Unwrap() core.Store { return s.outbox().local }

func (s *searching) outbox() *Store {
	o, _ := s.Store.(*Store) // companions put it there
	return o
}

const (
	// maxExtra bounds how many more hits the remote is asked for, because some may have been changed here meanwhile.
	maxExtra = 200
	// maxMatched bounds how many entries that wait are matched by their words.
	maxMatched = 1000
	// rankFusion is the constant of reciprocal rank fusion (Cormack et al., SIGIR 2009).
	rankFusion = 60
)

// Search implements core.Searcher: the remote searches on its side, and what it finds is held against the local store, which knows better:
// what was erased or changed here is left out. What it cannot know yet is found here: by the local store's own search or,
// without one, by matching words of the entries that wait. Both lists are fused by rank. When the remote
// fails, the local search answers alone; without one the error is the remote's.
func (s *searching) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	o := s.outbox()
	if err := o.enter(ctx, "search"); err != nil {
		return nil, err
	}
	defer o.leave()
	if err := validScope("search", q.Scope); err != nil {
		return nil, err
	}
	if q.Limit < 1 {
		return nil, nil
	}
	o.awaitDelivery(ctx, q.Scope)
	var near, far []core.Hit
	var nearErr, farErr error
	var wg sync.WaitGroup
	wg.Go(func() { far, farErr = s.searchRemote(ctx, q) })
	if s.local != nil {
		near, nearErr = s.local.Search(ctx, q)
	} else {
		near, nearErr = o.matchWaiting(ctx, q)
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, failed("search", "", err)
	}
	if nearErr != nil {
		return nil, failed("search", "", nearErr)
	}
	if farErr != nil {
		if s.local == nil {
			return nil, failed("search", "", farErr)
		}
		o.log.WarnContext(ctx, "outbox search is answered by the local store alone", "err", scrub(farErr, nil))
	}
	return fuse(near, far, q.Limit), nil
}

// awaitDelivery waits as configured until nothing of a scope waits.
func (s *Store) awaitDelivery(ctx context.Context, scope core.Scope) {
	if s.cfg.SearchWait <= 0 {
		return
	}
	limit := time.NewTimer(s.cfg.SearchWait)
	defer limit.Stop()
	for {
		s.mu.Lock()
		news, waits := s.news, false
		for id := range s.q.lanes {
			waits = waits || scope.Contains(id) || id.Session == "" && id.Agent == scope.Agent
		}
		s.mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-news:
		case <-limit.C:
			return
		case <-s.closing:
			return
		case <-ctx.Done():
			return
		}
	}
}

// searchRemote returns what the remote finds that the local store has too, as the local store has it.
func (s *searching) searchRemote(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	o := s.outbox()
	o.mu.Lock()
	pending := o.q.pending(q.Scope)
	o.mu.Unlock()
	name := func(remote string) string {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.q.localID(remote)
	}
	far := q
	far.Limit += min(len(pending), maxExtra)
	if q.Exclude != nil {
		far.Exclude = func(id string) bool { return q.Exclude(name(id)) }
	}
	hits, err := s.remote.Search(ctx, far)
	if err != nil {
		return nil, err
	}
	whole := o.complete(q.Scope)
	var out []core.Hit
	for _, h := range hits {
		id := name(h.Entry.ID)
		found, err := o.local.Get(ctx, q.Scope, []string{id})
		switch {
		case errors.Is(err, core.ErrNotFound):
			if whole || pending[id] {
				continue // erased here, or never known here
			}
		case err != nil:
			return nil, err
		case found[0].Fingerprint != h.Entry.Fingerprint:
			continue // what was found is not what it says any more
		default:
			h.Entry = found[0]
		}
		if hidden(h.Entry.Type) || !within(h.Entry.Time, q) {
			continue
		}
		out = append(out, h)
	}
	return out[:min(len(out), q.Limit)], nil
}

func hidden(t core.EntryType) bool { return t == core.TypeHeartbeat || t == core.TypeErased }

func within(t time.Time, q core.SearchQuery) bool {
	return (q.From.IsZero() || !t.Before(q.From)) && (q.To.IsZero() || t.Before(q.To))
}

// matchWaiting finds entries that wait for delivery by the share of the query's words that they contain.
func (s *Store) matchWaiting(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	words := wordsOf(q.Text)
	if len(words) == 0 {
		return nil, nil
	}
	var hits []core.Hit
	for _, id := range s.waiting(q.Scope) {
		if q.Exclude != nil && q.Exclude(id) {
			continue
		}
		found, err := s.local.Get(ctx, q.Scope, []string{id})
		if errors.Is(err, core.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e := found[0]
		if hidden(e.Type) || !within(e.Time, q) {
			continue
		}
		text, n := strings.ToLower(e.Text()), 0
		for _, w := range words {
			if strings.Contains(text, w) {
				n++
			}
		}
		if n > 0 {
			hits = append(hits, core.Hit{Entry: e, Score: float64(n) / float64(len(words))})
		}
	}
	sortHits(hits)
	return hits[:min(len(hits), q.Limit)], nil
}

// waiting returns the ids of appended and changed entries of a scope that wait, each once: the newest, if there are many.
func (s *Store) waiting(scope core.Scope) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []item
	for id, l := range s.q.lanes {
		if scope.Contains(id) {
			items = append(items, l.items[max(0, len(l.items)-maxMatched):]...)
		}
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(b.seq, a.seq) })
	var out []string
	seen := map[string]bool{}
	for _, it := range items[:min(len(items), maxMatched)] {
		if it.op != opDelete && !seen[it.id] {
			seen[it.id] = true
			out = append(out, it.id)
		}
	}
	return out
}

// wordsOf returns the words of a text in lower case, each once.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(strings.ToValidUTF8(text, " ")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	})
	slices.Sort(words)
	return slices.Compact(words)
}

// sortHits puts the best first; ties go to the more recent entry, then to the smaller id.
func sortHits(hits []core.Hit) {
	slices.SortStableFunc(hits, func(a, b core.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Entry.Time.Compare(a.Entry.Time), strings.Compare(a.Entry.ID, b.Entry.ID))
	})
}

// fuse unites two lists by rank, each entry once: scores of different searchers cannot be compared. One list alone stays as it is.
func fuse(near, far []core.Hit, limit int) []core.Hit {
	if len(near) == 0 || len(far) == 0 {
		out := append(near, far...)
		return out[:min(len(out), limit)]
	}
	at := map[string]int{}
	var out []core.Hit
	for _, list := range [][]core.Hit{near, far} {
		for rank, h := range list {
			score := 1 / float64(rankFusion+rank+1)
			if i, ok := at[h.Entry.ID]; ok {
				out[i].Score += score
				out[i].Passage = cmp.Or(out[i].Passage, h.Passage)
				continue
			}
			at[h.Entry.ID] = len(out)
			h.Score = score
			out = append(out, h)
		}
	}
	sortHits(out)
	return out[:min(len(out), limit)]
}
