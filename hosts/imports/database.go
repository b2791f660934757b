package imports

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/contextengine/contextengine/core"
)

// database is a SQLite file of another program, opened for reading alone.
type database struct {
	*sql.DB
	path string
}

// openDatabase opens a file that others may be writing. Without a write-ahead log beside it nobody is, and SQLite then
// touches nothing but the file.
func openDatabase(name string) (*database, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("imports: open %q: %w", name, err)
	}
	q := url.Values{"mode": {"ro"}, "_pragma": {"query_only(1)", "busy_timeout(10000)", "trusted_schema(0)"}}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		q.Set("immutable", "1")
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a Windows drive
	}
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: q.Encode()}
	connector, err := driver.NewConnector(u.String())
	if err != nil {
		return nil, fmt.Errorf("imports: open %q: %w", name, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return &database{DB: db, path: path}, nil
}

// format tells the programs apart whose files can be read.
func (db *database) format() (Format, error) {
	has := func(tables ...string) (bool, error) {
		for _, name := range tables {
			columns, err := db.columns(context.Background(), db.DB, name)
			if err != nil || len(columns) == 0 {
				return false, err
			}
		}
		return true, nil
	}
	for _, of := range []struct {
		format Format
		tables []string
	}{
		{OpenClaw, []string{"transcript_events", "session_windows"}},
		{LosslessClaw, []string{"conversations", "messages", "message_parts"}},
	} {
		ok, err := has(of.tables...)
		if err != nil {
			return "", ended(context.Background(), err)
		}
		if ok {
			return of.format, nil
		}
	}
	if ok, err := has("entries", "scopes", "schema_version"); err == nil && ok {
		return "", fmt.Errorf("it is a store of this program: export it first, or configure it as the store: %w", core.ErrInvalid)
	}
	return "", fmt.Errorf("it is a SQLite file of neither %q nor %q: %w", OpenClaw, LosslessClaw, core.ErrInvalid)
}

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// columns returns the columns of a table, none when there is no such table.
func (db *database) columns(ctx context.Context, q querier, table string) (map[string]bool, error) {
	rows, err := q.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := make(map[string]bool)
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out[name] = true
	}
	return out, rows.Err()
}

// snapshot runs f in one read transaction: all it reads is of one moment, also when the program that owns the file goes on writing.
func (db *database) snapshot(ctx context.Context, f func(q querier) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return ended(ctx, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	return ended(ctx, f(tx))
}

// ended says in the package's words what the driver reports: why a query was interrupted, or that the file is damaged.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w: %w", err, ctx.Err())
	}
	if e, ok := errors.AsType[*driver.Error](err); ok && (e.Code()&0xff == lib.SQLITE_CORRUPT || e.Code()&0xff == lib.SQLITE_NOTADB) {
		return fmt.Errorf("%w: %w", err, ErrMalformed)
	}
	return err
}

// each calls f for every row of a query, after it scanned the row into dest.
func each(ctx context.Context, q querier, query string, args []any, dest []any, f func() error) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if err := f(); err != nil {
			return err
		}
	}
	return rows.Err()
}
