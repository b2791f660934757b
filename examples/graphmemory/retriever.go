// Package graphmemory recalls by what is connected: names that are said together are neighbours, and a prompt that says one is answered with messages about
// its neighbours, too. It is a third party's retriever: it imports core alone.
package graphmemory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/contextengine/contextengine/core"
)

// Config is what an operator sets; the tags are the keys of a configuration file.
type Config struct {
	// Hops is how far from the names of the prompt messages are looked for, 0 to 5.
	Hops int `koanf:"hops" doc:"how many steps from the names of the prompt, 0 to 5"`
}

// DefaultConfig holds where a file says nothing.
func DefaultConfig() Config { return Config{Hops: 1} }

// Retriever remembers, agent by agent, which names every entry says. It is safe for concurrent use.
type Retriever struct {
	hops  int
	mu    sync.Mutex
	store core.Store
	notes map[string]map[string]note // by agent, then id; nil for an agent that was not read yet
	told  map[string]int             // how often it was told something of an agent
}

// note is an entry and the names in it, each once, in order.
type note struct {
	entry core.Entry
	names []string
}

var (
	_ core.Retriever = (*Retriever)(nil)
	_ core.Observer  = (*Retriever)(nil)
	_ core.Attacher  = (*Retriever)(nil)
)

// New returns a retriever that knows nothing yet, or core.ErrInvalid.
func New(cfg Config) (*Retriever, error) {
	if cfg.Hops < 0 || cfg.Hops > 5 {
		return nil, fmt.Errorf("graphmemory: hops: must be 0 to 5: %w", core.ErrInvalid)
	}
	return &Retriever{hops: cfg.Hops, notes: map[string]map[string]note{}, told: map[string]int{}}, nil
}

// Attach keeps the store; what it held before is read when an agent is first asked for.
func (r *Retriever) Attach(s core.Store) error { r.store = s; return nil }

// Appended takes note of new entries.
func (r *Retriever) Appended(_ context.Context, entries []core.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		r.told[e.Agent]++
		if notes := r.notes[e.Agent]; notes != nil {
			notes[e.ID] = note{e, names(e.Text())}
		}
	}
	return nil
}

// Updated takes note of a changed entry: what was erased has no names any more.
func (r *Retriever) Updated(ctx context.Context, e core.Entry) error {
	return r.Appended(ctx, []core.Entry{e})
}

// Deleted forgets entries.
func (r *Retriever) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[scope.Agent]++
	for _, id := range ids {
		delete(r.notes[scope.Agent], id)
	}
	return nil
}

// Retrieve implements core.Retriever. The graph is that of the entries in scope, so that nothing of another session shows through its edges.
func (r *Retriever) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	for _, scope := range q.Scopes() {
		if err := r.read(ctx, scope.Agent); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	inScope := map[string]note{}
	for _, scope := range q.Scopes() {
		for id, n := range r.notes[scope.Agent] {
			if scope.Contains(n.entry.SessionID()) && !n.entry.Hidden() {
				inScope[id] = n
			}
		}
	}
	said := map[string]int{} // how many notes say a name: one that all of them say means little
	for _, n := range inScope {
		for _, name := range n.names {
			said[name]++
		}
	}
	near := reach(inScope, words(q.Prompt), r.hops)
	var out []core.Candidate
	for id, n := range inScope {
		score := 0.0
		for _, name := range n.names {
			score += near[name] / math.Log2(1+float64(said[name]))
		}
		if score > 0 && !q.InWindow(id) {
			out = append(out, core.Candidate{Entry: n.entry, Score: score, Source: "graph"})
		}
	}
	slices.SortFunc(out, func(a, b core.Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Entry.Time.Compare(a.Entry.Time), cmp.Compare(a.Entry.ID, b.Entry.ID))
	})
	return out[:min(len(out), q.Limit)], ctx.Err()
}

// reach weighs names: 1 for those of the prompt, half of that for each step away.
func reach(notes map[string]note, prompt []string, hops int) map[string]float64 {
	near := map[string]float64{}
	for _, word := range prompt {
		near[word] = 1
	}
	for range hops {
		next := map[string]float64{}
		for _, n := range notes {
			best := 0.0
			for _, name := range n.names {
				best = max(best, near[name])
			}
			for _, name := range n.names {
				next[name] = max(next[name], near[name], best/2)
			}
		}
		near = next
	}
	return near
}

// read fills the memory of an agent from the store, once. Nobody waits for it: where it is told something of the agent meanwhile, it reads again.
func (r *Retriever) read(ctx context.Context, agent string) error {
	for r.store != nil {
		r.mu.Lock()
		told, done := r.told[agent], r.notes[agent] != nil
		r.mu.Unlock()
		if done {
			break
		}
		notes := map[string]note{}
		for e, err := range core.All(ctx, r.store, core.Scope{Agent: agent}, false) {
			if err != nil {
				return err
			}
			notes[e.ID] = note{e, names(e.Text())}
		}
		r.mu.Lock()
		if r.told[agent] == told && r.notes[agent] == nil {
			r.notes[agent] = notes
		}
		r.mu.Unlock()
	}
	return ctx.Err()
}

// names are the capitalised words of a text, in lower case.
func names(text string) []string {
	var out []string
	for _, word := range fields(text) {
		if first := []rune(word)[0]; unicode.IsUpper(first) && len(word) > 2 {
			out = append(out, strings.ToLower(word))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// words are all words of a text, in lower case: people do not always capitalise names.
func words(text string) []string { return fields(strings.ToLower(text)) }

func fields(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
