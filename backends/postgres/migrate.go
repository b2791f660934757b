package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// version returns the version of a part of the schema: 0 when it is not there.
func (s *Store) version(ctx context.Context, q querier, part string) (int, error) {
	var there, known, others bool
	err := q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1),
		to_regclass($2::text) IS NOT NULL, to_regclass($3::text) IS NOT NULL`, s.cfg.Schema, s.sql.schema+".schema_version", s.sql.schema+".entries").
		Scan(&there, &known, &others)
	if err != nil {
		return 0, err
	}
	if !known {
		if there && others {
			return 0, fmt.Errorf("schema %q holds a table of another program: choose another schema: %w", s.cfg.Schema, ErrSchema)
		}
		return 0, nil
	}
	var version, rows int
	err = q.QueryRow(ctx, s.sql.replace("SELECT coalesce(max(version), 0), count(*) FROM {s}.schema_version WHERE part = $1"), part).
		Scan(&version, &rows)
	if err != nil {
		return 0, err
	}
	if version != rows {
		return 0, damaged("the table of schema versions has %d rows up to version %d", rows, version)
	}
	return version, nil
}

// migrate brings a part of the schema to its newest version. Processes that open the store at the same time wait for one
// another, and find the steps taken. Where all steps were taken the user needs no right to change the schema. A step may write a large table anew:
// what ends it is ctx, not the store's timeout, which bounds the wait for those who use the table.
func (s *Store) migrate(ctx context.Context, part string, steps []migration) error {
	var version int
	err := s.call(ctx, "open", "", repeatable, func(ctx context.Context) (err error) {
		version, err = s.version(ctx, s.main, part)
		return err
	})
	if err != nil || version == len(steps) {
		return err
	}
	return s.patient(ctx, "open", func(ctx context.Context) error { return s.steps(ctx, part, steps) })
}

// steps takes the steps that are missing, all or none.
func (s *Store) steps(ctx context.Context, part string, steps []migration) error {
	return s.transact(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)"); err != nil {
			return err
		}
		// The lock goes with the transaction, which a pooler keeps on one connection.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", s.lock("migrate")); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT set_config('lock_timeout', $1, true)", strconv.FormatInt(s.cfg.Timeout.Milliseconds(), 10)); err != nil {
			return err
		}
		version, err := s.version(ctx, tx, part)
		if err != nil {
			return err
		}
		if version > len(steps) {
			return fmt.Errorf("schema %q has version %d, this program knows up to %d: use a newer version of the program: %w",
				s.cfg.Schema, version, len(steps), ErrSchema)
		}
		for n := version; n < len(steps); n++ {
			if err := s.step(ctx, tx, part, n+1, steps[n]); err != nil {
				return err
			}
		}
		if part == baseSchema && version == 0 {
			return s.teach(ctx, tx)
		}
		return nil
	})
}

// teach gives new tables the statistics of one long session, which stay until the server has counted the real ones. Without any, to find one entry looks as cheap
// to the planner as to read its whole session, and a plan from when the table was empty is kept. They are so large that the table does not look small, and so few that
// the server does not count anew at once what is left of them.
func (s *Store) teach(ctx context.Context, tx pgx.Tx) error {
	for _, text := range []string{
		`INSERT INTO {s}.entries (agent, session, id, n, rev, seq, turn, role, type, time, nanos, tokens, key, body, raw, words)
			SELECT '', '', int8send(n), n, n, n, n, 'user', 'message', 'epoch'::timestamptz, 0, n, int8send(n), convert_to(repeat('-', 1700), 'UTF8'), n, '{}' FROM generate_series(1, 40) AS g(n)`,
		`ANALYZE {s}.entries`,
		`DELETE FROM {s}.entries`,
	} {
		if _, err := tx.Exec(ctx, s.sql.replace(text)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) step(ctx context.Context, tx pgx.Tx, part string, version int, m migration) error {
	s.log.InfoContext(ctx, "schema is being migrated", "schema", s.cfg.Schema, "part", part, "version", version, "step", m.name)
	if part == baseSchema && version == 1 {
		if err := s.begin(ctx, tx); err != nil {
			return err
		}
	}
	for _, text := range m.text(s.sql.schema, s.sql.extension, s.partitions) {
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("migrate %s to version %d: %w", part, version, err)
		}
	}
	if part == baseSchema && version == 1 {
		for name, value := range map[string]string{
			"identity": rand.Text(), "language": s.cfg.Language, "partitions": strconv.Itoa(s.partitions),
		} {
			if _, err := tx.Exec(ctx, s.sql.replace("INSERT INTO {s}.settings (name, value) VALUES ($1, $2)"), name, value); err != nil {
				return err
			}
		}
	}
	_, err := tx.Exec(ctx, s.sql.replace("INSERT INTO {s}.schema_version (part, version, name) VALUES ($1, $2, $3)"), part, version, m.name)
	if err == nil {
		s.log.InfoContext(ctx, "schema migrated", "schema", s.cfg.Schema, "part", part, "version", version, "step", m.name)
	}
	return err
}

// begin makes the schema and the table of versions.
func (s *Store) begin(ctx context.Context, tx pgx.Tx) error {
	var there bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1)", s.cfg.Schema).Scan(&there); err != nil {
		return err
	}
	// With IF NOT EXISTS alone the right to make schemas would be needed even where it is there.
	if !there {
		if _, err := tx.Exec(ctx, s.sql.replace("CREATE SCHEMA {s}")); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, s.sql.replace(`CREATE TABLE {s}.schema_version (
		part text NOT NULL, version integer NOT NULL, name text NOT NULL, applied timestamptz NOT NULL DEFAULT now(),
		PRIMARY KEY (part, version))`))
	return err
}

// settled reads what was fixed when the tables were made.
func (s *Store) settled(ctx context.Context) error {
	read := func(name string, to *string) error {
		err := s.main.QueryRow(ctx, s.sql.replace("SELECT value FROM {s}.settings WHERE name = $1"), name).Scan(to)
		if errors.Is(err, pgx.ErrNoRows) {
			return damaged("the setting %q is missing", name)
		}
		return err
	}
	var language, partitions, kept, now string
	err := errors.Join(read("identity", &s.identity), read("language", &language), read("partitions", &partitions), read("words", &kept))
	if err != nil {
		return err
	}
	if err := s.main.QueryRow(ctx, "SELECT "+number("'"+probe+"'")+"::text").Scan(&now); err != nil {
		return err
	}
	if kept != now {
		return fmt.Errorf("the tables come from a server that numbers words in another way: export them there, and import them into another schema here: %w", ErrSchema)
	}
	if s.partitions, err = strconv.Atoi(partitions); err != nil {
		return damaged("the setting %q is no number", "partitions")
	}
	if language != s.cfg.Language {
		return fmt.Errorf("language: the tables were made with %q: set that, or another schema: %w", language, ErrSchema)
	}
	if s.cfg.Partitions > 1 && s.cfg.Partitions != s.partitions {
		return fmt.Errorf("partitions: the tables were made with %d: set that, or another schema: %w", s.partitions, ErrSchema)
	}
	return nil
}

// lock returns the number of an advisory lock of this store. It is shared by all schemas of the name in one database.
func (s *Store) lock(use string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("contextengine/" + s.cfg.Schema + "/" + use))
	return int64(h.Sum64())
}
