package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// ScanVectors implements vector.Store, in the order in which the entries were appended.
func (s *Store) ScanVectors(ctx context.Context, q vector.Query) (vector.Page, error) {
	if q.Agent == "" || q.Space == "" {
		return vector.Page{}, fmt.Errorf("sqlite: scan vectors: agent or space is empty: name both: %w", core.ErrInvalid)
	}
	if err := core.CheckLimit("sqlite: scan vectors", q.Limit); err != nil {
		return vector.Page{}, err
	}
	n, part := int64(math.MinInt64), int64(0)
	if q.Cursor != "" {
		m, err := parseMark(q.Cursor, false)
		if err != nil {
			return vector.Page{}, err
		}
		n, part = m.seq, m.n
	}
	var page vector.Page
	err := s.read(ctx, "scan vectors", q.Space, func(tx *sql.Tx) (err error) {
		page, err = s.vectors(ctx, tx, q, n, part)
		return err
	})
	if err != nil {
		return vector.Page{}, err
	}
	return page, nil
}

func (s *Store) vectors(ctx context.Context, tx *sql.Tx, q vector.Query, n, part int64) (vector.Page, error) {
	var page vector.Page
	var space int64
	var dimensions int
	err := s.scanned(tx.QueryRowContext(ctx, "SELECT id, dimensions FROM spaces WHERE name = ?", q.Space).Scan(&space, &dimensions))
	if errors.Is(err, core.ErrNotFound) {
		return page, nil
	}
	if err != nil {
		return page, err
	}
	rows, err := tx.StmtContext(ctx, s.r.vectors).QueryContext(ctx, s.owner(q.Agent), space, n, part, q.Limit+1)
	if err != nil {
		return page, err
	}
	defer rows.Close()
	for rows.Next() {
		if len(page.Vectors) == q.Limit {
			page.Next = mark{seq: n, n: part}.cursor(false)
			break
		}
		var v vector.Vector
		var hash, sum int64
		var body sql.RawBytes
		var id storedID
		if err := s.scanned(rows.Scan(&n, &v.Part, &v.Start, &v.End, &hash, &body, &sum, &id)); err != nil {
			return page, err
		}
		v.ID, v.Hash, part = string(id), uint64(hash), int64(v.Part)
		if sum != vectorSum(q.Space, &v, body) || len(body) != 4*dimensions {
			return page, s.damaged("a vector of entry %q does not match its checksum", v.ID)
		}
		v.Values = unpackFloats(body)
		page.Vectors = append(page.Vectors, v)
	}
	return page, rows.Err()
}

// verifyVectors reads all vectors.
func (s *Store) verifyVectors(ctx context.Context, tx *sql.Tx) error {
	agents, err := column(ctx, tx, "SELECT DISTINCT agent FROM scopes ORDER BY agent")
	if err != nil {
		return err
	}
	spaces, err := column(ctx, tx, "SELECT name FROM spaces ORDER BY name")
	if err != nil {
		return err
	}
	found := 0
	for _, agent := range agents {
		for _, space := range spaces {
			n, part := int64(math.MinInt64), int64(0)
			for more := true; more; {
				if err := s.stopped(ctx); err != nil {
					return err
				}
				page, err := s.vectors(ctx, tx, vector.Query{Agent: agent, Space: space, Limit: core.MaxPage}, n, part)
				if err != nil {
					return err
				}
				found += len(page.Vectors)
				if more = page.Next != ""; more {
					m, err := parseMark(page.Next, false)
					if err != nil {
						return err
					}
					n, part = m.seq, m.n
				}
			}
		}
	}
	var all int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM vectors").Scan(&all); err != nil {
		return err
	}
	if all != found {
		return s.damaged("%d of %d vectors are of no agent or space", all-found, all)
	}
	return nil
}
