// Package lastmention recalls the messages that last mentioned a word of the prompt. Its memory is its own.
package lastmention

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// Config is what an operator sets; the tags are the keys of a configuration file.
type Config struct {
	MinLength int `koanf:"minLength" doc:"shortest word that counts, in bytes"`
}

// DefaultConfig holds where a file says nothing.
func DefaultConfig() Config { return Config{MinLength: 4} }

// Retriever remembers entries by word, agent by agent.
type Retriever struct {
	cfg   Config
	mu    sync.Mutex
	store core.Store
	known map[string]map[string]core.Entry // by agent, then id; nil for an agent that was not read yet
	told  map[string]int                   // how often it was told something of an agent
}

var (
	_ core.Retriever = (*Retriever)(nil)
	_ core.Observer  = (*Retriever)(nil)
	_ core.Attacher  = (*Retriever)(nil)
)

// New returns a retriever that knows nothing yet.
func New(cfg Config) *Retriever {
	return &Retriever{cfg: cfg, known: map[string]map[string]core.Entry{}, told: map[string]int{}}
}

// Attach keeps the store; what it held before is read when an agent is first asked for.
func (r *Retriever) Attach(s core.Store) error { r.store = s; return nil }

// Appended takes note of new entries. Agents that were not read yet are read later, whole.
func (r *Retriever) Appended(_ context.Context, entries []core.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		r.told[e.Agent]++
		if known := r.known[e.Agent]; known != nil {
			known[e.ID] = e
		}
	}
	return nil
}

// Updated takes note of a changed entry.
func (r *Retriever) Updated(ctx context.Context, e core.Entry) error {
	return r.Appended(ctx, []core.Entry{e})
}

// Deleted forgets entries.
func (r *Retriever) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[scope.Agent]++
	for _, id := range ids {
		delete(r.known[scope.Agent], id)
	}
	return nil
}

// Retrieve implements core.Retriever: best first, then newest first, then by id.
func (r *Retriever) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	for _, scope := range q.Scopes() {
		if err := r.read(ctx, scope.Agent); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]core.Candidate{}
	for _, scope := range q.Scopes() {
		for id, e := range r.known[scope.Agent] {
			if !scope.Contains(e.SessionID()) || e.Hidden() || q.InWindow(id) {
				continue
			}
			text, score := strings.ToLower(e.Text()), 0.0
			for word := range strings.FieldsSeq(strings.ToLower(q.Prompt)) {
				if len(word) >= r.cfg.MinLength && strings.Contains(text, word) {
					score++
				}
			}
			if score > 0 {
				found[id] = core.Candidate{Entry: e.Clone(), Score: score, Source: "lastmention"} // the caller may write to it
			}
		}
	}
	out := make([]core.Candidate, 0, len(found))
	for _, c := range found {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b core.Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Entry.Time.Compare(a.Entry.Time), cmp.Compare(a.Entry.ID, b.Entry.ID))
	})
	return out[:min(len(out), q.Limit)], ctx.Err()
}

// read fills the memory of an agent from the store, once. Nobody waits for it: where it is told something of the agent meanwhile, it reads again.
func (r *Retriever) read(ctx context.Context, agent string) error {
	for r.store != nil {
		r.mu.Lock()
		told, done := r.told[agent], r.known[agent] != nil
		r.mu.Unlock()
		if done {
			break
		}
		known := map[string]core.Entry{}
		for e, err := range core.All(ctx, r.store, core.Scope{Agent: agent}, false) {
			if err != nil {
				return err
			}
			known[e.ID] = e
		}
		r.mu.Lock()
		if r.told[agent] == told && r.known[agent] == nil {
			r.known[agent] = known
		}
		r.mu.Unlock()
	}
	return ctx.Err()
}
