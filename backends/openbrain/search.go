package openbrain

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
)

const (
	// overfetch is how many times the wanted number of hits is asked for first: the server searches all its thoughts, those
	// of other agents and of other programs too.
	overfetch = 4
	// minSearch and maxSearch bound the number of hits asked for.
	minSearch, maxSearch = 20, 2000
	// maxQuery bounds the query, in bytes; embedding models read no more.
	maxQuery = 8 << 10
)

// ByMeaning implements core.ByMeaning: an OpenBrain server embeds what it is given and compares vectors. One that has no embedder says so itself.
func (*Store) ByMeaning() bool { return true }

// Search implements core.Searcher: the server ranks, and what it finds outside the scope is left out here. Thoughts that the server
// stored without an embedding are not found until it has made one.
func (s *Store) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if err := s.readyFor(ctx, "search", q.Scope); err != nil {
		return nil, err
	}
	text := strings.TrimSpace(clip(clean(q.Text), maxQuery))
	if text == "" || q.Limit < 1 {
		return nil, nil
	}
	f := &finder{store: s, q: q}
	limit, refused := min(max(overfetch*q.Limit, minSearch), maxSearch), maxSearch+1
	for before := -1; ; {
		found, err := f.ask(ctx, text, limit)
		if err != nil && tooMuch(err) && limit > 1 {
			refused, limit = limit, asFailure(err).smaller(limit)
			continue
		}
		if err != nil {
			return nil, failed("search", "", err)
		}
		hits, err := f.hits(ctx, found)
		if err != nil {
			return nil, failed("search", "", err)
		}
		next := min(2*limit, maxSearch)
		if len(hits) >= q.Limit || len(found) < limit || len(found) <= before || next >= refused || next == limit {
			for i := range hits[:min(len(hits), q.Limit)] {
				hits[i].Entry = hits[i].Entry.Clone()
			}
			return hits[:min(len(hits), q.Limit)], nil
		}
		before, limit = len(found), next
	}
}

// finder turns what a server found into hits.
type finder struct {
	store *Store
	q     core.SearchQuery
	// listed is what there is of the agent, once that had to be found out, visible and hidden are made of it when it is asked more: the entries by id, and the ids of other
	// thoughts. partial says that not all could be seen.
	listed  *census
	visible map[string]record
	hidden  map[string]bool
	partial bool
}

// headerSearch is in the answers to searches of servers that take a source in a search, which the documented one does not.
const headerSearch = "OpenBrain-Search"

// ask sends the query, with the source where the server is known to take it.
func (f *finder) ask(ctx context.Context, text string, limit int) ([]thought, error) {
	s := f.store
	body := map[string]any{"query": text, "limit": limit}
	if s.client.can.searchesSource.Load() {
		body["source"] = s.cfg.source(f.q.Scope.Agent)
	}
	answer, err := s.client.do(ctx, "search", call{
		method: http.MethodPost, path: pathSearch, body: body, wantJSON: true, single: s.cfg.Keep == KeepText,
		answered: func(h http.Header) { s.client.can.searchesSource.Store(h.Get(headerSearch) != "") },
	})
	if err != nil {
		return nil, err
	}
	found, err := decodeList(answer)
	if err != nil {
		return nil, &failure{what: "answer to POST " + pathSearch + " is " + err.Error(), kind: core.ErrUnavailable}
	}
	return found.thoughts, nil
}

// hits keeps the entries that the query is about, each once, best first.
func (f *finder) hits(ctx context.Context, found []thought) ([]core.Hit, error) {
	// Scores of some only cannot be compared; then the server's order is the score.
	ranked := slices.ContainsFunc(found, func(t thought) bool { return !t.Scored })
	var hits []core.Hit
	skipped := 0
	seen := map[sessionKey]bool{}
	for i, t := range found {
		r, ok := f.store.cfg.record(t, f.q.Scope.Agent)
		if !ok {
			skipped++
			continue
		}
		if !f.wanted(r.entry) || seen[r.key()] {
			continue
		}
		shown, err := f.shown(ctx, r)
		if err != nil {
			return nil, err
		}
		if !shown {
			continue
		}
		seen[r.key()] = true
		if f.store.client.can.noList.Load() && f.store.cfg.Keep == KeepAll {
			f.store.ids.put(r.entry.ID, r.thought)
			f.store.seen.put(r.entry.Agent, r)
		}
		score := t.Score
		if ranked {
			score = 1 / float64(i+1)
		}
		hits = append(hits, core.Hit{Entry: r.entry, Score: score})
	}
	f.store.skipped.Add(int64(skipped))
	slices.SortStableFunc(hits, func(a, b core.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Entry.Time.Compare(a.Entry.Time), strings.Compare(a.Entry.ID, b.Entry.ID))
	})
	return hits, nil
}

func (f *finder) wanted(e core.Entry) bool {
	return f.q.Scope.Contains(e.SessionID()) && e.Type != core.TypeHeartbeat && e.Type != core.TypeErased &&
		(f.q.From.IsZero() || !e.Time.Before(f.q.From)) && (f.q.To.IsZero() || e.Time.Before(f.q.To)) &&
		(f.q.Exclude == nil || !f.q.Exclude(e.ID))
}

// shown reports whether Scan would show the entry as it was found: the thought is no part of an unfinished batch, and no copy of
// an entry that was changed since. Only what this store has not seen before needs a listing, once per search.
func (f *finder) shown(ctx context.Context, r record) (bool, error) {
	if f.known(r) {
		return true, nil
	}
	if f.store.cfg.Keep == KeepText || f.store.client.can.noList.Load() {
		return true, nil // what the newest thoughts do not show is older, and there all the same
	}
	if f.listed == nil {
		if err := f.store.lookAgain(ctx, f.q.Scope.Agent); err != nil {
			return false, err
		}
		if f.known(r) {
			return true, nil
		}
		c, err := f.store.take(ctx, "search", f.q.Scope.Agent)
		var p *partial
		if err != nil && !errors.As(err, &p) {
			return false, err
		}
		f.listed, f.partial = &c, p != nil
		if f.known(r) {
			return true, nil
		}
	}
	if f.visible == nil {
		f.visible, f.hidden = make(map[string]record, len(f.listed.visible)), map[string]bool{}
		for _, v := range f.listed.visible {
			f.visible[v.entry.ID] = v
		}
		for _, h := range slices.Concat(f.listed.hidden, f.listed.copies) {
			f.hidden[h.entry.ID] = true
		}
	}
	if v, ok := f.visible[r.entry.ID]; ok {
		if v.thought == r.thought {
			return true, nil
		}
		return f.store.cfg.alike(v.entry, r.entry)
	}
	// What the listing did not reach is old, and so is the end of its batch.
	return f.partial && !f.hidden[r.entry.ID], nil
}

// known reports whether an entry is known to be this thought.
func (f *finder) known(r record) bool {
	thought, ok := f.store.ids.get(r.entry.ID)
	return ok && thought == r.thought && r.thought != ""
}

// lookAgain takes up what others stored since, where that is few enough to be among the newest thoughts. What is known of an agent that was never listed stays.
func (s *Store) lookAgain(ctx context.Context, agent string) error {
	if s.client.can.follow() {
		return nil // what changed is asked for
	}
	g, err := s.agents.acquire(ctx, agent)
	if err != nil {
		return err
	}
	defer s.agents.release(g)
	if !g.loaded || g.partial || s.cfg.Exclusive {
		_, err = s.load(ctx, "search", g)
		return err
	}
	_, _, err = s.fresh(ctx, "search", g, 0)
	if lacks(err) {
		err = nil
	}
	return err
}
