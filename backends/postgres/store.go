package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// Store keeps entries and views in a PostgreSQL server. Make one with Open; it is safe for concurrent use, and so are several of them, on
// any machines, over the same tables. The pool of connections keeps goroutines of its own, which Close stops.
type Store struct {
	cfg Config
	log *slog.Logger
	sql statements

	main *pgxpool.Pool
	// replica is nil when there is none.
	replica *pgxpool.Pool
	// identity tells this store's tables from those of any other, in marks.
	identity string
	// vectors is nil when the server has no extension for them.
	vectors *vectorStore
	// partitions is how the tables were made.
	partitions int

	// open is held for reading by every call, so that Close waits for those that run.
	open   sync.RWMutex
	closed bool
	// lagging is set while the replica cannot be used, so that this is logged once.
	lagging atomic.Bool
}

var (
	_ core.Store      = (*Store)(nil)
	_ core.ViewStore  = (*Store)(nil)
	_ core.Tailer     = (*Store)(nil)
	_ core.Searcher   = (*Store)(nil)
	_ core.ChangeFeed = (*Store)(nil)
	_ upkeep.Statter  = (*Store)(nil)
	_ core.Pinger     = (*Store)(nil)
	_ core.Unwrapper  = (*Store)(nil)
)

// Option sets what no configuration file can hold.
type Option func(*Store)

// WithLogger sets the logger; without it nothing is logged. Contents and addresses are never logged.
func WithLogger(l *slog.Logger) Option { return func(s *Store) { s.log = l } }

// Unwrap returns the side of the store that keeps vectors, for core.As to find; nil when the server cannot keep them.
func (s *Store) Unwrap() core.Store {
	if s.vectors == nil {
		return nil
	}
	return s.vectors
}

// Ping implements core.Pinger: it asks the server for something in the store's schema.
func (s *Store) Ping(ctx context.Context) error {
	return s.call(ctx, "ping", "", repeatable, func(ctx context.Context) error {
		var n int
		return s.main.QueryRow(ctx, s.sql.ping).Scan(&n)
	})
}

// Close implements core.Store. It waits for calls that run.
func (s *Store) Close() error {
	s.open.Lock()
	defer s.open.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.disconnect()
	return nil
}

func (s *Store) disconnect() {
	s.main.Close()
	if s.replica != nil {
		s.replica.Close()
	}
}

// enter begins a call. It is followed by leave when it returns nil.
func (s *Store) enter(ctx context.Context) error {
	s.open.RLock()
	err := ctx.Err()
	if s.closed {
		err = core.ErrClosed
	}
	if err != nil {
		s.open.RUnlock()
	}
	return err
}

func (s *Store) leave() { s.open.RUnlock() }

// session is the name to compare with, nil for all of an agent's sessions.
func session(scope core.Scope) []byte {
	if scope.Session == "" {
		return nil
	}
	return []byte(scope.Session)
}
