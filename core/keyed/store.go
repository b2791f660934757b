package keyed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/internal/exact"
)

// Store is a core.Store and a core.ViewStore over a Medium.
type Store struct {
	medium Medium
	mu     sync.RWMutex // held for writing by Close alone
	closed bool
}

var _ core.Store = (*Store)(nil)

// New returns the store that a medium keeps. It closes the medium.
func New(m Medium) *Store { return &Store{medium: m} }

// The keys: an entry under its place, its place under its id and under its idempotency key, and a view under its session.
func places(id core.SessionID) string {
	return "entry/" + url.PathEscape(id.Agent) + "/" + url.PathEscape(id.Session) + "/"
}
func place(e core.Entry) string { return fmt.Sprintf("%s%019d", places(e.SessionID()), e.Seq) }
func idKey(id string) string    { return "id/" + url.PathEscape(id) }
func keyKey(e core.Entry) string {
	return "key/" + url.PathEscape(e.Agent) + "/" + url.PathEscape(e.Session) + "/" + url.PathEscape(e.Key)
}

// pending is a transaction: what is kept, and over it what was changed.
type pending struct {
	Reader
	changed map[string][]byte
	changes []Change
}

func (p *pending) get(key string, into any) (bool, error) {
	value, ok := p.changed[key]
	found := value != nil
	if !ok {
		var err error
		if value, found, err = p.Get(key); err != nil {
			return false, err
		}
	}
	if !found {
		return false, nil
	}
	return true, exact.Unpack(value, into)
}

func (p *pending) put(key string, v any) error {
	value, err := exact.Pack(v)
	if err == nil {
		p.set(key, value)
	}
	return err
}

func (p *pending) set(key string, value []byte) {
	p.changed[key] = value
	p.changes = append(p.changes, Change{Key: key, Value: value})
}

// do runs one call as a transaction.
func (s *Store) do(ctx context.Context, op string, f func(*pending) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	err := ctx.Err()
	if s.closed {
		err = core.ErrClosed
	}
	if err == nil {
		err = s.medium.Do(ctx, func(r Reader) ([]Change, error) {
			p := &pending{Reader: r, changed: make(map[string][]byte)}
			err := f(p)
			return p.changes, err
		})
	}
	if err != nil {
		return fmt.Errorf("keyed: %s: %w", op, err)
	}
	return nil
}

// Append implements core.Store.
func (s *Store) Append(ctx context.Context, entries []core.Entry) (res core.AppendResult, err error) {
	err = s.do(ctx, "append", func(p *pending) error {
		res = core.AppendResult{IDs: make([]string, len(entries))}
		for i, e := range entries {
			var at string
			var known core.Entry
			found, err := p.get(keyKey(e), &at)
			if err == nil && found {
				_, err = p.get(at, &known)
				res.IDs[i], res.Duplicates = known.ID, res.Duplicates+1
			}
			if err == nil && !found {
				res.IDs[i], err = e.ID, p.add(e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return core.AppendResult{}, err
	}
	return res, nil
}

func (p *pending) add(e core.Entry) error {
	var at string
	if known, err := p.get(idKey(e.ID), &at); err != nil || known {
		return cmp.Or(err, fmt.Errorf("entry %q is known with another key: %w", e.ID, core.ErrConflict))
	}
	var other core.Entry
	if taken, err := p.get(place(e), &other); err != nil || taken {
		return cmp.Or(err, fmt.Errorf("entry %q: another entry of the session has position %d: %w", e.ID, e.Seq, core.ErrConflict))
	}
	if err := p.put(place(e), e); err != nil {
		return err
	}
	if err := p.put(idKey(e.ID), place(e)); err != nil {
		return err
	}
	return p.put(keyKey(e), place(e))
}

// find returns an entry of a scope.
func (p *pending) find(scope core.Scope, id string) (e core.Entry, err error) {
	var at string
	known, err := p.get(idKey(id), &at)
	if known && err == nil {
		known, err = p.get(at, &e)
	}
	if err == nil && (!known || !scope.Contains(e.SessionID())) {
		err = fmt.Errorf("entry %q: %w", id, core.ErrNotFound)
	}
	return e, err
}

// Get implements core.Store.
func (s *Store) Get(ctx context.Context, scope core.Scope, ids []string) (out []core.Entry, err error) {
	err = s.do(ctx, "get", func(p *pending) error {
		out = make([]core.Entry, len(ids))
		for i, id := range ids {
			if out[i], err = p.find(scope, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Scan implements core.Store. A cursor is the key of the last entry, which may be gone meanwhile.
func (s *Store) Scan(ctx context.Context, q core.ScanQuery) (page core.Page, err error) {
	all := places(core.SessionID(q.Scope))
	if q.Scope.Session == "" {
		all = all[:len(all)-1] // places ends with the slashes behind an empty session
	}
	from, to := all, after(all)
	if q.Scope.Session != "" {
		from = fmt.Sprintf("%s%019d", all, q.FromSeq)
		if q.ToSeq > 0 {
			to = fmt.Sprintf("%s%019d", all, q.ToSeq)
		}
	}
	switch last := string(q.Cursor); {
	case last == "":
	case last < all || last >= after(all):
		return page, fmt.Errorf("keyed: scan: the cursor is not one of this query, start again without: %w", core.ErrInvalid)
	case q.Reverse:
		to = min(to, last)
	default:
		from = max(from, last+"\x00")
	}
	err = s.do(ctx, "scan", func(p *pending) error {
		page = core.Page{}
		last := ""
		for pair, err := range p.Range(from, to, q.Reverse) {
			if err != nil {
				return err
			}
			if len(page.Entries) == q.Limit {
				page.Next = core.Cursor(last)
				break
			}
			var e core.Entry
			if err := exact.Unpack(pair.Value, &e); err != nil {
				return err
			}
			page.Entries, last = append(page.Entries, e), pair.Key
		}
		return nil
	})
	if err != nil {
		return core.Page{}, err
	}
	return page, nil
}

// Update implements core.Store.
func (s *Store) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	return s.do(ctx, "update", func(p *pending) error {
		e, err := p.find(scope, id)
		if err != nil {
			return err
		}
		if c.Message != nil {
			e.Message, e.Tokens, e.Fingerprint = *c.Message, c.Tokens, c.Fingerprint
		}
		if c.Meta != nil {
			e.Meta = maps.Clone(c.Meta)
		}
		e.Type = cmp.Or(c.Type, e.Type)
		if c.Key != "" && c.Key != e.Key {
			p.set(keyKey(e), nil)
			e.Key = c.Key
			var at string
			if taken, err := p.get(keyKey(e), &at); err != nil || taken {
				return cmp.Or(err, fmt.Errorf("entry %q: another entry of the session has the key: %w", id, core.ErrConflict))
			}
			if err := p.put(keyKey(e), place(e)); err != nil {
				return err
			}
		}
		return p.put(place(e), e)
	})
}

// Delete implements core.Store.
func (s *Store) Delete(ctx context.Context, scope core.Scope, ids []string) (n int, err error) {
	err = s.do(ctx, "delete", func(p *pending) error {
		n = 0
		for _, id := range ids {
			e, err := p.find(scope, id)
			if errors.Is(err, core.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			for _, key := range []string{place(e), idKey(e.ID), keyKey(e)} {
				p.set(key, nil)
			}
			n++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Close implements core.Store. It waits for calls under way.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.medium.Close(); err != nil {
		return fmt.Errorf("keyed: close: %w", err)
	}
	return nil
}
