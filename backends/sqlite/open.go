package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	driver "modernc.org/sqlite"
)

// Open opens the store's file, makes it when there is none, and brings its schema up to date. It returns core.ErrInvalid for a
// configuration that cannot work, ErrDamaged and ErrSchema for a file that cannot be used, and core.ErrUnavailable when
// another process keeps it locked. On a full disk the file is opened for reading, and for writing once there is room.
func Open(ctx context.Context, cfg Config, opts ...Option) (*Store, error) {
	s, err := newStore(cfg, opts)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("sqlite: open: %w", err)
	}
	if err := s.connect(ctx, migrations()); err != nil {
		return nil, s.failed(ctx, "open", "", err)
	}
	s.startWatch()
	return s, nil
}

func newStore(cfg Config, opts []Option) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg.normalized(), log: slog.New(slog.DiscardHandler), now: time.Now, pause: time.Sleep, turn: make(chan struct{}, 1), tail: longTail, watch: watch{first: firstVerify, again: verifyAgain}}
	for _, opt := range opts {
		opt(s)
	}
	file, err := s.cfg.file()
	if err != nil {
		return nil, err
	}
	s.file = file
	return s, nil
}

// connect opens the file. When it fails nothing stays open.
func (s *Store) connect(ctx context.Context, steps []migration) (err error) {
	defer func() {
		if err != nil && s.handles != nil {
			err = errors.Join(err, s.handles.release())
		}
	}()
	if err := s.prepareFile(); err != nil {
		return err
	}
	params, err := s.params()
	if err != nil {
		return err
	}
	if err := s.checkHeader(); err != nil {
		return err
	}
	if s.opened, err = os.Stat(s.file); err != nil {
		return err
	}
	s.length.Store(s.opened.Size())
	if err := s.checkLog(ctx); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		for _, db := range []*sql.DB{s.writer, s.readers} {
			if db != nil {
				err = errors.Join(err, db.Close())
			}
		}
	}()
	// The writer gets a quarter: when the tree of ids splits a page, SQLite looks through all of the cache as it commits, and a cache of twice the
	// size made an append to 100,000 entries a tenth slower.
	quarter := s.cfg.CacheMiB * 1024 / 4
	// The writer does its own waiting, see patiently.
	if s.writer, err = connectDB(s.file, params, 1, "immediate", 0, quarter, "wal_autocheckpoint(8000)", "journal_size_limit(67108864)",
		"synchronous("+s.synchronous()+")", "secure_delete("+s.secure()+")"); err != nil {
		return err
	}
	err = s.patiently(ctx, func() error {
		if s.readOnly {
			return nil // it has the mode that it has
		}
		var mode string
		if err := s.writer.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("%s: the file system does not allow a write-ahead log: choose a path on a local disk", s.file)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	if err := s.migrate(ctx, steps); err != nil {
		return err
	}
	if err := s.checkMark(ctx); err != nil {
		return err
	}
	if s.readers, err = connectDB(s.file, params, s.cfg.Readers, "deferred", s.cfg.BusyTimeout, 3*quarter/s.cfg.Readers, "query_only(1)"); err != nil {
		return err
	}
	if err := s.w.prepare(ctx, s.writer); err != nil {
		return err
	}
	if err := s.r.prepare(ctx, s.readers); err != nil {
		return err
	}
	if s.readOnly {
		return nil
	}
	s.logged, err = os.Stat(s.file + "-wal")
	return err
}

func (s *Store) synchronous() string {
	if s.cfg.Durability == DurabilityPower {
		return "FULL"
	}
	return "NORMAL"
}

func (s *Store) secure() string {
	if s.cfg.Insecure {
		return "OFF"
	}
	return "ON"
}

// connectDB returns a pool of up to n connections that stay open. cache is in KiB for each of them.
func connectDB(file string, params map[string]string, n int, lock string, busy time.Duration, cache int, pragmas ...string) (*sql.DB, error) {
	q := url.Values{"_txlock": {lock}}
	for name, value := range params {
		q.Set(name, value)
	}
	q.Add("_pragma", "busy_timeout("+strconv.FormatInt(busy.Milliseconds(), 10)+")")
	q.Add("_pragma", "cache_size(-"+strconv.Itoa(cache)+")")
	q.Add("_pragma", "trusted_schema(0)")
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	path := filepath.ToSlash(file)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	connector, err := driver.NewConnector(u.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// params are those of all connections.
func (s *Store) params() (map[string]string, error) {
	if s.readOnly {
		return s.readOnlyParams()
	}
	return nil, nil
}

// makeFile makes the file and its folders, readable by their owner alone, when they are missing, and opens it for writing.
func (s *Store) makeFile() (err error) {
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of the store: %w", err)
	}
	if s.handles, err = holdFile(s.file); err != nil {
		return err
	}
	if err := s.handles.with(s.file, os.O_RDWR, func(*os.File) error { return nil }); err != nil {
		return fmt.Errorf("cannot open the store: %w", err)
	}
	return nil
}

// headerSize is that of SQLite's header; see https://www.sqlite.org/fileformat2.html.
const headerSize = 100

// checkHeader finds files that are no database at all before SQLite gets to see, and perhaps write to, them.
func (s *Store) checkHeader() error {
	head, n := make([]byte, headerSize), 0
	err := s.handles.with(s.file, os.O_RDONLY, func(f *os.File) (err error) {
		n, err = f.ReadAt(head, 0)
		return err
	})
	if n == 0 && errors.Is(err, io.EOF) {
		return nil // new
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n < headerSize || !bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return s.damaged("it does not begin like a SQLite database")
	}
	return nil
}

// check verifies the file as the configuration asks for.
func (s *Store) check(ctx context.Context) error {
	switch s.cfg.Check {
	case CheckNever:
		return nil
	case CheckAuto:
		info, err := os.Stat(s.file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > autoCheck {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return s.integrity(ctx, s.writer)
}

// integrity has SQLite compare everything in the file with everything else.
func (s *Store) integrity(ctx context.Context, db *sql.DB) error {
	return s.compare(ctx, db, "PRAGMA integrity_check(5)")
}

// compare runs a check of SQLite's.
func (s *Store) compare(ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, pragma string) error {
	return s.patiently(ctx, func() error {
		rows, err := db.QueryContext(ctx, pragma)
		if err != nil {
			return err
		}
		defer rows.Close()
		var found []string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				return err
			}
			found = append(found, line)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if len(found) == 1 && found[0] == "ok" {
			return nil
		}
		return s.damaged("the integrity check found: %s", strings.Join(found, "; "))
	})
}
