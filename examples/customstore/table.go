package main

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// table is what a database would be: rows in the order of a scan, and unique indexes over id and (agent, session, key).
type table struct {
	rows []*row
	ids  map[string]*row
	keys map[[3]string]*row
	n    int64
}

// row is an entry and its number, which orders entries of one Seq by append and is never given twice.
type row struct {
	core.Entry
	n int64
}

func newTable() table { return table{ids: map[string]*row{}, keys: map[[3]string]*row{}} }

func keyOf(e core.Entry) [3]string { return [3]string{e.Agent, e.Session, e.Key} }

func (r *row) compare(o *row) int {
	return cmp.Or(cmp.Compare(r.Agent, o.Agent), cmp.Compare(r.Session, o.Session), cmp.Compare(r.Seq, o.Seq), cmp.Compare(r.n, o.n))
}

// own copies what a caller may write to: the metadata. Messages are values whose slices nobody writes to.
func own(e core.Entry) core.Entry {
	e.Meta = maps.Clone(e.Meta)
	return e
}

func (t *table) add(e core.Entry) *row {
	t.n++
	r := &row{Entry: own(e), n: t.n}
	i, _ := slices.BinarySearchFunc(t.rows, r, (*row).compare)
	t.rows = slices.Insert(t.rows, i, r)
	t.ids[e.ID], t.keys[keyOf(e)] = r, r
	return r
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

// from yields the rows at a place and behind it; with reverse, those before it, the last first.
func (t *table) from(place *row, reverse bool) iter.Seq[*row] {
	i, _ := slices.BinarySearchFunc(t.rows, place, (*row).compare)
	if !reverse {
		return slices.Values(t.rows[i:])
	}
	return func(yield func(*row) bool) {
		for _, r := range slices.Backward(t.rows[:i]) {
			if !yield(r) {
				return
			}
		}
	}
}
