package semantic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/asking"
)

// VectorConfig is everything an operator sets about a VectorIndex.
type VectorConfig struct {
	// Batch is how many texts one call of the embedder gets, 1 to 2048.
	Batch int `koanf:"batch" doc:"texts in one call of the embedder, 1 to 2048"`
	// PerSearch bounds how many pending entries of an agent one search embeds before it answers, 0 to 1000000; the rest waits for
	// the next search or for Flush. With 0 only Flush embeds.
	PerSearch int `koanf:"perSearch" doc:"pending entries one search embeds before it answers, 0 to 1000000"`
	// MaxChars is how much of an entry's text is embedded, from its beginning, in bytes, 100 to 1000000.
	MaxChars int `koanf:"maxChars" doc:"how much of an entry is embedded, in bytes, 100 to 1000000"`
}

// DefaultVectorConfig returns the configuration that holds where nobody chose.
func DefaultVectorConfig() VectorConfig {
	return VectorConfig{Batch: 64, PerSearch: 512, MaxChars: 6000}
}

// Validate returns an error that wraps core.ErrInvalid and names the first field out of range, and the range.
func (c VectorConfig) Validate() error {
	return firstInvalid("vector config", []bound{
		{"batch", c.Batch, 1, 2048},
		{"perSearch", c.PerSearch, 0, 1_000_000},
		{"maxChars", c.MaxChars, 100, 1_000_000},
	})
}

// VectorOption sets what no configuration file can hold.
type VectorOption func(*VectorIndex)

// WithLogger sets the logger; without it nothing is logged. Contents of entries and queries are never logged.
func WithLogger(l *slog.Logger) VectorOption {
	return func(x *VectorIndex) {
		if l != nil {
			x.log = l
		}
	}
}

// VectorIndex finds entries by the cosine of their embedding and the query's, comparing with every entry of the agent. It is
// safe for concurrent use.
//
// Where the store is a vector.Store, vectors are kept there, in a space named after the model and its dimensions: after a
// start they are read back, and only what has none is embedded. Where it is a vector.Searcher as well, it compares on its side, and no
// vectors are held in memory. In other stores vectors live in memory alone: after a start everything is embedded again.
//
// Searches embed what is pending, at most VectorConfig.PerSearch entries each. Appends never wait for the embedder. While the embedder is
// down entries stay pending. One that answers zeros alone, or the same vector for all texts, is as good as down.
type VectorIndex struct {
	cfg      VectorConfig
	embedder core.Embedder
	log      *slog.Logger
	// dimensions of the vectors last made, 0 before the first.
	dimensions atomic.Int64
	worth      worth

	mu     sync.Mutex
	src    *source
	agents map[string]*vectors
}

var (
	_ core.Searcher = (*VectorIndex)(nil)
	_ core.Observer = (*VectorIndex)(nil)
	_ core.Attacher = (*VectorIndex)(nil)

	_ core.ByMeaning = (*VectorIndex)(nil)
)

// NewVector returns an empty index. It answers after Attach. The error wraps core.ErrInvalid when cfg is not valid or there
// is no embedder.
func NewVector(cfg VectorConfig, embedder core.Embedder, opts ...VectorOption) (*VectorIndex, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if embedder == nil {
		return nil, fmt.Errorf("semantic: new vector index: no embedder given: %w", core.ErrInvalid)
	}
	x := &VectorIndex{cfg: cfg, embedder: embedder, log: slog.New(slog.DiscardHandler), agents: map[string]*vectors{}}
	for _, o := range opts {
		o(x)
	}
	return x, nil
}

// Attach sets the store whose entries are indexed. What was indexed of another store before is forgotten.
func (x *VectorIndex) Attach(store core.Store) error {
	if store == nil {
		return fmt.Errorf("semantic: attach: no store given: %w", core.ErrInvalid)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.src = sourceOf(store)
	clear(x.agents)
	return nil
}

// ByMeaning implements core.ByMeaning.
func (*VectorIndex) ByMeaning() bool { return true }

// ReadsStore implements core.StoreReader: the index knows where entries are, and reads them there.
func (x *VectorIndex) ReadsStore() bool { return true }

// Search implements core.Searcher. It embeds some of what is pending first. When that fails, what is embedded already
// answers; it is an error only when nothing is, or when the query itself cannot be embedded.
func (x *VectorIndex) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if q.Scope.Agent == "" || q.Limit < 1 {
		return nil, fmt.Errorf("semantic: search: agent and a positive limit are required: %w", core.ErrInvalid)
	}
	fail := func(err error) ([]core.Hit, error) {
		return nil, fmt.Errorf("semantic: search %q: %w", q.Scope.Agent, err)
	}
	for {
		v, err := x.agent(q.Scope.Agent)
		if err != nil {
			return fail(err)
		}
		hits, err := x.search(ctx, v, q)
		if errors.Is(err, errors.ErrUnsupported) && x.doWithout(v) {
			continue
		}
		if err != nil {
			return fail(err)
		}
		return hits, nil
	}
}

func (x *VectorIndex) search(ctx context.Context, v *vectors, q core.SearchQuery) ([]core.Hit, error) {
	if err := x.load(ctx, v); err != nil {
		return nil, err
	}
	if err := x.embedPending(ctx, v, x.cfg.PerSearch, nil); err != nil {
		if v.embedded() == 0 || ctx.Err() != nil || errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
		x.log.WarnContext(ctx, "semantic: entries stay pending", slog.String("error", err.Error()))
	}
	text := asking.Head(q.Text, x.cfg.MaxChars)
	if text == "" || v.embedded() == 0 {
		return nil, nil
	}
	got, err := x.embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	if got[0] == nil {
		return nil, fmt.Errorf("embed with %q: what is looked for has no vector that can be compared: %w", x.embedder.Model(), core.ErrUnavailable)
	}
	if v.src.searcher != nil {
		return v.searchStore(ctx, x.spaceOf(len(got[0])), got[0], q)
	}
	return fetch(ctx, v.src.store, q.Scope, v.nearest(got[0], q))
}

// Flush embeds all that is pending, of every agent that was searched before. It stops at the first error; what was embedded until then
// stays.
func (x *VectorIndex) Flush(ctx context.Context) error {
	x.mu.Lock()
	names := make([]string, 0, len(x.agents))
	for name := range x.agents {
		names = append(names, name)
	}
	x.mu.Unlock()
	slices.Sort(names)
	for _, name := range names {
		if err := x.Load(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Load reads an agent's entries from the store and embeds all of them now, so that searches need not.
func (x *VectorIndex) Load(ctx context.Context, agent string) error {
	if _, err := x.embedAll(ctx, agent, nil); err != nil {
		return fmt.Errorf("semantic: load %q: %w", agent, err)
	}
	return nil
}

// embedAll embeds what is pending of an agent.
func (x *VectorIndex) embedAll(ctx context.Context, agent string, progress func(done, total int)) (*vectors, error) {
	for {
		v, err := x.agent(agent)
		if err == nil {
			err = x.load(ctx, v)
		}
		if err == nil {
			err = x.embedPending(ctx, v, -1, progress)
		}
		if errors.Is(err, errors.ErrUnsupported) && x.doWithout(v) {
			continue
		}
		return v, err
	}
}

// Pending returns how many entries of an agent wait for the embedder; 0 when the agent was never searched.
func (x *VectorIndex) Pending(agent string) int {
	x.mu.Lock()
	v := x.agents[agent]
	x.mu.Unlock()
	if v == nil {
		return 0
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.pending)
}

// Appended implements core.Observer. It never fails and never waits for the embedder.
func (x *VectorIndex) Appended(_ context.Context, entries []core.Entry) error {
	for _, e := range entries {
		x.apply(e.Agent, func(v *vectors) { v.add(e, x.cfg.MaxChars) })
	}
	return nil
}

// Updated implements core.Observer. The old vector is dropped at once: it may stand for what had to be erased.
func (x *VectorIndex) Updated(_ context.Context, entry core.Entry) error {
	x.apply(entry.Agent, func(v *vectors) {
		v.remove(entry.ID)
		v.add(entry, x.cfg.MaxChars)
	})
	return nil
}

// Deleted implements core.Observer. Unknown ids are no error.
func (x *VectorIndex) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	x.apply(scope.Agent, func(v *vectors) {
		for _, id := range ids {
			if it := v.items[id]; it == nil || scope.Session == "" || it.session == scope.Session {
				v.remove(id)
			}
		}
	})
	return nil
}

func (x *VectorIndex) agent(name string) (*vectors, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.src == nil {
		return nil, fmt.Errorf("no store attached: call Attach first: %w", core.ErrInvalid)
	}
	v := x.agents[name]
	if v == nil {
		v = newVectors(name, x.src)
		x.agents[name] = v
	}
	return v, nil
}

func (x *VectorIndex) apply(agent string, change func(*vectors)) {
	x.mu.Lock()
	v := x.agents[agent]
	x.mu.Unlock()
	if v == nil {
		return // it is in the store, and will be read from there
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != unread {
		change(v)
	}
}
