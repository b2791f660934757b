package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// prepared returns a query as a statement of the connection.
func (d *direct) prepared(ctx context.Context, q *query) (driver.StmtQueryContext, error) {
	stmt, ok := d.queries[q]
	if !ok {
		var err error
		if stmt, err = d.conn.(driver.ConnPrepareContext).PrepareContext(ctx, q.text); err != nil {
			return nil, err
		}
		if d.queries == nil {
			d.queries = map[*query]driver.Stmt{}
		}
		d.queries[q] = stmt
	}
	return stmt.(driver.StmtQueryContext), nil
}

// rows implements reader.
func (d *direct) rows(ctx context.Context, q *query, args ...any) (rows, error) {
	stmt, err := d.prepared(ctx, q)
	if err != nil {
		return nil, err
	}
	d.args = d.args[:0]
	for i, v := range args {
		if n, ok := v.(int); ok {
			v = int64(n)
		}
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	found, err := stmt.QueryContext(ctx, d.args)
	if err != nil {
		return nil, err
	}
	return &directRows{found: found, values: make([]driver.Value, len(found.Columns()))}, nil
}

// row implements reader.
func (d *direct) row(ctx context.Context, q *query, args ...any) scanner {
	found, err := d.rows(ctx, q, args...)
	return directRow{found, err}
}

func (d *direct) brief() bool { return true }

// directRow is the first row of a query, or why there is none.
type directRow struct {
	found rows
	err   error
}

func (r directRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.found.Close()
	if r.found.Next() {
		return r.found.Scan(dest...)
	}
	if err := r.found.Err(); err != nil {
		return err
	}
	return sql.ErrNoRows
}

// directRows are the rows of a driver.
type directRows struct {
	found  driver.Rows
	values []driver.Value
	err    error
}

func (r *directRows) Next() bool {
	if r.err == nil {
		r.err = r.found.Next(r.values)
	}
	return r.err == nil
}

func (r *directRows) Err() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

func (r *directRows) Close() error { return r.found.Close() }

// Scan takes values over as they are: those of this driver are copies already.
func (r *directRows) Scan(dest ...any) error {
	if len(dest) != len(r.values) {
		return fmt.Errorf("%d columns for %d values", len(r.values), len(dest))
	}
	for i, to := range dest {
		if !assign(to, r.values[i]) {
			return fmt.Errorf("column %d is a %T and does not fit into a %T", i, r.values[i], to)
		}
	}
	return nil
}

// assign puts a value into what to points to, and reports whether it is of that type.
func assign(to any, v driver.Value) (ok bool) {
	switch to := to.(type) {
	case *int64:
		*to, ok = v.(int64)
	case *int:
		var n int64
		n, ok = v.(int64)
		*to = int(n)
	case *string:
		*to, ok = v.(string)
	case *storedID:
		ok = to.Scan(v) == nil
	case *[]byte:
		*to, ok = v.([]byte)
		ok = ok || v == nil
	case *any:
		*to, ok = v, true
	case *sql.NullString:
		to.String, to.Valid = v.(string)
		ok = to.Valid || v == nil
	case *sql.NullInt64:
		to.Int64, to.Valid = v.(int64)
		ok = to.Valid || v == nil
	}
	return ok
}
