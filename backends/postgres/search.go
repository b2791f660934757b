package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/contextengine/contextengine/core"
)

// Search implements core.Searcher with the server's text search. Every word of the query is optional; a word counts the more the fewer of
// the scope's entries have it, and the shorter the entry. What stands next to an entry that matches well counts a little for it, because
// an answer is found by the words of its question.
//
// Words are reduced to their stems by the rules of Config.Language, in entries as in queries, and its stop words count nothing. Scripts that put
// no spaces between words (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) are searched by pairs of neighbouring characters: what is
// written with the same characters is found, also inside of longer words, whatever the server's extensions and collation; segmentation
// into words, other spellings of the same word, and single characters of longer texts are not. An identifier such as a path or
// snake_case name is searched by the words it is made of. A day is found by its number, month in English, and year. Words behind the first 300 KiB of an entry are not found.
func (s *Store) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if err := validSearch("search", q); err != nil {
		return nil, err
	}
	from, to := bounds(q)
	text := plainWords(q.Text[:min(len(q.Text), maxQuery)])
	return s.hits(ctx, "search", q, func(ctx context.Context, pool *pgxpool.Pool, limit int) ([]ranked, error) {
		// The unnamed statement is planned for these very words.
		rows, err := pool.Query(ctx, s.sql.rank, pgx.QueryExecModeCacheDescribe, []byte(q.Scope.Agent), text, mark(q.Scope.Agent),
			session(q.Scope), from, to, limit)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, scanRanked)
	})
}

// maxQuery bounds the part of a query's text that is used, in bytes.
const maxQuery = 16 << 10

func validSearch(op string, q core.SearchQuery) error {
	if err := q.Scope.Check("postgres: " + op); err != nil {
		return err
	}
	if q.Limit < 1 {
		return fmt.Errorf("postgres: %s: limit %d: must be at least 1: %w", op, q.Limit, core.ErrInvalid)
	}
	return nil
}

// bounds returns the asked time as the column holds it, nil for unbounded. What lies within a microsecond of it is looked at again.
func bounds(q core.SearchQuery) (from, to *time.Time) {
	if !q.From.IsZero() {
		t := q.From.UTC().Truncate(time.Microsecond)
		from = &t
	}
	if !q.To.IsZero() {
		t := q.To.UTC().Truncate(time.Microsecond).Add(time.Microsecond)
		to = &t
	}
	return from, to
}

// ranked is an id with its score.
type ranked struct {
	id    string
	score float64
}

func scanRanked(from pgx.CollectableRow) (ranked, error) {
	var id []byte
	var score float64
	err := from.Scan(&id, &score)
	return ranked{id: string(id), score: score}, err
}

// ranker returns at most limit entries, best first.
type ranker func(ctx context.Context, pool *pgxpool.Pool, limit int) ([]ranked, error)

// hits has rank give the best entries, takes out those that are not wanted, asks for more when too few are left, and reads what
// they say.
func (s *Store) hits(
	ctx context.Context, op string, q core.SearchQuery, rank ranker,
) ([]core.Hit, error) {
	var out []core.Hit
	err := s.call(ctx, op, "", repeatable, func(ctx context.Context) error {
		for limit := q.Limit + spare; ; limit *= 4 {
			best, err := s.rank(ctx, limit, rank)
			if err != nil {
				return err
			}
			if out, err = s.read(ctx, q, best); err != nil {
				return err
			}
			if len(out) == q.Limit || len(best) < limit {
				return nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// spare is how many more hits are asked for than wanted, as some may be excluded.
const spare = 32

// rank asks the replica, if there is one, and the main server when it does not answer.
func (s *Store) rank(ctx context.Context, limit int, rank ranker) ([]ranked, error) {
	if s.replica == nil {
		return rank(ctx, s.main, limit)
	}
	best, err := rank(ctx, s.replica, limit)
	if err == nil {
		s.lagging.Store(false)
		return best, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	if !s.lagging.Swap(true) {
		s.log.WarnContext(ctx, "read replica cannot be used, searches go to the main server", "error", describe(err))
	}
	return rank(ctx, s.main, limit)
}

// read returns the wanted ones of the ranked entries as they are now, from the main server.
func (s *Store) read(ctx context.Context, q core.SearchQuery, best []ranked) ([]core.Hit, error) {
	best = slices.DeleteFunc(best, func(r ranked) bool { return q.Exclude != nil && q.Exclude(r.id) })
	var out []core.Hit
	for len(out) < q.Limit && len(best) > 0 {
		some := best[:min(len(best), q.Limit-len(out))]
		best = best[len(some):]
		ids := make([]string, len(some))
		for i, r := range some {
			ids[i] = r.id
		}
		found, err := s.find(ctx, s.main, s.sql.get, q.Scope, ids)
		if err != nil {
			return nil, err
		}
		for _, r := range some {
			e, ok := found[r.id]
			if !ok || e.Type == core.TypeHeartbeat || e.Type == core.TypeErased || !q.From.IsZero() && e.Time.Before(q.From) ||
				!q.To.IsZero() && !e.Time.Before(q.To) {
				continue
			}
			out = append(out, core.Hit{Entry: e, Score: r.score})
		}
	}
	return out, nil
}
