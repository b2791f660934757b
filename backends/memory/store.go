package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// Store keeps entries and views in memory. Make one with New; it is safe for concurrent use.
type Store struct {
	mu     sync.RWMutex
	closed bool
	byID   map[string]*record
	agents map[string]*agent
	views  map[core.SessionID]core.View
	// order numbers every stored entry, so that entries of one Seq keep the order of their appends.
	order uint64
}

var (
	_ core.Store     = (*Store)(nil)
	_ core.ViewStore = (*Store)(nil)
	_ core.Tailer    = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{
		byID:   make(map[string]*record),
		agents: make(map[string]*agent),
		views:  make(map[core.SessionID]core.View),
	}
}

// Append implements core.Store.
func (s *Store) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	for i := range entries {
		if err := entries[i].Check("memory: append"); err != nil {
			return core.AppendResult{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx, "append"); err != nil {
		return core.AppendResult{}, err
	}

	// First decide what every entry is without changing anything, then store.
	res := core.AppendResult{IDs: make([]string, len(entries))}
	var fresh []*record
	ids := make(map[string]*core.Entry)
	keys := make(map[entryKey]string)
	places := make(map[position]bool)
	for i := range entries {
		e := &entries[i]
		if err := s.conflict(e, ids[e.ID]); err != nil {
			return core.AppendResult{}, err
		}
		k := keyOf(e)
		id, known := keys[k]
		if !known {
			if r := s.lookup(k); r != nil {
				id, known = r.entry.ID, true
			}
		}
		if known {
			res.IDs[i] = id
			res.Duplicates++
			continue
		}
		at := position{e.SessionID(), e.Seq}
		if places[at] || s.occupied(at) {
			return core.AppendResult{}, fmt.Errorf("memory: append %q: another entry of the session has position %d: %w", e.ID, e.Seq, core.ErrConflict)
		}
		ids[e.ID], keys[k], places[at] = e, e.ID, true
		res.IDs[i] = e.ID
		stored := e.Clone()
		fresh = append(fresh, &record{entry: &stored})
	}
	for _, r := range fresh {
		s.insert(r)
	}
	return res, nil
}

// conflict reports that the id of e belongs to an entry with another key, stored or earlier in the same batch.
func (s *Store) conflict(e, batch *core.Entry) error {
	other := batch
	if r := s.byID[e.ID]; r != nil {
		other = r.entry
	}
	if other == nil || keyOf(other) == keyOf(e) {
		return nil
	}
	return fmt.Errorf("memory: append %q: the id belongs to an entry with another key: %w", e.ID, core.ErrConflict)
}

// lookup returns the record with this key, or nil.
func (s *Store) lookup(k entryKey) *record {
	a := s.agents[k.session.Agent]
	if a == nil {
		return nil
	}
	sess := a.byName[k.session.Session]
	if sess == nil {
		return nil
	}
	return sess.keys[k.key]
}

// position is where in its session an entry stands.
type position struct {
	session core.SessionID
	seq     int64
}

// occupied reports whether a stored entry has this position.
func (s *Store) occupied(at position) bool {
	a := s.agents[at.session.Agent]
	if a == nil {
		return false
	}
	sess := a.byName[at.session.Session]
	if sess == nil {
		return false
	}
	found := false
	sess.run.after(place{seq: at.seq}, func(r *record) bool {
		found = r.seq == at.seq
		return false
	})
	return found
}

func (s *Store) insert(r *record) {
	a := s.agents[r.entry.Agent]
	if a == nil {
		a = &agent{byName: make(map[string]*session)}
		s.agents[r.entry.Agent] = a
	}
	sess := a.session(r.entry.Session)
	s.order++
	r.seq, r.order, r.session = r.entry.Seq, s.order, sess
	sess.run.insert(r)
	sess.keys[r.entry.Key] = r
	s.byID[r.entry.ID] = r
}

// Get implements core.Store. An id that is asked for twice is returned twice.
func (s *Store) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	if err := scope.Check("memory: get"); err != nil {
		return nil, err
	}
	found, err := s.find(ctx, scope, ids)
	if err != nil {
		return nil, err
	}
	return cloneEntries(found), nil
}

func (s *Store) find(ctx context.Context, scope core.Scope, ids []string) ([]*core.Entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx, "get"); err != nil {
		return nil, err
	}
	found := make([]*core.Entry, 0, len(ids))
	for _, id := range ids {
		r := s.inScope(scope, id)
		if r == nil {
			return nil, fmt.Errorf("memory: get %q: %w", id, core.ErrNotFound)
		}
		found = append(found, r.entry)
	}
	return found, nil
}

// Update implements core.Store. The entry keeps its place; what was returned before does not change.
func (s *Store) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	if err := scope.Check("memory: update"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx, "update"); err != nil {
		return err
	}
	r := s.inScope(scope, id)
	if r == nil {
		return fmt.Errorf("memory: update %q: %w", id, core.ErrNotFound)
	}
	if other := r.session.keys[change.Key]; change.Key != "" && other != nil && other != r {
		return fmt.Errorf("memory: update %q: another entry of the session has the key: %w", id, core.ErrConflict)
	}
	// Readers copy entries outside the lock, so a stored entry is replaced, never written to.
	e := *r.entry
	if change.Message != nil {
		e.Message = change.Message.Clone()
		e.Tokens, e.Fingerprint = change.Tokens, change.Fingerprint
	}
	if change.Meta != nil {
		e.Meta = maps.Clone(change.Meta)
	}
	e.Type = cmp.Or(change.Type, e.Type)
	if change.Key != "" {
		delete(r.session.keys, e.Key)
		e.Key = change.Key
		r.session.keys[e.Key] = r
	}
	r.entry = &e
	return nil
}

// Delete implements core.Store. The keys of deleted entries are free again.
func (s *Store) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if err := scope.Check("memory: delete"); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx, "delete"); err != nil {
		return 0, err
	}
	n := 0
	for _, id := range ids {
		r := s.inScope(scope, id)
		if r == nil {
			continue
		}
		n++
		delete(s.byID, id)
		delete(r.session.keys, r.entry.Key)
		r.session.run.remove(r)
		if len(r.session.keys) > 0 {
			continue
		}
		// The agent itself stays: its numbering must go on for cursors that are still in use.
		s.agents[r.entry.Agent].drop(r.session)
	}
	return n, nil
}

// Close implements core.Store and frees everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.byID, s.agents, s.views = nil, nil, nil
	return nil
}

// usable returns the error of a call that must not go on. The lock is held.
func (s *Store) usable(ctx context.Context, op string) error {
	if s.closed {
		return fmt.Errorf("memory: %s: %w", op, core.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: %s: %w", op, err)
	}
	return nil
}

func (s *Store) inScope(scope core.Scope, id string) *record {
	r := s.byID[id]
	if r == nil || !scope.Contains(r.entry.SessionID()) {
		return nil
	}
	return r
}
