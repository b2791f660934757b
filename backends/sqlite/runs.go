package sqlite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/packed"
)

// run says that all entries with numbers from first to last are of one agent. Runs of an agent do not overlap.
type run struct{ owner, first, last int64 }

func (r run) checksum() int64 {
	var p packed.Writer
	for _, n := range []int64{r.owner, r.first, r.last} {
		p.Int(n)
	}
	return int64(crc32.Checksum(p.B, crc32.MakeTable(crc32.Castagnoli)))
}

// longTail is the number of entries from which those that are in no run yet are put into runs: so appends need not write runs, and who
// follows an agent need not look at many entries of others.
const longTail = 256

// transaction is an *sql.Tx, or an *sql.Conn on which one has begun.
type transaction interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// cover puts the newest entries into runs when there are many. Who calls it is about to commit.
func (s *Store) cover(ctx context.Context, tx transaction, next int64) error {
	if next-s.covered <= s.tail {
		return nil
	}
	is, err := s.readIdentity(tx.QueryRowContext(ctx, selectIdentity))
	if err != nil {
		return err
	}
	s.covered = is.covered
	if next-s.covered <= s.tail {
		return nil // another process did it
	}
	return s.coverFrom(ctx, tx, is)
}

// coverFrom puts the entries behind is.covered into runs.
func (s *Store) coverFrom(ctx context.Context, tx transaction, is identity) error {
	runs, err := s.newRuns(ctx, tx, is)
	if err != nil || len(runs) == 0 {
		return err
	}
	// The last entry that is covered may be of the same agent as the first one that is not.
	r := &runs[0]
	before := run{owner: r.owner}
	err = s.scanned(tx.QueryRowContext(ctx, "SELECT first, last FROM runs WHERE owner = ? ORDER BY first DESC LIMIT 1", r.owner).
		Scan(&before.first, &before.last))
	switch {
	case err == nil && before.last == is.covered:
		r.first = before.first
	case err != nil && !errors.Is(err, core.ErrNotFound):
		return err
	}
	insert, err := tx.PrepareContext(ctx, "INSERT OR REPLACE INTO runs (owner, first, last, sum) VALUES (?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, r := range runs {
		if _, err := insert.ExecContext(ctx, r.owner, r.first, r.last, r.checksum()); err != nil {
			return err
		}
	}
	is.covered = runs[len(runs)-1].last
	s.covered = is.covered
	return is.write(ctx, tx)
}

// newRuns returns the runs of the entries behind is.covered. What is gone between two entries of an agent does not part them.
func (s *Store) newRuns(ctx context.Context, tx transaction, is identity) ([]run, error) {
	rows, err := tx.QueryContext(ctx, "SELECT e.n, s.agent FROM entries e LEFT JOIN scopes s ON s.id = e.scope WHERE e.n > ? ORDER BY e.n", is.covered)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var runs []run
	last := ""
	for rows.Next() {
		var n int64
		var agent sql.NullString
		if err := s.scanned(rows.Scan(&n, &agent)); err != nil {
			return nil, err
		}
		if !agent.Valid {
			return nil, s.damaged("the entry with number %d is of no session", n)
		}
		if len(runs) == 0 || agent.String != last {
			runs = append(runs, run{owner: is.owner(agent.String), first: n})
		}
		runs[len(runs)-1].last, last = n, agent.String
	}
	return runs, rows.Err()
}

// identity tells files apart, also copies made by Backup, and says how far their runs go.
type identity struct {
	id      []byte
	covered int64
}

// identitySize is the number of random bytes of an identity.
const identitySize = 16

const selectIdentity = "SELECT id, covered, sum FROM identity WHERE one = 1"

// identify gives the file a new identity and makes its runs: marks of the feed that were made before are not good any more.
func (s *Store) identify(ctx context.Context, tx *sql.Tx) error {
	is := identity{id: make([]byte, identitySize)}
	if _, err := rand.Read(is.id); err != nil {
		return err
	}
	if err := is.write(ctx, tx); err != nil {
		return err
	}
	s.identity = is.id
	return s.coverFrom(ctx, tx, is)
}

func (is identity) write(ctx context.Context, tx transaction) error {
	_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO identity (one, id, covered, sum) VALUES (1, ?, ?, ?)", is.id, is.covered, is.checksum())
	return err
}

func (is identity) checksum() int64 {
	p := packed.Writer{}
	p.Bytes(is.id)
	p.Int(is.covered)
	return int64(crc32.Checksum(p.B, crc32.MakeTable(crc32.Castagnoli)))
}

// owner returns the number that stands for an agent in runs, changes and vectors: it differs from file to file, and says nothing of the name.
func (is identity) owner(agent string) int64 {
	h := sha256.New()
	h.Write(is.id)
	h.Write([]byte(agent))
	return int64(binary.BigEndian.Uint64(h.Sum(nil)) >> 1)
}

// owner returns the number that stands for an agent in this file.
func (s *Store) owner(agent string) int64 { return identity{id: s.identity}.owner(agent) }

// readIdentity reads the result of selectIdentity, and what else is selected behind it.
func (s *Store) readIdentity(row scanner, more ...any) (identity, error) {
	var is identity
	var sum int64
	err := s.scanned(row.Scan(append([]any{&is.id, &is.covered, &sum}, more...)...))
	if errors.Is(err, core.ErrNotFound) || err == nil && (len(is.id) != identitySize || sum != is.checksum()) {
		return identity{}, s.damaged("the file's identity is not what was written")
	}
	return is, err
}
