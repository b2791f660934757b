package semantic

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/asking"
)

// Config is everything an operator sets about a Retriever.
type Config struct {
	// Limit is the largest number of candidates, 1 to 1000; the Engine may ask for fewer.
	Limit int `koanf:"limit" doc:"largest number of candidates, 1 to 1000"`
	// ShortPrompt is the length in bytes below which a prompt cannot stand alone, 0 to 1000; 0 never adds context.
	ShortPrompt int `koanf:"shortPrompt" doc:"bytes below which a prompt is completed by what was said last, 0 to 1000; 0 never"`
	// ContextChars is how much of what was said last completes a short prompt, in bytes, 0 to 100000.
	ContextChars int `koanf:"contextChars" doc:"how much of that completes it, in bytes, 0 to 100000"`
	// PromptChars bounds how much of a prompt is looked for, in bytes, 100 to 100000.
	PromptChars int `koanf:"promptChars" doc:"how much of a prompt is looked for, in bytes, 100 to 100000"`
}

// DefaultConfig returns the configuration that holds where nobody chose.
func DefaultConfig() Config {
	return Config{Limit: 50, ShortPrompt: 24, ContextChars: 300, PromptChars: 4000}
}

// Validate returns an error that wraps core.ErrInvalid and names the first field out of range, and the range.
func (c Config) Validate() error {
	return firstInvalid("config", []bound{
		{"limit", c.Limit, 1, 1000},
		{"shortPrompt", c.ShortPrompt, 0, 1000},
		{"contextChars", c.ContextChars, 0, 100_000},
		{"promptChars", c.PromptChars, 100, 100_000},
	})
}

// bound is a field and its range.
type bound struct {
	field     string
	v, lo, hi int
}

func firstInvalid(op string, bounds []bound) error {
	for _, b := range bounds {
		if b.v < b.lo || b.v > b.hi {
			return fmt.Errorf("semantic: %s: %s: must be %d to %d: %w", op, b.field, b.lo, b.hi, core.ErrInvalid)
		}
	}
	return nil
}

// Option sets what no configuration file can hold.
type Option func(*Retriever)

// WithSource sets the name that candidates carry as their source; the default is "semantic", and "words" where the searcher is not a core.ByMeaning.
func WithSource(name string) Option {
	return func(r *Retriever) { r.source = name }
}

// Retriever proposes what one searcher finds. It is safe for concurrent use.
type Retriever struct {
	cfg      Config
	searcher core.Searcher
	guard    *asking.Guard
	source   string
	words    bool // the searcher finds no meaning
}

var (
	_ core.Retriever  = (*Retriever)(nil)
	_ core.Observer   = (*Retriever)(nil)
	_ core.Attacher   = (*Retriever)(nil)
	_ upkeep.Scrubber = (*Retriever)(nil)
	_ core.Caveat     = (*Retriever)(nil)

	_ core.LateRetriever = (*Retriever)(nil)
	_ core.StoreReader   = (*Retriever)(nil)
)

// New returns a retriever over searcher. The error wraps core.ErrInvalid when cfg is not valid or there is no searcher.
func New(cfg Config, searcher core.Searcher, opts ...Option) (*Retriever, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if searcher == nil {
		return nil, fmt.Errorf("semantic: new: no searcher given: %w", core.ErrInvalid)
	}
	r := &Retriever{cfg: cfg, searcher: searcher, guard: asking.NewGuard(searcher), source: "semantic"}
	if m, ok := searcher.(core.ByMeaning); !ok || !m.ByMeaning() {
		r.words, r.source = true, "words"
	}
	for _, o := range opts {
		o(r)
	}
	return r, nil
}

// Retrieve implements core.Retriever. With more than one scope to look into, the finds of each take turns: their scores cannot be
// compared. Where one of several scopes fails, the others answer, and the error wraps core.ErrPartial. A searcher that keeps failing is not asked for a
// while, see core.Breaker.
func (r *Retriever) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	text := r.text(q)
	if text == "" {
		return nil, ctx.Err()
	}
	limit := min(q.Limit, r.cfg.Limit)
	scopes := q.Scopes()
	lists := make([][]core.Hit, 0, len(scopes))
	var failed error
	for _, scope := range scopes {
		// A searcher honours Exclude; a few more hits cover one that reports what has just entered the window.
		hits, err := r.guard.Search(ctx, core.SearchQuery{Scope: scope, Text: text, Limit: limit + limit/4, Exclude: q.InWindow})
		if err != nil {
			if failed == nil {
				failed = err
			}
			continue
		}
		lists = append(lists, admitted(hits, scope, q.InWindow))
	}
	switch {
	case len(lists) == 0:
		return nil, fmt.Errorf("semantic: retrieve %q: %w", q.Session, failed)
	case failed != nil:
		return r.merge(lists, limit), fmt.Errorf("semantic: retrieve %q: %w: %w", q.Session, core.ErrPartial, failed)
	}
	return r.merge(lists, limit), nil
}

// Late implements core.LateRetriever: it reports whether the searcher has something by now that it did not have when it was asked for this.
func (r *Retriever) Late(q core.Query) bool { return asking.Late(r.searcher, q, r.text(q)) }

// ReadsStore implements core.StoreReader for a searcher that does.
func (r *Retriever) ReadsStore() bool { return core.ReadsStore(r.searcher) }

// text is what is looked for.
func (r *Retriever) text(q core.Query) string {
	return asking.Text(q, asking.Limits{
		PromptChars: r.cfg.PromptChars, ShortPrompt: r.cfg.ShortPrompt, ContextChars: r.cfg.ContextChars,
	})
}

// Caveat implements core.Caveat: without vectors this is an index of words under another name.
func (r *Retriever) Caveat() string {
	if !r.words {
		return ""
	}
	return fmt.Sprintf("semantic finds words here and no meaning, because %q compares no vectors: set embedder and the searcher vector, or choose hybrid", r.source)
}

// admitted drops hits that a sloppy searcher should not have returned.
func admitted(hits []core.Hit, scope core.Scope, inWindow func(string) bool) []core.Hit {
	out := make([]core.Hit, 0, len(hits))
	for _, h := range hits {
		e := h.Entry
		if e.Hidden() || !scope.Contains(e.SessionID()) || inWindow != nil && inWindow(e.ID) {
			continue
		}
		out = append(out, h)
	}
	return out
}

// merge takes from the lists in turn, the first scope first, each entry once.
func (r *Retriever) merge(lists [][]core.Hit, limit int) []core.Candidate {
	var out []core.Candidate
	seen := map[string]bool{}
	for rank, more := 0, true; more && len(out) < limit; rank++ {
		more = false
		for _, hits := range lists {
			if rank >= len(hits) {
				continue
			}
			more = true
			h := hits[rank]
			if seen[h.Entry.ID] || len(out) == limit {
				continue
			}
			seen[h.Entry.ID] = true
			score := h.Score
			if len(lists) > 1 {
				score = 1 / float64(1+rank)
			}
			out = append(out, core.Candidate{Entry: h.Entry, Text: h.Passage, Score: score, Source: r.source})
		}
	}
	return out
}

// Attach hands the store to a searcher that wants it.
func (r *Retriever) Attach(store core.Store) error {
	if a, ok := r.searcher.(core.Attacher); ok {
		return a.Attach(store)
	}
	return nil
}

// Appended passes the news on to a searcher that is an Observer.
func (r *Retriever) Appended(ctx context.Context, entries []core.Entry) error {
	if o, ok := r.searcher.(core.Observer); ok {
		return o.Appended(ctx, entries)
	}
	return nil
}

// Updated passes the news on to a searcher that is an Observer.
func (r *Retriever) Updated(ctx context.Context, entry core.Entry) error {
	if o, ok := r.searcher.(core.Observer); ok {
		return o.Updated(ctx, entry)
	}
	return nil
}

// Deleted passes the news on to a searcher that is an Observer.
func (r *Retriever) Deleted(ctx context.Context, scope core.Scope, ids []string) error {
	if o, ok := r.searcher.(core.Observer); ok {
		return o.Deleted(ctx, scope, ids)
	}
	return nil
}

// Scrub has a searcher that is a Scrubber leave nothing of what was erased.
func (r *Retriever) Scrub(ctx context.Context) error {
	if s, ok := r.searcher.(upkeep.Scrubber); ok {
		return s.Scrub(ctx)
	}
	return nil
}
