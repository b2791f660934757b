package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// applicationID marks the file as one of this package's, in the header where tools such as file(1) look: "ctxe".
const applicationID = 0x63747865

// migration is one step of the schema. Steps are never changed once released, only added.
type migration struct {
	name       string
	statements []string
	// fill, when not nil, brings what is there into the new tables.
	fill func(s *Store, ctx context.Context, tx *sql.Tx) error
}

// migrations returns the steps; the schema's version is the number of steps that were taken.
func migrations() []migration {
	return []migration{{
		name: "scopes, entries and views",
		statements: []string{
			// A scope is a session. Its number stands for the two names everywhere else.
			`CREATE TABLE scopes (
				id INTEGER PRIMARY KEY,
				agent TEXT NOT NULL,
				session TEXT NOT NULL,
				UNIQUE (agent, session))`,
			// n rises with every append and is never changed, also not by VACUUM. It breaks ties of seq.
			`CREATE TABLE entries (
				n INTEGER PRIMARY KEY,
				id TEXT NOT NULL UNIQUE,
				scope INTEGER NOT NULL,
				seq INTEGER NOT NULL,
				turn INTEGER NOT NULL,
				role TEXT NOT NULL,
				type TEXT NOT NULL,
				time INTEGER NOT NULL,
				tokens INTEGER NOT NULL,
				key BLOB NOT NULL,
				fingerprint BLOB NOT NULL,
				meta BLOB,
				message BLOB NOT NULL,
				sum INTEGER NOT NULL,
				UNIQUE (scope, key))`,
			`CREATE INDEX entries_order ON entries (scope, seq)`,
			`CREATE TABLE views (
				scope INTEGER PRIMARY KEY,
				version INTEGER NOT NULL,
				body BLOB NOT NULL,
				sum INTEGER NOT NULL)`,
		},
	}, {
		name: "change feed",
		statements: []string{
			// covered is the number up to which entries are in runs.
			`CREATE TABLE identity (
				one INTEGER PRIMARY KEY,
				id BLOB NOT NULL,
				covered INTEGER NOT NULL,
				sum INTEGER NOT NULL)`,
			// All entries from first to last are of one agent. Owners are explained at Store.owner.
			`CREATE TABLE runs (
				owner INTEGER NOT NULL,
				first INTEGER NOT NULL,
				last INTEGER NOT NULL,
				sum INTEGER NOT NULL,
				PRIMARY KEY (owner, first)) WITHOUT ROWID`,
			// n is of the same sequence as that of entries: what happens later has the higher number, in either table.
			`CREATE TABLE changes (
				n INTEGER PRIMARY KEY,
				owner INTEGER NOT NULL,
				id TEXT,
				entry INTEGER NOT NULL,
				token INTEGER NOT NULL,
				sum INTEGER NOT NULL)`,
			`CREATE INDEX changes_order ON changes (owner, n)`,
			`CREATE INDEX changes_walls ON changes (owner, n) WHERE id IS NULL`,
		},
		fill: (*Store).identify,
	}, {
		name: "vectors",
		statements: []string{
			`CREATE TABLE spaces (
				id INTEGER PRIMARY KEY,
				name TEXT NOT NULL UNIQUE,
				dimensions INTEGER NOT NULL)`,
			`CREATE TABLE vectors (
				owner INTEGER NOT NULL,
				space INTEGER NOT NULL,
				n INTEGER NOT NULL,
				part INTEGER NOT NULL,
				first INTEGER NOT NULL,
				last INTEGER NOT NULL,
				hash INTEGER NOT NULL,
				body BLOB NOT NULL,
				sum INTEGER NOT NULL,
				UNIQUE (owner, space, n, part))`,
		},
	}, {
		name: "entries by type",
		statements: []string{
			// The few entries that are no messages. The second index says how many they are: see Store.counted.
			`CREATE INDEX entries_types ON entries (scope, type, seq) WHERE type <> 'message'`,
			`CREATE INDEX entries_special ON entries (scope) WHERE type <> 'message'`,
		},
	}, {
		name: "short names",
		fill: (*Store).shorten,
	}}
}

// migrate brings the schema of the file to the newest version, each step in a transaction of its own. Processes that
// open the file at the same time take the steps one after the other and find them taken.
func (s *Store) migrate(ctx context.Context, steps []migration) error {
	for made := false; ; made = true {
		done := false
		transact := s.transact
		if s.readOnly {
			transact = s.look
		}
		err := transact(ctx, func(tx *sql.Tx) error {
			version, err := s.version(ctx, tx)
			if err != nil {
				return err
			}
			if version > len(steps) {
				return fmt.Errorf("%s has schema version %d, this program knows up to %d: use a newer version of the program: %w",
					s.file, version, len(steps), ErrSchema)
			}
			if version == len(steps) {
				done = true
				if err := s.numbered(ctx, tx); err != nil {
					return err
				}
				is, err := s.readIdentity(tx.QueryRowContext(ctx, selectIdentity))
				s.identity, s.covered = is.id, is.covered
				return err
			}
			if s.full {
				return s.writable()
			}
			if s.readOnly {
				return fmt.Errorf("%s has schema version %d, this program needs %d: open it once where it can be written: %w", s.file, version, len(steps), ErrSchema)
			}
			return s.step(ctx, tx, version+1, steps[version])
		})
		if err != nil {
			return err
		}
		if done {
			if made {
				// The identity has to stand in the file: without it a mark beside a file whose log was removed would be that of another one.
				_, err = s.checkpoint(ctx)
			}
			return err
		}
	}
}

// numbered looks whether the numbers of rows are there: where one letter of how a table was made is damaged, it is another table, and SQLite finds nothing wrong with it.
// In one that is sound no row is looked at.
func (s *Store) numbered(ctx context.Context, tx *sql.Tx) error {
	for _, column := range []string{"scopes.id", "entries.n", "views.scope", "identity.one", "changes.n", "spaces.id"} {
		table, name, _ := strings.Cut(column, ".")
		var lost bool
		err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+table+" WHERE "+name+" IS NULL)").Scan(&lost)
		if err != nil {
			return err
		}
		if lost {
			return s.damaged("the numbers of table %q are gone", table)
		}
	}
	return nil
}

// look runs f in a transaction of the writer's connection that only reads.
func (s *Store) look(ctx context.Context, f func(tx *sql.Tx) error) error {
	return reading(ctx, s.writer, f)
}

// version returns the schema's version: 0 for an empty file.
func (s *Store) version(ctx context.Context, tx *sql.Tx) (int, error) {
	var application, tables, known int
	if err := tx.QueryRowContext(ctx, "PRAGMA application_id").Scan(&application); err != nil {
		return 0, err
	}
	err := tx.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(name = 'schema_version'), 0) FROM sqlite_schema WHERE type = 'table'").
		Scan(&tables, &known)
	if err != nil {
		return 0, err
	}
	switch {
	case tables == 0 && application == 0:
		return 0, nil
	case application != applicationID && known == 0:
		return 0, fmt.Errorf("%s is a database of another program: choose another path: %w", s.file, ErrSchema)
	case application != applicationID || known == 0:
		return 0, s.damaged("the marks of the schema are missing")
	}
	var version, rows int
	if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(version), 0), count(*) FROM schema_version").Scan(&version, &rows); err != nil {
		return 0, err
	}
	if version != rows || version < 1 {
		return 0, s.damaged("the table of schema versions has %d rows up to version %d", rows, version)
	}
	return version, nil
}

func (s *Store) step(ctx context.Context, tx *sql.Tx, version int, m migration) error {
	statements := m.statements
	if version == 1 {
		statements = append([]string{
			fmt.Sprintf("PRAGMA application_id = %d", applicationID),
			"CREATE TABLE schema_version (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied INTEGER NOT NULL)",
		}, statements...)
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("migrate to version %d (%s): %w", version, m.name, err)
		}
	}
	if m.fill != nil {
		if err := m.fill(s, ctx, tx); err != nil {
			return fmt.Errorf("migrate to version %d (%s): %w", version, m.name, err)
		}
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO schema_version (version, name, applied) VALUES (?, ?, ?)", version, m.name, s.now().UnixMilli())
	if err == nil {
		s.log.InfoContext(ctx, "schema migrated", "file", s.file, "version", version, "step", m.name)
	}
	return err
}
