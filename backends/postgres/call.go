package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The waits between two tries of a call.
const (
	minWait = 50 * time.Millisecond
	maxWait = 2 * time.Second
)

// repeat says when a call that failed may be made again.
type repeat int

const (
	// certain: only when the server certainly did nothing.
	certain repeat = iota
	// repeatable: also when that is not known, because doing it twice is as good as once.
	repeatable
)

// call runs f, within the store's timeout, and again while its failure may mend itself. The error names the operation.
func (s *Store) call(ctx context.Context, op, id string, again repeat, f func(ctx context.Context) error) error {
	if err := s.enter(ctx); err != nil {
		return wrap(op, id, err)
	}
	defer s.leave()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	return wrap(op, id, s.attempts(ctx, limited, op, again, f))
}

// patient is call for what takes the time that it needs: ctx alone ends it.
func (s *Store) patient(ctx context.Context, op string, f func(ctx context.Context) error) error {
	if err := s.enter(ctx); err != nil {
		return wrap(op, "", err)
	}
	defer s.leave()
	return wrap(op, "", s.attempts(ctx, ctx, op, repeatable, f))
}

// attempts returns an error that can be shown. limited ends earlier than ctx, by the store's own choice.
func (s *Store) attempts(ctx, limited context.Context, op string, again repeat, f func(ctx context.Context) error) error {
	for n := 0; ; n++ {
		err := f(limited)
		if err == nil {
			return nil
		}
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		failed := describe(err)
		if limited.Err() != nil {
			return timedOut(s.cfg.Timeout)
		}
		if failed.lost {
			// The other connections are most likely as broken as this one was.
			s.main.Reset()
		}
		if !failed.again(again) || n >= s.cfg.MaxRetries {
			return failed
		}
		s.log.DebugContext(ctx, "call is repeated", "operation", op, "try", n+1, "error", failed)
		wait := min(minWait<<n, maxWait)
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-timer.C:
		case <-limited.Done():
			timer.Stop()
			if ended := ctx.Err(); ended != nil {
				return ended
			}
			return failed
		}
	}
}

// durable makes the commit of its transaction wait for the disk where the server's settings would not.
const durable = "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"

// batch sends statements in one round trip, which makes them one transaction: the server commits when it has done all of them, and does
// none when one fails. results reads the answers, which follow that of durable.
func (s *Store) batch(ctx context.Context, b *pgx.Batch, results func(r pgx.BatchResults) error) error {
	whole := &pgx.Batch{}
	whole.Queue(durable)
	whole.QueuedQueries = append(whole.QueuedQueries, b.QueuedQueries...)
	r := s.main.SendBatch(ctx, whole)
	_, err := r.Exec()
	if err == nil {
		err = results(r)
	}
	// Close reports what went wrong at the commit.
	return errors.Join(err, r.Close())
}

// exec is batch for statements of which only the last one's count is wanted.
func (s *Store) exec(ctx context.Context, b *pgx.Batch) (int64, error) {
	var tag pgconn.CommandTag
	err := s.batch(ctx, b, func(r pgx.BatchResults) (err error) {
		for range b.QueuedQueries {
			if tag, err = r.Exec(); err != nil {
				return err
			}
		}
		return nil
	})
	return tag.RowsAffected(), err
}

// transact runs f in a transaction of several round trips.
func (s *Store) transact(ctx context.Context, f func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.main, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, durable); err != nil {
			return err
		}
		return f(tx)
	})
}
