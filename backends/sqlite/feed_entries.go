package sqlite

import (
	"context"
	"database/sql"

	"github.com/contextengine/contextengine/core"
)

// stretch is a range of entries and the statements that read it: their numbers and ids alone, and all of them.
type stretch struct {
	ids, rows *query
	args      []any
}

// entries reads a stretch into out, up to one more than fits. Who was told of entries when they were appended knows nearly all of them, so their
// ids are read first: that takes a quarter of the time, for what they say is not touched.
func (f *follower) entries(ctx context.Context, tx reader, in stretch, out []record) ([]record, error) {
	args := append(in.args, f.q.Limit+1-len(out))
	if f.q.Known == nil {
		return f.rows(ctx, tx, in.rows, args, out)
	}
	from := len(out)
	out, err := f.ids(ctx, tx, in.ids, args, out)
	if err != nil || len(out) == from {
		return out, err
	}
	if !out[from].known {
		// Who does not know the first one is reading all there is.
		return f.rows(ctx, tx, in.rows, args, out[:from])
	}
	for i := from; i < len(out); i++ {
		if out[i].known {
			continue
		}
		end := i + 1
		for end < len(out) && !out[end].known {
			end++
		}
		if err := f.fill(ctx, tx, out[i:end]); err != nil {
			return nil, err
		}
		i = end
	}
	return out, nil
}

// ids reads the numbers and ids of entries, and asks which of them are known.
func (f *follower) ids(ctx context.Context, tx reader, stmt *query, args []any, out []record) ([]record, error) {
	rows, err := tx.rows(ctx, stmt, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r record
		var id storedID
		if err := f.s.scanned(rows.Scan(&r.n, &id)); err != nil {
			return nil, err
		}
		r.id = string(id)
		r.known = f.q.Known(r.id)
		out = append(out, r)
	}
	return out, rows.Err()
}

// fill reads the entries of neighbouring records. There may be others' entries between them.
func (f *follower) fill(ctx context.Context, tx reader, records []record) error {
	first, last := records[0].n, records[len(records)-1].n
	rows, err := tx.rows(ctx, &f.s.r.between, first, last, last-first+1)
	if err != nil {
		return err
	}
	defer rows.Close()
	var r row
	var agent, session sql.NullString
	dest := r.columns(&agent, &session)
	for len(records) > 0 && rows.Next() {
		if err := f.s.scanned(rows.Scan(dest...)); err != nil {
			return err
		}
		if r.n != records[0].n {
			continue
		}
		if records[0].entry, err = f.entry(&r, agent.String, session.String); err != nil {
			return err
		}
		records = records[1:]
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(records) > 0 {
		return f.s.damaged("entry %q was there and is not", records[0].id)
	}
	return nil
}

// rows reads entries as they are.
func (f *follower) rows(ctx context.Context, tx reader, stmt *query, args []any, out []record) ([]record, error) {
	rows, err := tx.rows(ctx, stmt, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var r row
	var agent, session sql.NullString
	dest := r.columns(&agent, &session)
	for rows.Next() {
		if err := f.s.scanned(rows.Scan(dest...)); err != nil {
			return nil, err
		}
		if f.q.Known != nil && f.q.Known(string(r.id)) {
			out = append(out, record{n: r.n, id: string(r.id), known: true})
			continue
		}
		e, err := f.entry(&r, agent.String, session.String)
		if err != nil {
			return nil, err
		}
		out = append(out, record{n: r.n, id: e.ID, entry: e})
	}
	return out, rows.Err()
}

// entry decodes a row, which has to be the agent's.
func (f *follower) entry(r *row, agent, session string) (*core.Entry, error) {
	e, err := f.s.entry(core.SessionID{Agent: agent, Session: session}, r)
	if err != nil {
		return nil, err
	}
	if e.Agent != f.q.Agent {
		return nil, f.s.damaged("entry %q is of another agent than its run", e.ID)
	}
	return &e, nil
}
