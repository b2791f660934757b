package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"hash/crc32"
	"math/rand/v2"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/packed"
)

// changeRow is a change or deletion of the entry with number entry. token is a random number: after a backup was put back, numbers are given
// anew. Without an id it is a wall: the changes of the agent up to it were pruned.
type changeRow struct {
	n, entry, token, sum int64
	id                   sql.NullString
}

const changeColumns = "n, id, entry, token, sum"

func (c *changeRow) scan(from interface{ Scan(...any) error }) error {
	return from.Scan(&c.n, &c.id, &c.entry, &c.token, &c.sum)
}

func (c *changeRow) checksum(owner int64) int64 {
	var p packed.Writer
	for _, n := range []int64{owner, c.n, c.entry, c.token} {
		p.Int(n)
	}
	p.Str(c.id.String)
	return int64(crc32.Checksum(p.B, crc32.MakeTable(crc32.Castagnoli)))
}

func (c *changeRow) verify(s *Store, owner int64) error {
	if c.sum != c.checksum(owner) {
		return s.damaged("change %d of entry %q does not match its checksum", c.n, c.id.String)
	}
	return nil
}

// nextNumber returns the number of what happens next. Who asks has the write lock.
func (s *Store) nextNumber(ctx context.Context, tx *sql.Tx) (int64, error) {
	var n int64
	err := s.scanned(tx.StmtContext(ctx, s.w.next).QueryRowContext(ctx).Scan(&n))
	return n, err
}

// recordChange says that the entry at number entry was changed or deleted, as what happens at number n.
func (s *Store) recordChange(ctx context.Context, tx *sql.Tx, owner, n int64, id string, entry int64) error {
	c := changeRow{n: n, id: sql.NullString{String: id, Valid: true}, entry: entry, token: 1 + rand.Int64N(1<<31)}
	return s.addChange(ctx, tx, owner, &c)
}

func (s *Store) addChange(ctx context.Context, tx *sql.Tx, owner int64, c *changeRow) error {
	_, err := tx.StmtContext(ctx, s.w.addChange).ExecContext(ctx, c.n, owner, c.id, c.entry, c.token, c.checksum(owner))
	return err
}

// keepChanges is the number of changes and deletions that survive Vacuum.
const keepChanges = 100_000

// prune forgets the oldest changes and leaves a wall in front of those that stay.
func (s *Store) prune(ctx context.Context, keep int) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		quiet := context.WithoutCancel(ctx)
		var cut int64
		err := s.scanned(tx.QueryRowContext(quiet, "SELECT n FROM changes ORDER BY n DESC LIMIT 1 OFFSET ?", keep).Scan(&cut))
		if errors.Is(err, core.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		walls, err := s.walls(quiet, tx, cut)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(quiet, "DELETE FROM changes WHERE n <= ?", cut); err != nil {
			return err
		}
		for owner, n := range walls {
			if err := s.addChange(quiet, tx, owner, &changeRow{n: n}); err != nil {
				return err
			}
		}
		return nil
	})
}

// walls returns, for each owner, the number of its newest change up to cut.
func (s *Store) walls(ctx context.Context, tx *sql.Tx, cut int64) (map[int64]int64, error) {
	rows, err := tx.QueryContext(ctx, "SELECT owner, max(n) FROM changes WHERE n <= ? GROUP BY owner", cut)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	walls := map[int64]int64{}
	for rows.Next() {
		var owner, n int64
		if err := s.scanned(rows.Scan(&owner, &n)); err != nil {
			return nil, err
		}
		walls[owner] = n
	}
	return walls, rows.Err()
}
