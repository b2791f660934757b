package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/contextengine/contextengine/core"
)

// companions returns what Unwrap shows. Where the remote has no search of its own that is the local store, which then
// searches what it holds, if it can: everything.
func companions(s *Store) core.Store {
	if remote, ok := core.As[core.Searcher](s.far); ok {
		local, _ := core.As[core.Searcher](s.local)
		s.asks = &asker{search: remote, now: s.now, flights: map[topic]*flight{}, pause: firstRest}
		return &searching{Store: s, local: local}
	}
	return s.local
}

// searching adds a search to the companions of the local store.
type searching struct {
	core.Store               // the outbox
	local      core.Searcher // nil where the local store has none
}

var (
	_ core.Searcher     = (*searching)(nil)
	_ core.LateSearcher = (*searching)(nil)
	_ core.Unwrapper    = (*searching)(nil)
)

// ByMeaning implements core.ByMeaning for a remote that does.
func (s *searching) ByMeaning() bool {
	m, ok := s.outbox().asks.search.(core.ByMeaning)
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
// without one, by matching words of the entries that wait. Both lists are fused by rank.
//
// The remote is waited for at most Config.RemoteWait once the local answer is there, and after a few searches without an answer it is not asked for
// a while; then the local answer stands alone. What comes later is had by the next search for the same, see Late. Where the local store has no search, that
// answer holds only what waits, and comes with an error that wraps core.ErrPartial.
func (s *searching) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	o := s.outbox()
	if err := o.enter(ctx, "search"); err != nil {
		return nil, err
	}
	defer o.leave()
	if err := q.Scope.Check("outbox: search"); err != nil {
		return nil, err
	}
	if q.Limit < 1 {
		return nil, nil
	}
	o.catchUpBriefly(ctx)
	o.awaitDelivery(ctx, q.Scope)
	asked := q
	o.mu.Lock()
	pending, delivered := o.q.pending(q.Scope), o.q.sent
	o.mu.Unlock()
	asked.Limit += min(len(pending), maxExtra)
	f, farErr := o.asks.begin(asked, delivered)
	since := delivered
	if f != nil {
		since = f.since
	}
	var near []core.Hit
	var err error
	if s.local != nil {
		near, err = s.local.Search(ctx, q)
	} else {
		near, err = o.matchWaiting(ctx, q, since)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, failed("search", "", err)
	}
	var far []core.Hit
	if f != nil {
		if far, farErr = o.asks.await(ctx, f, o.cfg.RemoteWait); farErr == nil {
			far, farErr = s.known(ctx, q, far, pending)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, failed("search", "", err)
	}
	if farErr == nil {
		return fuse(near, far, q.Limit), nil
	}
	waited := errors.Is(farErr, errLate) || errors.Is(farErr, errResting)
	if s.local == nil && !waited {
		return nil, failed("search", "", farErr)
	}
	o.log.DebugContext(ctx, "outbox search is answered without the remote", "err", scrub(farErr, nil))
	if s.local == nil {
		return near, failed("search", "", fmt.Errorf("%w: %w", core.ErrPartial, farErr))
	}
	return near, nil
}

// Late implements core.LateSearcher.
func (s *searching) Late(q core.SearchQuery) bool { return s.outbox().asks.arrived(q) }

// catchUpFor is how long a search waits at most for the journal, which another process may hold.
const catchUpFor = 100 * time.Millisecond

// catchUpBriefly takes up what other processes wrote, so that it is found. Where the journal cannot be had, what this one knows must do.
func (s *Store) catchUpBriefly(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpFor)
	defer cancel()
	if err := s.refresh(ctx); err != nil {
		s.log.DebugContext(ctx, "outbox search does without what others wrote", "err", scrub(err, nil))
	}
}

// awaitDelivery waits as configured until nothing of a scope waits, by whichever process it is delivered.
func (s *Store) awaitDelivery(ctx context.Context, scope core.Scope) {
	if s.cfg.SearchWait <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SearchWait)
	defer cancel()
	for {
		s.mu.Lock()
		news, leads, waits := s.news, s.leads, false
		for id := range s.q.lanes {
			waits = waits || scope.Contains(id) || id.Session == "" && id.Agent == scope.Agent
		}
		s.mu.Unlock()
		if !waits || s.await(ctx, s.closing, news, leads) != nil {
			return
		}
	}
}

// known returns what the remote found as the local store has it. Of a remote that keeps the text only, whose history cannot be copied, it returns what
// only that has, too: another machine wrote it, or the local store was lost.
func (s *searching) known(ctx context.Context, q core.SearchQuery, hits []core.Hit, pending map[string]bool) ([]core.Hit, error) {
	o := s.outbox()
	var out []core.Hit
	for _, h := range hits {
		if len(out) == q.Limit {
			break
		}
		o.mu.Lock()
		id := o.q.localID(h.Entry.ID)
		o.mu.Unlock()
		if !q.Scope.Contains(h.Entry.SessionID()) || q.Exclude != nil && q.Exclude(id) {
			continue
		}
		found, err := o.local.Get(ctx, q.Scope, []string{id})
		switch {
		case errors.Is(err, core.ErrNotFound):
			if !o.textOnly && o.complete(q.Scope) || pending[id] || o.isErased(h.Entry.ID) {
				continue // erased here, or never known here
			}
			o.believe(h.Entry)
		case err != nil:
			return nil, err
		case !o.textOnly && found[0].Fingerprint != h.Entry.Fingerprint, o.textOnly && pending[id]:
			continue // what was found is not what it says any more
		default:
			h.Entry = found[0]
		}
		if hidden(h.Entry.Type) || !within(h.Entry.Time, q) {
			continue
		}
		out = append(out, h)
	}
	return out, nil
}

func hidden(t core.EntryType) bool { return t == core.TypeHeartbeat || t == core.TypeErased }

func within(t time.Time, q core.SearchQuery) bool {
	return (q.From.IsZero() || !t.Before(q.From)) && (q.To.IsZero() || t.Before(q.To))
}

// matchWaiting finds entries that wait for delivery, or were delivered after a search began, by the share of the query's words that they contain.
func (s *Store) matchWaiting(ctx context.Context, q core.SearchQuery, since uint64) ([]core.Hit, error) {
	words := wordsOf(q.Text)
	if len(words) == 0 {
		return nil, nil
	}
	var hits []core.Hit
	for _, id := range s.waiting(q.Scope, since) {
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
func (s *Store) waiting(scope core.Scope, since uint64) []string {
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
	for _, d := range s.q.lately {
		if d.number >= since && scope.Contains(d.session) && !seen[d.id] {
			seen[d.id] = true
			out = append(out, d.id)
		}
	}
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
