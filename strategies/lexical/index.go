package lexical

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// Index is an incremental lexical index over one store. It is safe for concurrent use. It keeps no text: entries are
// fetched from the store once they are found.
type Index struct {
	cfg     Config
	log     *slog.Logger
	scratch sync.Pool

	mu     sync.Mutex
	store  core.Store
	agents map[string]*partition
}

var (
	_ core.Searcher = (*Index)(nil)
	_ core.Observer = (*Index)(nil)
	_ core.Attacher = (*Index)(nil)
)

// New returns an empty index. It answers after Attach. The error wraps core.ErrInvalid when cfg is not valid.
func New(cfg Config, opts ...Option) (*Index, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	x := &Index{cfg: cfg, log: slog.New(slog.DiscardHandler), agents: map[string]*partition{}}
	x.scratch.New = func() any { return new(scratch) }
	for _, o := range opts {
		o(x)
	}
	return x, nil
}

// Attach sets the store whose entries are indexed. What was indexed of another store before is forgotten.
func (x *Index) Attach(store core.Store) error {
	if store == nil {
		return fmt.Errorf("lexical: attach: no store given: %w", core.ErrInvalid)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.store = store
	clear(x.agents)
	return nil
}

// Load indexes all entries of an agent now, so that the first search need not. It returns at once when they are. When
// ctx ends before it is done, the next call, or the next search, goes on from there.
func (x *Index) Load(ctx context.Context, agent string) error {
	_, _, err := x.loaded(ctx, agent)
	if err != nil {
		return fmt.Errorf("lexical: load %q: %w", agent, err)
	}
	return nil
}

// Search implements core.Searcher. A query that consists of stopwords alone has no hits.
func (x *Index) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if q.Scope.Agent == "" || q.Limit < 1 {
		return nil, fmt.Errorf("lexical: search: agent and a positive limit are required: %w", core.ErrInvalid)
	}
	p, store, err := x.loaded(ctx, q.Scope.Agent)
	if err != nil {
		return nil, fmt.Errorf("lexical: search %q: %w", q.Scope.Agent, err)
	}
	exclude := q.Exclude
	var gone map[string]bool
	// An entry can leave the store between the ranking and the fetch. Then the next best takes its place.
	for range 4 {
		found, err := x.rank(ctx, p, q)
		if err != nil {
			return nil, fmt.Errorf("lexical: search %q: %w", q.Scope.Agent, err)
		}
		hits, missing, err := fetch(ctx, store, q.Scope, found)
		if err != nil {
			return nil, fmt.Errorf("lexical: search %q: %w", q.Scope.Agent, err)
		}
		if len(missing) == 0 {
			return hits, nil
		}
		if gone == nil {
			gone = map[string]bool{}
		}
		for _, id := range missing {
			gone[id] = true
		}
		q.Exclude = func(id string) bool { return gone[id] || exclude != nil && exclude(id) }
	}
	x.log.WarnContext(ctx, "lexical: entries keep leaving the store during a search", slog.Int("gone", len(gone)))
	q.Limit += len(gone)
	found, err := x.rank(ctx, p, q)
	if err != nil {
		return nil, fmt.Errorf("lexical: search %q: %w", q.Scope.Agent, err)
	}
	hits, _, err := fetch(ctx, store, q.Scope, found)
	if err != nil {
		return nil, fmt.Errorf("lexical: search %q: %w", q.Scope.Agent, err)
	}
	return hits[:min(len(hits), q.Limit-len(gone))], nil
}

// place is where a match is found in the store.
type place struct {
	id         string
	score      float64
	start, end int // of the passage in the entry's text; both 0 when it is all of it
}

func (x *Index) rank(ctx context.Context, p *partition, q core.SearchQuery) ([]place, error) {
	w := x.scratch.Get().(*scratch)
	defer x.scratch.Put(w)
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.seg == nil { // another store was attached in between
		return nil, nil
	}
	found, err := p.seg.search(ctx, q, w)
	if err != nil {
		return nil, err
	}
	out := make([]place, len(found))
	for i, m := range found {
		d := &p.seg.docs[m.doc]
		out[i] = place{id: d.id, score: m.score}
		if d.count > 1 {
			pg := &p.seg.passages[m.passage]
			out[i].start, out[i].end = int(pg.start), int(pg.end)
		}
	}
	return out, nil
}

// fetch reads the entries of places from the store. Missing ones are left out and named.
func fetch(ctx context.Context, store core.Store, scope core.Scope, found []place) (hits []core.Hit, missing []string, err error) {
	if len(found) == 0 {
		return nil, nil, nil
	}
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.id
	}
	entries, err := store.Get(ctx, scope, ids)
	switch {
	case errors.Is(err, core.ErrNotFound):
		entries = make([]core.Entry, len(found))
		for i, id := range ids {
			one, err := store.Get(ctx, scope, []string{id})
			if errors.Is(err, core.ErrNotFound) || err == nil && len(one) != 1 {
				missing = append(missing, id)
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			entries[i] = one[0]
		}
	case err != nil:
		return nil, nil, err
	case len(entries) != len(found):
		return nil, nil, fmt.Errorf("store returned %d entries for %d ids", len(entries), len(found))
	}
	hits = make([]core.Hit, 0, len(found))
	for i, e := range entries {
		if e.ID == "" {
			continue
		}
		h := core.Hit{Entry: e, Score: found[i].score}
		// An update that the index has not heard of yet may have made the text shorter.
		if text := e.Text(); found[i].end > 0 && found[i].end <= len(text) {
			h.Passage = strings.ToValidUTF8(strings.TrimSpace(text[found[i].start:found[i].end]), "")
		}
		hits = append(hits, h)
	}
	return hits, missing, nil
}

// Appended implements core.Observer. It never fails: entries of agents that nobody has searched yet are read when that happens.
func (x *Index) Appended(_ context.Context, entries []core.Entry) error {
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && entries[n].Agent == entries[0].Agent {
			n++
		}
		batch := slices.Clone(entries[:n]) // it may have to wait in a queue
		x.apply(entries[0].Agent, func(s *segment) {
			for _, e := range batch {
				s.add(e)
			}
		})
		entries = entries[n:]
	}
	return nil
}

// Updated implements core.Observer. It never fails.
func (x *Index) Updated(_ context.Context, entry core.Entry) error {
	x.apply(entry.Agent, func(s *segment) { s.update(entry) })
	return nil
}

// Deleted implements core.Observer. It never fails; unknown ids are no error.
func (x *Index) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	ids = slices.Clone(ids)
	x.apply(scope.Agent, func(s *segment) {
		for _, id := range ids {
			if s.holds(scope, id) {
				s.remove(id)
			}
		}
	})
	return nil
}
