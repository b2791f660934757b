package lexical

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// Index is an incremental lexical index over one store. It is safe for concurrent use. It keeps no text: entries are
// fetched from the store once they are found.
//
// Where the store has a core.ChangeFeed, every search first asks it for what changed, so that what other processes did is found too.
// Where it has core.Beside as well, the index of each agent is kept in a file beside the store and read at the first search, which
// then need not read the store again. Close writes what changed since.
type Index struct {
	cfg     Config
	log     *slog.Logger
	scratch sync.Pool
	work    sync.WaitGroup // savings in the background

	mu     sync.Mutex
	src    *source
	agents map[string]*partition
	clock  int64 // counts searches
	held   int64 // bytes that the agents take
	closed bool
}

var (
	_ core.Searcher   = (*Index)(nil)
	_ core.Observer   = (*Index)(nil)
	_ core.Attacher   = (*Index)(nil)
	_ upkeep.Scrubber = (*Index)(nil)
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
	src := sourceOf(store, x.log)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return fmt.Errorf("lexical: attach: %w", core.ErrClosed)
	}
	x.src, x.held = src, 0
	clear(x.agents)
	return nil
}

// Load indexes all entries of an agent now, so that the first search need not. It returns at once when they are. When
// ctx ends before it is done, the next call, or the next search, goes on from there.
func (x *Index) Load(ctx context.Context, agent string) error {
	if _, err := x.current(ctx, agent); err != nil {
		return fmt.Errorf("lexical: load %q: %w", agent, err)
	}
	return nil
}

// ReadsStore implements core.StoreReader: the index knows where entries are, and reads them there.
func (x *Index) ReadsStore() bool { return true }

// Search implements core.Searcher. A query that consists of stopwords alone has no hits.
func (x *Index) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if q.Scope.Agent == "" || q.Limit < 1 {
		return nil, fmt.Errorf("lexical: search: agent and a positive limit are required: %w", core.ErrInvalid)
	}
	fail := func(err error) ([]core.Hit, error) {
		return nil, fmt.Errorf("lexical: search %q: %w", q.Scope.Agent, err)
	}
	p, err := x.current(ctx, q.Scope.Agent)
	if err != nil {
		return fail(err)
	}
	exclude := q.Exclude
	var gone map[string]bool
	// An entry can leave the store between the ranking and the fetch. Then the next best takes its place.
	for range 4 {
		found, err := x.rank(ctx, p, q)
		if err != nil {
			return fail(err)
		}
		hits, missing, err := fetch(ctx, p.src.store, q.Scope, found)
		if err != nil {
			return fail(err)
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
	found, err := x.rank(ctx, p, q)
	if err != nil {
		return fail(err)
	}
	hits, _, err := fetch(ctx, p.src.store, q.Scope, found)
	if err != nil {
		return fail(err)
	}
	return hits, nil
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
	s := p.seg
	if s == nil {
		return nil, nil
	}
	found, err := s.search(ctx, q, w)
	if err != nil {
		return nil, err
	}
	out := make([]place, len(found))
	for i, m := range found {
		d := &s.docs[m.doc]
		out[i] = place{id: string(s.ids.at(d.id)), score: m.score}
		if d.count > 1 {
			out[i].start = int(s.start[m.passage])
			out[i].end = out[i].start + int(s.size[m.passage])
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
		if e.Type == core.TypeErased || e.Type == core.TypeHeartbeat { // since the ranking
			missing = append(missing, e.ID)
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
func (x *Index) Appended(ctx context.Context, entries []core.Entry) error {
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && entries[n].Agent == entries[0].Agent {
			n++
		}
		batch := slices.Clone(entries[:n]) // it may have to wait in a queue
		if p := x.known(batch[0].Agent); p != nil {
			p.apply(n, nil, func(s *segment) {
				for _, e := range batch {
					s.put(e)
				}
			})
			x.grown(ctx, p)
		}
		entries = entries[n:]
	}
	return nil
}

// Updated implements core.Observer. When it returns, no file of the index holds the old text; an error says that one may.
func (x *Index) Updated(_ context.Context, entry core.Entry) error {
	if p := x.known(entry.Agent); p != nil {
		p.apply(1, []string{entry.ID}, func(s *segment) { s.put(entry) })
	}
	return x.discard(entry.Agent)
}

// Deleted implements core.Observer. When it returns, no file of the index holds the deleted text; an error says that one may. Unknown
// ids are no error.
func (x *Index) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	ids = slices.Clone(ids)
	if p := x.known(scope.Agent); p != nil {
		p.apply(len(ids), ids, func(s *segment) {
			for _, id := range ids {
				s.remove(scope, id)
			}
		})
	}
	return x.discard(scope.Agent)
}

// Scrub implements upkeep.Scrubber: files of the index that may hold what was erased are removed, also those of agents that this process never
// searched. They are made again in time.
func (x *Index) Scrub(ctx context.Context) error {
	x.mu.Lock()
	src := x.src
	x.mu.Unlock()
	if src == nil || !src.keeps() {
		return nil
	}
	if err := src.dir.scrub(ctx, src.feed); err != nil {
		return fmt.Errorf("lexical: scrub: %w", err)
	}
	return nil
}

// Close writes the index of agents that changed beside the store, where there is a place for it, and waits for what is being
// written, for at most half a minute. The store has to be open still. Later searches return core.ErrClosed. A second call returns nil.
func (x *Index) Close() error {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return nil
	}
	x.closed = true
	ps := make([]*partition, 0, len(x.agents))
	for _, p := range x.agents {
		ps = append(ps, p)
	}
	clear(x.agents)
	x.mu.Unlock()
	x.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	slices.SortFunc(ps, func(a, b *partition) int { return strings.Compare(a.agent, b.agent) })
	var errs []error
	for _, p := range ps {
		if err := x.save(ctx, p, 1); err != nil && !errors.Is(err, core.ErrClosed) {
			errs = append(errs, fmt.Errorf("lexical: close: save %q: %w", p.agent, err))
		}
	}
	return errors.Join(errs...)
}

// saveTimeout bounds how long the writing of an index may take, and Close.
const saveTimeout = 30 * time.Second
