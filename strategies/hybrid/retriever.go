package hybrid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/nearest"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/asking"
)

// Retriever fuses what several searchers find. It is safe for concurrent use.
type Retriever struct {
	cfg   Config
	log   *slog.Logger
	parts []part // by name
}

// part is a searcher, its name and its weight.
type part struct {
	name     string
	searcher core.Searcher
	guard    *asking.Guard
	weight   float64
	meaning  bool // it compares what texts mean
}

var (
	_ core.Retriever  = (*Retriever)(nil)
	_ core.Observer   = (*Retriever)(nil)
	_ core.Attacher   = (*Retriever)(nil)
	_ upkeep.Scrubber = (*Retriever)(nil)

	_ core.LateRetriever = (*Retriever)(nil)
)

// New returns a retriever over searchers, by the names that candidates carry as their source. The error wraps core.ErrInvalid when
// cfg is not valid, a weight names nobody, or no searcher is left.
func New(cfg Config, searchers map[string]core.Searcher, opts ...Option) (*Retriever, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(searchers))
	for _, name := range slices.Sorted(maps.Keys(cfg.Weights)) {
		if _, ok := searchers[name]; !ok {
			like := ""
			if best, ok := nearest.Of(name, names); ok {
				like = fmt.Sprintf(", did you mean %q?", best)
			}
			return nil, fmt.Errorf("hybrid: config: weights.%s: unknown searcher %q%s (known: %s): %w", name, name, like, strings.Join(names, ", "), core.ErrInvalid)
		}
	}
	r := &Retriever{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	for _, name := range names {
		p := part{name: name, searcher: searchers[name], guard: asking.NewGuard(searchers[name]), weight: 1}
		if m, ok := p.searcher.(core.ByMeaning); ok && m.ByMeaning() {
			p.meaning, p.weight = true, cfg.Meaning
		}
		if w, ok := cfg.Weights[name]; ok {
			p.weight = w
		}
		if p.searcher == nil {
			return nil, fmt.Errorf("hybrid: new: searcher %q is nil: %w", name, core.ErrInvalid)
		}
		if p.weight > 0 {
			r.parts = append(r.parts, p)
		}
	}
	if len(r.parts) == 0 {
		return nil, fmt.Errorf("hybrid: new: at least one searcher with a weight above 0 is needed: %w", core.ErrInvalid)
	}
	for _, o := range opts {
		o(r)
	}
	return r, nil
}

// Late implements core.LateRetriever: it reports whether a searcher has something by now that it did not have when it was asked for this.
func (r *Retriever) Late(q core.Query) bool {
	text := asking.Text(q, asking.Limits{
		PromptChars: r.cfg.PromptChars, ShortPrompt: r.cfg.ShortPrompt, ContextChars: r.cfg.ContextChars,
	})
	return slices.ContainsFunc(r.parts, func(p part) bool { return asking.Late(p.searcher, q, text) })
}

// ReadsStore implements core.StoreReader where all searchers do.
func (r *Retriever) ReadsStore() bool {
	return !slices.ContainsFunc(r.parts, func(p part) bool { return !core.ReadsStore(p.searcher) })
}

// list is what one searcher found in one scope.
type list struct {
	part part
	hits []core.Hit
	err  error
}

// Retrieve implements core.Retriever. It waits for every searcher until ctx ends: what the faster ones have found by then is the answer, with an
// error that wraps core.ErrPartial and names the others. One that keeps failing is not asked for a while, see core.Breaker. The error is nil when every
// searcher answered; when none did, it joins theirs.
func (r *Retriever) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	text := asking.Text(q, asking.Limits{
		PromptChars: r.cfg.PromptChars, ShortPrompt: r.cfg.ShortPrompt, ContextChars: r.cfg.ContextChars,
	})
	if text == "" {
		return nil, ctx.Err()
	}
	limit := min(q.Limit, r.cfg.Limit)
	lists := r.ask(ctx, q, text, limit)
	var answered []list
	var errs []error
	failed := map[string]bool{}
	for _, l := range lists {
		switch {
		case l.err == nil:
			answered = append(answered, l)
		case !failed[l.part.name]:
			failed[l.part.name] = true
			errs = append(errs, fmt.Errorf("%s: %w", l.part.name, l.err))
			r.log.WarnContext(ctx, "hybrid: a searcher is left out", slog.String("searcher", l.part.name), slog.String("error", l.err.Error()))
		}
	}
	switch {
	case len(answered) == 0:
		return nil, fmt.Errorf("hybrid: retrieve %q: %w", q.Session, errors.Join(errs...))
	case len(errs) > 0:
		return fuse(gather(answered), limit), fmt.Errorf("hybrid: retrieve %q: %w: %w", q.Session, core.ErrPartial, errors.Join(errs...))
	}
	return fuse(gather(answered), limit), nil
}

// ask searches with all parts in all scopes at the same time. The order of the result is that of scopes and names.
func (r *Retriever) ask(ctx context.Context, q core.Query, text string, limit int) []list {
	scopes := q.Scopes()
	lists := make([]list, len(scopes)*len(r.parts))
	want := limit
	if len(lists) > 1 {
		want = max(limit+limit/4, limit*r.cfg.Overfetch)
	}
	search := func(i int) {
		scope, p := scopes[i/len(r.parts)], r.parts[i%len(r.parts)]
		query := core.SearchQuery{Scope: scope, Text: text, Limit: want, Exclude: q.InWindow}
		hits, err := p.guard.Search(ctx, query)
		good := admitted(hits, scope, q.InWindow)
		// Entries are read from the store for every hit, so one that is asked alone is asked for more only when some had to be dropped.
		if len(lists) == 1 && err == nil && len(hits) == want && len(good) < limit {
			query.Limit = limit + limit/4
			if more, err := p.guard.Search(ctx, query); err == nil {
				good = admitted(more, scope, q.InWindow)
			}
		}
		lists[i] = list{part: p, hits: good, err: err}
	}
	var others sync.WaitGroup
	for i := range len(lists) - 1 {
		others.Go(func() { search(i + 1) })
	}
	search(0)
	others.Wait()
	return lists
}

// admitted drops hits that a sloppy searcher should not have returned, and repetitions.
func admitted(hits []core.Hit, scope core.Scope, inWindow func(string) bool) []core.Hit {
	out := make([]core.Hit, 0, len(hits))
	seen := make(map[string]bool, len(hits))
	for _, h := range hits {
		e := h.Entry
		if e.Hidden() || !scope.Contains(e.SessionID()) || seen[e.ID] || inWindow != nil && inWindow(e.ID) {
			continue
		}
		seen[e.ID] = true
		out = append(out, h)
	}
	return out
}

// Attach hands the store to every searcher that wants it.
func (r *Retriever) Attach(store core.Store) error {
	return each(r, func(a core.Attacher) error { return a.Attach(store) })
}

// Appended passes the news on to every searcher that is an Observer.
func (r *Retriever) Appended(ctx context.Context, entries []core.Entry) error {
	return each(r, func(o core.Observer) error { return o.Appended(ctx, entries) })
}

// Updated passes the news on to every searcher that is an Observer.
func (r *Retriever) Updated(ctx context.Context, entry core.Entry) error {
	return each(r, func(o core.Observer) error { return o.Updated(ctx, entry) })
}

// Deleted passes the news on to every searcher that is an Observer.
func (r *Retriever) Deleted(ctx context.Context, scope core.Scope, ids []string) error {
	return each(r, func(o core.Observer) error { return o.Deleted(ctx, scope, ids) })
}

// each calls all searchers that are a T, and joins what they return: one that fails does not keep the news from the others.
func each[T any](r *Retriever, call func(T) error) error {
	var errs []error
	for _, p := range r.parts {
		if t, ok := p.searcher.(T); ok {
			if err := call(t); err != nil {
				errs = append(errs, fmt.Errorf("hybrid: %s: %w", p.name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Scrub has every searcher that is a Scrubber leave nothing of what was erased.
func (r *Retriever) Scrub(ctx context.Context) error {
	return each(r, func(s upkeep.Scrubber) error { return s.Scrub(ctx) })
}
