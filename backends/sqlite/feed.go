package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
)

var _ core.ChangeFeed = (*Store)(nil)

// The feed costs an append nearly nothing: entries are numbered in the order in which they were committed, by all processes together, and
// changes and deletions get numbers of the same sequence in a table of their own. A table of runs says which numbers are whose, for all
// but the newest.

// Changes implements core.ChangeFeed, in one read transaction. A mark also stops being good when more than 100,000 changes and
// deletions happened since and Vacuum was called.
func (s *Store) Changes(ctx context.Context, q core.ChangeQuery) (core.ChangePage, error) {
	if err := q.Check("sqlite: changes"); err != nil {
		return core.ChangePage{}, err
	}
	f := follower{s: s, q: q, owner: s.owner(q.Agent)}
	var page core.ChangePage
	if q.After != "" {
		quick := f
		var told []string
		if q.Known != nil {
			// It may wait for somebody who waits for the writer, so it is asked afterwards. Nearly always it knows all that there is.
			quick.q.Known = func(id string) bool {
				told = append(told, id)
				return true
			}
		}
		done, err := s.glance(ctx, "changes", func(ctx context.Context, from reader) (err error) {
			page, err = quick.page(ctx, from)
			return err
		})
		if done && (err != nil || !slices.ContainsFunc(told, func(id string) bool { return !q.Known(id) })) {
			return page, err
		}
	}
	err := s.read(ctx, "changes", "", func(tx *sql.Tx) (err error) {
		page, err = f.page(ctx, pooled{tx})
		return err
	})
	if err != nil {
		return core.ChangePage{}, err
	}
	return page, nil
}

// follower makes one page of a feed.
type follower struct {
	s     *Store
	q     core.ChangeQuery
	owner int64
}

// record is something that happened: an entry was appended, or, with a token, changed or deleted.
type record struct {
	n, token int64
	id       string
	entry    *core.Entry
	// known entries are left out of the page.
	known bool
}

func (f *follower) page(ctx context.Context, tx reader) (core.ChangePage, error) {
	from, ok := parsePlace(f.q.After)
	h, err := f.head(ctx, tx, from.n)
	if err != nil {
		return core.ChangePage{}, err
	}
	if tx.brief() && from.n < h.highest-longGlance {
		return core.ChangePage{}, errNoGlance
	}
	if f.q.After == "" {
		from = place{owner: f.owner, since: h.highest}
	} else if ok = ok && from.owner == f.owner; ok {
		if ok, err = f.known(ctx, tx, from, h); err != nil {
			return core.ChangePage{}, err
		}
	}
	if !ok && f.q.After != "" {
		return core.ChangePage{}, fmt.Errorf("the mark is not of this file, or of what it held before it was put back: begin without one: %w", core.ErrNotFound)
	}
	// One more than there is room for shows whether there is a next page.
	appended, err := f.appended(ctx, tx, from.n, h.covered)
	if err != nil {
		return core.ChangePage{}, err
	}
	var changed []record
	if h.newest.Int64 > from.n {
		if changed, err = f.changed(ctx, tx, from.n); err != nil {
			return core.ChangePage{}, err
		}
	}
	page := core.ChangePage{Mark: f.q.After}
	taken := 0
	for len(appended)+len(changed) > 0 {
		if taken == f.q.Limit {
			page.More = true
			break
		}
		taken++
		var r record
		if len(changed) == 0 || len(appended) > 0 && appended[0].n < changed[0].n {
			r, appended = appended[0], appended[1:]
		} else {
			r, changed = changed[0], changed[1:]
			if err := f.resolve(ctx, tx, &r); err != nil {
				return core.ChangePage{}, err
			}
		}
		if !r.known {
			page.Changes = append(page.Changes, core.EntryChange{ID: r.id, Entry: r.entry})
		}
		from.n, from.token, from.id = r.n, r.token, r.id
		page.Mark = from.mark()
	}
	return page, nil
}

// head is what every page begins with, read in one statement.
type head struct {
	covered, highest int64
	// id is that of the entry at the mark; newest and wall are the numbers of the agent's newest change and newest wall.
	id           storedID
	newest, wall sql.NullInt64
}

func (f *follower) head(ctx context.Context, tx reader, n int64) (head, error) {
	var h head
	is, err := f.s.readIdentity(tx.row(ctx, &f.s.r.head, f.owner, n), &h.id, &h.newest, &h.wall, &h.highest)
	h.covered = is.covered
	return h, err
}

// known reports whether what a mark names last did happen in this file, and nothing behind it was pruned.
func (f *follower) known(ctx context.Context, tx reader, from place, h head) (bool, error) {
	if h.wall.Int64 > max(from.n, from.since) {
		return false, nil
	}
	if from.token != 0 {
		c, err := f.change(tx.row(ctx, &f.s.r.change, f.owner, from.n))
		return c != nil && c.token == from.token && c.id.String == from.id, err
	}
	if h.id != "" && string(h.id) == from.id {
		return true, nil
	}
	// It was there if it was deleted since.
	var left int
	err := f.s.scanned(tx.row(ctx, &f.s.r.left, f.owner, from.n, from.n, from.id).Scan(&left))
	return left > 0, err
}

// change returns a row of changes, nil when there is none.
func (f *follower) change(of scanner) (*changeRow, error) {
	var c changeRow
	err := f.s.scanned(c.scan(of))
	if errors.Is(err, core.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		err = c.verify(f.s, f.owner)
	}
	return &c, err
}

// appended returns the entries behind a number, and one more than fits.
func (f *follower) appended(ctx context.Context, tx reader, after, covered int64) ([]record, error) {
	var out []record
	for after < covered {
		runs, err := f.runs(ctx, tx, after)
		if err != nil {
			return nil, err
		}
		if len(runs) == 0 {
			break
		}
		for _, r := range runs {
			if len(out) > f.q.Limit {
				return out, nil
			}
			in := stretch{ids: &f.s.r.betweenIDs, rows: &f.s.r.between, args: []any{max(r.first, after+1), r.last}}
			if out, err = f.entries(ctx, tx, in, out); err != nil {
				return nil, err
			}
			after = r.last
		}
	}
	if len(out) > f.q.Limit {
		return out, nil
	}
	return f.entries(ctx, tx, stretch{ids: &f.s.r.tailIDs, rows: &f.s.r.tail, args: []any{max(after, covered), f.q.Agent}}, out)
}

// runs returns some of the runs that reach behind a number, in order.
func (f *follower) runs(ctx context.Context, tx reader, after int64) ([]run, error) {
	rows, err := tx.rows(ctx, &f.s.r.runs, f.owner, after)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []run
	for rows.Next() {
		r := run{owner: f.owner}
		var sum int64
		if err := f.s.scanned(rows.Scan(&r.first, &r.last, &sum)); err != nil {
			return nil, err
		}
		if sum != r.checksum() {
			return nil, f.s.damaged("the run of entries %d to %d does not match its checksum", r.first, r.last)
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// changed returns the changes and deletions behind a number, and one more than fits.
func (f *follower) changed(ctx context.Context, tx reader, after int64) ([]record, error) {
	rows, err := tx.rows(ctx, &f.s.r.changes, f.owner, after, f.q.Limit+1)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []record
	for rows.Next() {
		var c changeRow
		if err := f.s.scanned(c.scan(rows)); err != nil {
			return nil, err
		}
		if err := c.verify(f.s, f.owner); err != nil {
			return nil, err
		}
		out = append(out, record{n: c.n, token: c.token, id: c.id.String})
	}
	return out, rows.Err()
}

// resolve finds the entry that a change is about, as it is now.
func (f *follower) resolve(ctx context.Context, tx reader, r *record) error {
	_, _, e, err := f.s.lookup(tx.row(ctx, &f.s.r.get, shortID(r.id)), core.Scope{Agent: f.q.Agent})
	if errors.Is(err, core.ErrNotFound) {
		return nil
	}
	if err == nil {
		r.entry = &e
	}
	return err
}
