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
	reads map[string]*reading        // of agents that are being read
}

// reading is a reading of the store that is under way.
type reading struct {
	over chan struct{} // closed when it is
	word []func(notes map[string]note)
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
	return &Retriever{hops: cfg.Hops, notes: map[string]map[string]note{}, reads: map[string]*reading{}}, nil
}

// Attach keeps the store; what it held before is read when an agent is first asked for.
func (r *Retriever) Attach(s core.Store) error { r.store = s; return nil }

// Appended takes note of new entries.
func (r *Retriever) Appended(_ context.Context, entries []core.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		r.note(e.Agent, func(notes map[string]note) { notes[e.ID] = note{e, names(e.Text())} })
	}
	return nil
}

// note changes what is remembered of an agent. What is being read may be older: the change is made after it.
func (r *Retriever) note(agent string, change func(notes map[string]note)) {
	if notes := r.notes[agent]; notes != nil {
		change(notes)
	} else if reading := r.reads[agent]; reading != nil {
		reading.word = append(reading.word, change)
	}
}

// Updated takes note of a changed entry: what was erased has no names any more.
func (r *Retriever) Updated(ctx context.Context, e core.Entry) error {
	return r.Appended(ctx, []core.Entry{e})
}

// Deleted forgets entries.
func (r *Retriever) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(scope.Agent, func(notes map[string]note) {
		for _, id := range ids {
			delete(notes, id)
		}
	})
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

// read fills the memory of an agent from the store, once. Nobody else is kept from anything meanwhile: who asks for the same agent waits as long as its context lasts.
func (r *Retriever) read(ctx context.Context, agent string) error {
	if r.store == nil {
		return ctx.Err()
	}
	r.mu.Lock()
	for r.notes[agent] == nil && r.reads[agent] != nil {
		over := r.reads[agent].over
		r.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.mu.Lock()
	}
	if r.notes[agent] != nil {
		r.mu.Unlock()
		return ctx.Err()
	}
	reading := &reading{over: make(chan struct{})}
	r.reads[agent] = reading
	r.mu.Unlock()
	notes, err := r.all(ctx, agent)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reads, agent)
	close(reading.over)
	if err != nil {
		return err
	}
	for _, change := range reading.word {
		change(notes)
	}
	r.notes[agent] = notes
	return nil
}

func (r *Retriever) all(ctx context.Context, agent string) (map[string]note, error) {
	notes := map[string]note{}
	for e, err := range core.All(ctx, r.store, core.Scope{Agent: agent}, false) {
		if err != nil {
			return nil, err
		}
		notes[e.ID] = note{e, names(e.Text())}
	}
	return notes, nil
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
