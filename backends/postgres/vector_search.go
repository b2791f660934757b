package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pgvector/pgvector-go"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// SearchVectors implements vector.Searcher. Up to Config.ExactVectors of the agent are compared one by one; with more, and an
// index made by Store.IndexVectors, the index is asked, which may miss some. A space that is not there has no hits. Vectors without direction (all
// zeros) are never found.
func (v *vectorStore) SearchVectors(ctx context.Context, space string, vec []float32, q core.SearchQuery) ([]core.Hit, error) {
	if err := validSearch("search vectors", q); err != nil {
		return nil, err
	}
	if err := validVectors(space, []vector.Vector{{Values: vec}}); err != nil {
		return nil, err
	}
	return v.hits(ctx, "search vectors", q, func(ctx context.Context, pool *pgxpool.Pool, limit int) (best []ranked, err error) {
		err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			text, args, err := v.nearest(ctx, tx, space, vec, q, limit)
			if err != nil || text == "" {
				return err
			}
			rows, err := tx.Query(ctx, text, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
			if err != nil {
				return err
			}
			best, err = pgx.CollectRows(rows, scanRanked)
			return err
		})
		return best, err
	})
}

// nearest returns the statement that searches a space and its arguments, "" when there is nothing to search.
func (v *vectorStore) nearest(
	ctx context.Context, tx pgx.Tx, space string, vec []float32, q core.SearchQuery, limit int,
) (text string, args []any, err error) {
	var number, dimensions, n int
	err = tx.QueryRow(ctx, v.sql.space, []byte(space)).Scan(&number, &dimensions)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	if dimensions != len(vec) {
		return "", nil, fmt.Errorf("the space holds vectors of %d dimensions, not %d: %w", dimensions, len(vec), core.ErrInvalid)
	}
	agent, value := []byte(q.Scope.Agent), pgvector.NewVector(vec).String()
	from, to := bounds(q)
	exact := []any{agent, number, value, session(q.Scope), from, to, int64(limit)}
	if q.Scope.Session != "" || from != nil || to != nil {
		return v.sql.exact, exact, nil // the index knows nothing of sessions and times
	}
	if err := tx.QueryRow(ctx, v.sql.count, agent, number, int64(v.cfg.ExactVectors)+1).Scan(&n); err != nil {
		return "", nil, err
	}
	if n <= v.cfg.ExactVectors {
		return v.sql.exact, exact, nil
	}
	indexed, err := v.indexed(ctx, tx, number)
	if err != nil {
		return "", nil, err
	}
	if !indexed {
		if !v.hinted.Swap(true) {
			v.log.InfoContext(ctx, "vectors are searched without an index", "space", space, "remedy", "IndexVectors")
		}
		return v.sql.exact, exact, nil
	}
	settings := fmt.Sprintf("SET LOCAL hnsw.ef_search = %d", min(max(4*limit, 40), 1000))
	if v.iterates {
		// What lies in between belongs to other agents: the index goes on until it has enough.
		settings += "; SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.max_scan_tuples = 200000"
	}
	_, err = tx.Exec(ctx, settings)
	return v.nearText(number, dimensions), []any{agent, value, int64(limit)}, err
}

// indexed reports whether a space has an index that can be used.
func (v *vectorStore) indexed(ctx context.Context, q querier, space int) (bool, error) {
	var valid bool
	err := q.QueryRow(ctx, `SELECT coalesce(bool_and(i.indisvalid), false) FROM pg_catalog.pg_index i
		WHERE i.indexrelid = to_regclass($1::text)`, v.Store.sql.schema+"."+indexName(space)).Scan(&valid)
	return valid, err
}

// IndexVectors makes the index (HNSW, cosine) of a space, unless there is one. Make it after the vectors were loaded: filling an index bit by bit
// takes longer. It does not keep others from writing, except with Config.Partitions, and takes as long as it takes: only ctx ends it. Above 2000
// dimensions the index holds the vectors in half precision. It is errors.ErrUnsupported when the server keeps no vectors, or above
// 4000 dimensions.
func (s *Store) IndexVectors(ctx context.Context, space string) error {
	const op = "index vectors"
	if err := s.enter(ctx); err != nil {
		return wrap(op, space, err)
	}
	defer s.leave()
	if s.vectors == nil {
		return wrap(op, space, errors.ErrUnsupported)
	}
	err := s.vectors.index(ctx, space)
	if ended := ctx.Err(); err != nil && ended != nil {
		err = ended
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) && ctx.Err() == nil {
		err = describe(err)
	}
	return wrap(op, space, err)
}

func (v *vectorStore) index(ctx context.Context, space string) error {
	var number, dimensions int
	err := v.main.QueryRow(ctx, v.sql.space, []byte(space)).Scan(&number, &dimensions)
	if err != nil {
		return err
	}
	if dimensions > maxIndexedHalf {
		return fmt.Errorf("%d dimensions, an index holds up to %d: %w", dimensions, maxIndexedHalf, errors.ErrUnsupported)
	}
	conn, err := v.main.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if done, err := v.indexed(ctx, conn, number); err != nil || done {
		return err
	}
	// A connection of its own without the limit for statements; behind a pooler the server's limit holds.
	if !v.cfg.Pooler {
		if _, err := conn.Exec(ctx, "SET statement_timeout = 0"); err != nil {
			return err
		}
		// The pool must not hand on a connection with other settings.
		defer func() { _ = conn.Conn().Close(context.WithoutCancel(ctx)) }()
		// Waiting for the lock would keep the one who holds it waiting for us.
		var mine bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", v.lock("index/"+space)).Scan(&mine); err != nil {
			return err
		}
		if !mine {
			return fmt.Errorf("another process is making the index: %w", core.ErrUnavailable)
		}
	}
	// What is left of an attempt that failed is in the way.
	for _, text := range []string{dropIndex, createIndex} {
		if _, err := conn.Exec(ctx, v.indexText(text, number, dimensions)); err != nil {
			return err
		}
	}
	return nil
}

// learn finds out what the extension's version can do.
func (v *vectorStore) learn(ctx context.Context) error {
	var version string
	if err := v.main.QueryRow(ctx, "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector'").Scan(&version); err != nil {
		return err
	}
	var major, minor int
	// A version of another form can do less.
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	v.iterates = major > 0 || minor >= 8
	return nil
}
