package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// direct are the statements of Append, SwapView and glances, prepared on the writer's connection itself. Through database/sql, and with BEGIN and
// COMMIT parsed each time, a message of a turn of two or three took 10 us longer, of 60.
type direct struct {
	conn driver.Conn
	// look begins a transaction that reads.
	look                    driver.Stmt
	begin, commit, rollback driver.Stmt
	scope, addScope, next   driver.Stmt
	insert, byID, byKey     driver.Stmt
	firstView, nextView     driver.Stmt
	viewVersion             driver.Stmt
	// queries are those of readStatements that were run so far.
	queries map[*query]driver.Stmt
	args    []driver.NamedValue
}

func (d *direct) prepare(ctx context.Context, conn driver.Conn) error {
	p, ok := conn.(driver.ConnPrepareContext)
	if !ok {
		return fmt.Errorf("the driver does not prepare statements: %w", errors.ErrUnsupported)
	}
	for to, text := range map[*driver.Stmt]string{
		&d.look: "BEGIN", &d.begin: "BEGIN IMMEDIATE", &d.commit: "COMMIT", &d.rollback: "ROLLBACK",
		&d.scope: selectScope, &d.addScope: insertScope, &d.next: selectNext,
		&d.insert: insertEntry, &d.byID: selectKeyByID, &d.byKey: selectIDByKey,
		&d.firstView: insertView, &d.nextView: updateView, &d.viewVersion: selectSwaps,
	} {
		stmt, err := p.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		*to = stmt
	}
	d.conn = conn
	return nil
}

// close lets go of the statements. The connection has to be open still.
func (d *direct) close() error {
	var errs []error
	for _, stmt := range []driver.Stmt{d.look, d.begin, d.commit, d.rollback, d.scope, d.addScope, d.next, d.insert, d.byID, d.byKey,
		d.firstView, d.nextView, d.viewVersion} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	for _, stmt := range d.queries {
		errs = append(errs, stmt.Close())
	}
	*d = direct{}
	return errors.Join(errs...)
}

// values numbers the arguments of a statement. They are valid until the next call.
func (d *direct) values(args []driver.Value) []driver.NamedValue {
	d.args = d.args[:0]
	for i, v := range args {
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return d.args
}

// exec runs a statement that returns no rows.
func (d *direct) exec(ctx context.Context, stmt driver.Stmt, args ...driver.Value) (driver.Result, error) {
	res, err := stmt.(driver.StmtExecContext).ExecContext(ctx, d.values(args))
	clear(d.args) // they hold what messages say
	return res, err
}

// one reads the only row of a query into dest; sql.ErrNoRows when there is none.
func (d *direct) one(ctx context.Context, stmt driver.Stmt, dest []driver.Value, args ...driver.Value) error {
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(ctx, d.values(args))
	if err != nil {
		return err
	}
	err = rows.Next(dest)
	if errors.Is(err, io.EOF) {
		err = sql.ErrNoRows
	}
	return errors.Join(err, rows.Close())
}

// raw runs f with the statements on the writer's connection.
func (s *Store) raw(ctx context.Context, conn *sql.Conn, f func(d *direct) error) error {
	return conn.Raw(func(c any) error {
		dc, ok := c.(driver.Conn)
		if !ok {
			return fmt.Errorf("the driver's connection is a %T: %w", c, errors.ErrUnsupported)
		}
		if s.direct.conn != dc {
			// An older connection has been closed, so whatever was prepared on it is gone.
			s.direct = direct{}
			if err := s.direct.prepare(ctx, dc); err != nil {
				return errors.Join(err, s.direct.close())
			}
		}
		return f(&s.direct)
	})
}

// releaseDirect lets go of the statements that database/sql knows nothing of. It comes before everything that may end with the connection being
// closed: what is still prepared then would keep the file open.
func (s *Store) releaseDirect(ctx context.Context) error {
	if s.direct.conn == nil {
		return nil
	}
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	err = conn.Raw(func(c any) error {
		if dc, ok := c.(driver.Conn); ok && s.direct.conn == dc {
			return s.direct.close()
		}
		s.direct = direct{}
		return nil
	})
	return errors.Join(err, conn.Close())
}

// transactDirect is transact for Append and SwapView: f puts rows in on the connection itself, then after, if not nil, may go on through
// database/sql. Both are part of one transaction.
func (s *Store) transactDirect(ctx context.Context, f func(d *direct) error, after func(conn *sql.Conn) error) error {
	return s.alone(ctx, func() error {
		if err := s.writable(); err != nil {
			return err
		}
		quiet := context.WithoutCancel(ctx)
		conn, err := s.writer.Conn(quiet)
		if err != nil {
			return err
		}
		defer conn.Close()
		run := func(stmt func(d *direct) driver.Stmt) error {
			return s.raw(quiet, conn, func(d *direct) error {
				_, err := d.exec(quiet, stmt(d))
				return err
			})
		}
		err = s.patiently(ctx, func() error { return run(func(d *direct) driver.Stmt { return d.begin }) })
		if err != nil {
			return err
		}
		if err = s.raw(quiet, conn, f); err == nil && after != nil {
			err = after(conn)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = run(func(d *direct) driver.Stmt { return d.commit })
		}
		if err != nil {
			// The first error is the one that counts; a failed rollback shows when the next transaction begins.
			_ = run(func(d *direct) driver.Stmt { return d.rollback })
			return err
		}
		return s.inPlace()
	})
}
