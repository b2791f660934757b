package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/contextengine/contextengine/core"
)

// oldest is the oldest server that is served, in the form of server_version_num.
const oldest = 130000

// Open connects to the server, makes the schema when there is none, and brings it up to date. It returns core.ErrInvalid for a
// configuration that cannot work, core.ErrAuth and core.ErrUnavailable when the server refuses or does not answer, and ErrSchema for a
// schema or server that cannot be used. When it fails nothing stays open.
func Open(ctx context.Context, cfg Config, opts ...Option) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	s := &Store{cfg: cfg.normalized(), log: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		opt(s)
	}
	s.partitions = s.cfg.Partitions
	s.sql = newStatements(s.cfg)
	var err error
	if s.main, err = s.connect(ctx, s.cfg.DSN); err != nil {
		return nil, err
	}
	if s.cfg.ReplicaDSN != "" {
		if s.replica, err = s.connect(ctx, s.cfg.ReplicaDSN); err != nil {
			s.disconnect()
			return nil, err
		}
	}
	if err := s.prepare(ctx); err != nil {
		s.disconnect()
		return nil, err
	}
	return s, nil
}

func (s *Store) connect(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	p, err := s.cfg.pool(dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: open: %w", core.ErrInvalid) // Validate has parsed it before
	}
	// The pool's context is for what it does in the background; it ends with Close.
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), p)
	if err != nil {
		return nil, wrap("open", "", describe(err))
	}
	return pool, nil
}

// prepare looks at the server and brings the schema up to date.
func (s *Store) prepare(ctx context.Context) error {
	call := func(f func(ctx context.Context) error) error { return s.call(ctx, "open", "", repeatable, f) }
	if err := call(s.look); err != nil {
		return err
	}
	if err := s.migrate(ctx, baseSchema, baseMigrations()); err != nil {
		return err
	}
	if err := call(s.settled); err != nil || s.cfg.Vectors == VectorsOff {
		return err
	}
	if err := call(s.findExtension); err != nil || s.sql.extension == "" {
		return err
	}
	if err := s.migrate(ctx, vectorSchema, vectorMigrations()); err != nil {
		return err
	}
	s.vectors = &vectorStore{Store: s, sql: newVectorStatements(&s.sql)}
	return call(s.vectors.learn)
}

// look returns an error for a server that will not do.
func (s *Store) look(ctx context.Context) error {
	var version int
	var encoding string
	var language, standby bool
	err := s.main.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
		EXISTS (SELECT 1 FROM pg_catalog.pg_ts_config WHERE cfgname = $1 AND cfgnamespace = 'pg_catalog'::regnamespace),
		pg_is_in_recovery()`, s.cfg.Language).Scan(&version, &encoding, &language, &standby)
	switch {
	case err != nil:
		return err
	case version < oldest:
		return fmt.Errorf("the server has version %d, the oldest that will do is %d: %w", version/10000, oldest/10000, ErrSchema)
	case encoding != "UTF8":
		return fmt.Errorf("the database has encoding %s: make one with ENCODING 'UTF8': %w", encoding, ErrSchema)
	case !language:
		return fmt.Errorf("language: the server has no text search configuration %q: %w", s.cfg.Language, core.ErrInvalid)
	case standby:
		return fmt.Errorf("dsn: the server is a replica, which takes no writes: %w", core.ErrInvalid)
	}
	return nil
}

// findExtension finds or makes the extension. Where there is none it says so in the log, unless it has to be there.
func (s *Store) findExtension(ctx context.Context) error {
	have, err := s.extension(ctx)
	if err != nil {
		return err
	}
	if have == "" {
		why := "the server does not offer the extension vector: install pgvector"
		var offered bool
		err := s.main.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'vector')").Scan(&offered)
		if err != nil {
			return err
		}
		if offered {
			why = "the extension vector is not created and the user may not: have an administrator run CREATE EXTENSION vector"
			_, err = s.main.Exec(ctx, "CREATE EXTENSION vector")
			if f := (*failure)(nil); err != nil {
				f = describe(err)
				if f.undone || f.doubt {
					return f
				}
			}
			// Another process may have been first.
			if have, err = s.extension(ctx); err != nil {
				return err
			}
		}
		if have == "" && s.cfg.Vectors == VectorsOn {
			return fmt.Errorf("vectors: %s: %w", why, errors.ErrUnsupported)
		}
		if have == "" {
			s.log.InfoContext(ctx, "store keeps no vectors", "reason", why)
			return nil
		}
	}
	s.sql.extension = quoted(have)
	return nil
}

// extension returns the schema that the extension was created in, "" when it was not.
func (s *Store) extension(ctx context.Context) (string, error) {
	var schema string
	err := s.main.QueryRow(ctx, `SELECT coalesce((SELECT n.nspname::text FROM pg_catalog.pg_extension e
		JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'), '')`).Scan(&schema)
	return schema, err
}
