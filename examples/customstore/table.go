package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// table stands for a database: transactions, rows in the order of a scan, and unique indexes over id, (agent, session, key)
// and (agent, session, position).
type table struct {
	mu     sync.Mutex
	closed bool
	// rows are ordered by (agent, session, position).
	rows  []*row
	ids   map[string]*row
	keys  map[[3]string]*row
	views map[core.SessionID][]byte
	// added are the rows of the transaction that is going on.
	added []*row
}

type row struct{ core.Entry }

func newTable() *table {
	return &table{ids: map[string]*row{}, keys: map[[3]string]*row{}, views: map[core.SessionID][]byte{}}
}

// tx runs f alone and, when it fails, takes back what it added. It wraps the cause, so that errors.Is finds it.
func (t *table) tx(ctx context.Context, op string, f func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := ctx.Err()
	if t.closed {
		err = core.ErrClosed
	}
	if t.added = nil; err == nil {
		err = f()
	}
	if err == nil {
		return nil
	}
	for _, r := range t.added {
		t.remove(r)
	}
	return fmt.Errorf("ledger: %s: %w", op, err)
}

func (t *table) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed, t.rows, t.ids, t.keys, t.views, t.added = true, nil, nil, nil, nil, nil
	return nil
}

// add fails when the position is taken.
func (t *table) add(e core.Entry) error {
	r := &row{own(e)}
	i, taken := slices.BinarySearchFunc(t.rows, r, (*row).compare)
	if taken {
		return fmt.Errorf("entry %q: another entry of the session has position %d: %w", e.ID, e.Seq, core.ErrConflict)
	}
	t.rows = slices.Insert(t.rows, i, r)
	t.ids[e.ID], t.keys[keyOf(e)] = r, r
	t.added = append(t.added, r)
	return nil
}

func (t *table) remove(r *row) {
	if i, ok := slices.BinarySearchFunc(t.rows, r, (*row).compare); ok {
		t.rows = slices.Delete(t.rows, i, i+1)
	}
	delete(t.ids, r.ID)
	delete(t.keys, keyOf(r.Entry))
}

func (t *table) find(scope core.Scope, id string) (*row, error) {
	r := t.ids[id]
	if r == nil || !scope.Contains(r.SessionID()) {
		return nil, fmt.Errorf("entry %q: %w", id, core.ErrNotFound)
	}
	return r, nil
}

// page is SELECT ... WHERE place > cursor ORDER BY place LIMIT n. The cursor names the place of the last row and not a count, because
// rows come and go between two pages; the row it names may be gone too.
func (t *table) page(q core.ScanQuery) (page core.Page, err error) {
	last := &row{Entry: core.Entry{Agent: q.Scope.Agent}}
	if q.Cursor != "" {
		if _, err := fmt.Sscanf(string(q.Cursor), "%d %q", &last.Seq, &last.Session); err != nil {
			return page, fmt.Errorf("the cursor is not one of this store, start again without: %w", core.ErrInvalid)
		}
	}
	begin, direction, next := last, 1, slices.All(t.rows)
	if q.Reverse {
		direction, next = -1, slices.Backward(t.rows)
	}
	for _, r := range next {
		outside := q.Scope.Session != "" && (r.Seq < q.FromSeq || q.ToSeq > 0 && r.Seq >= q.ToSeq)
		if outside || !q.Scope.Contains(r.SessionID()) || q.Cursor != "" && direction*r.compare(begin) <= 0 {
			continue
		}
		if len(page.Entries) == q.Limit {
			page.Next = core.Cursor(fmt.Sprintf("%d %q", last.Seq, last.Session))
			break
		}
		page.Entries, last = append(page.Entries, own(r.Entry)), r
	}
	return page, nil
}

func (r *row) compare(o *row) int {
	return cmp.Or(cmp.Compare(r.Agent, o.Agent), cmp.Compare(r.Session, o.Session), cmp.Compare(r.Seq, o.Seq))
}

// set changes the fields that c sets. It fails when another entry has the key.
func (t *table) set(r *row, c core.Change) error {
	if other := t.keys[[3]string{r.Agent, r.Session, c.Key}]; other != nil && other != r {
		return fmt.Errorf("entry %q: entry %q has the key: %w", r.ID, other.ID, core.ErrConflict)
	}
	if c.Message != nil {
		r.Message, r.Tokens, r.Fingerprint = own(core.Entry{Message: *c.Message}).Message, c.Tokens, c.Fingerprint
	}
	if c.Meta != nil {
		r.Meta = maps.Clone(c.Meta)
	}
	r.Type = cmp.Or(c.Type, r.Type)
	if c.Key != "" {
		delete(t.keys, keyOf(r.Entry))
		r.Key = c.Key
		t.keys[keyOf(r.Entry)] = r
	}
	return nil
}

// own copies all that an entry leads to: what was given is not kept, and what is returned belongs to the caller.
func own(e core.Entry) core.Entry {
	e.Meta, e.Message.Raw, e.Message.Parts = maps.Clone(e.Meta), slices.Clone(e.Message.Raw), slices.Clone(e.Message.Parts)
	for i, p := range e.Message.Parts {
		e.Message.Parts[i].Raw = slices.Clone(p.Raw)
	}
	return e
}

func keyOf(e core.Entry) [3]string { return [3]string{e.Agent, e.Session, e.Key} }
