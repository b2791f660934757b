package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
	"github.com/contextengine/contextengine/internal/packed"
)

var _ vector.Store = (*Store)(nil)

// maxDimensions bounds the length of a vector.
const maxDimensions = 1 << 16

// PutVectors implements vector.Store, in one transaction. Vectors are derived from entries: Export leaves them out, and they go when
// their entry's message or type is changed.
func (s *Store) PutVectors(ctx context.Context, space string, vectors []vector.Vector) error {
	if err := validVectors(space, vectors); err != nil {
		return err
	}
	return s.write(ctx, "put vectors", space, func(tx *sql.Tx) error {
		if len(vectors) == 0 {
			return nil
		}
		quiet := context.WithoutCancel(ctx)
		number, err := s.ensureSpace(quiet, tx, space, len(vectors[0].Values))
		if err != nil {
			return err
		}
		owned, add := tx.StmtContext(quiet, s.w.owned), tx.StmtContext(quiet, s.w.addVector)
		owners := map[string]int64{}
		for i := range vectors {
			if err := ctx.Err(); err != nil {
				return err
			}
			v := &vectors[i]
			var n int64
			var agent string
			err := s.scanned(owned.QueryRowContext(quiet, shortID(v.ID)).Scan(&n, &agent))
			if errors.Is(err, core.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			owner, ok := owners[agent]
			if !ok {
				owner = s.owner(agent)
				owners[agent] = owner
			}
			body := packFloats(v.Values)
			_, err = add.ExecContext(quiet, owner, number, n, v.Part, v.Start, v.End, int64(v.Hash), body, vectorSum(space, v, body))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func validVectors(space string, vectors []vector.Vector) error {
	if space == "" {
		return fmt.Errorf("sqlite: put vectors: space is empty: name model and dimensions: %w", core.ErrInvalid)
	}
	for i := range vectors {
		n := len(vectors[i].Values)
		if n != len(vectors[0].Values) || n == 0 || n > maxDimensions {
			return fmt.Errorf("sqlite: put vectors %q: entry %q has %d values, the first %d: they must be as many, 1 to %d: %w", space,
				vectors[i].ID, n, len(vectors[0].Values), maxDimensions, core.ErrInvalid)
		}
	}
	return nil
}

// ensureSpace returns the number of a space. One that holds nothing takes any dimensions.
func (s *Store) ensureSpace(ctx context.Context, tx *sql.Tx, name string, dimensions int) (int64, error) {
	var number int64
	var has int
	err := s.scanned(tx.StmtContext(ctx, s.w.space).QueryRowContext(ctx, name).Scan(&number, &has))
	if errors.Is(err, core.ErrNotFound) {
		res, err := tx.StmtContext(ctx, s.w.addSpace).ExecContext(ctx, name, dimensions)
		if err != nil {
			return 0, err
		}
		return res.LastInsertId()
	}
	if err != nil || has == dimensions {
		return number, err
	}
	var used int
	if err := s.scanned(tx.StmtContext(ctx, s.w.hasVectors).QueryRowContext(ctx, number).Scan(&used)); err != nil {
		return 0, err
	}
	if used > 0 {
		return 0, fmt.Errorf("the vectors of the space have %d dimensions, not %d: %w", has, dimensions, core.ErrInvalid)
	}
	_, err = tx.StmtContext(ctx, s.w.sizeSpace).ExecContext(ctx, dimensions, number)
	return number, err
}

// VectorSpaces implements vector.Store. It reads an index of all vectors.
func (s *Store) VectorSpaces(ctx context.Context, agent string) ([]vector.Space, error) {
	var out []vector.Space
	err := s.read(ctx, "vector spaces", agent, func(tx *sql.Tx) error {
		out = nil
		// Vectors of one entry stand next to each other in the index, and so do those of one space and owner.
		rows, err := tx.QueryContext(ctx, `SELECT p.name, p.dimensions, count(*) FROM
			(SELECT DISTINCT owner, space, n FROM vectors WHERE ?1 = '' OR owner = ?2) v JOIN spaces p ON p.id = v.space
			GROUP BY p.id ORDER BY p.name`, agent, s.owner(agent))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var sp vector.Space
			if err := s.scanned(rows.Scan(&sp.Name, &sp.Dimensions, &sp.Entries)); err != nil {
				return err
			}
			out = append(out, sp)
		}
		return rows.Err()
	})
	return out, err
}

// DropVectors implements vector.Store. An empty agent stands for all of them.
func (s *Store) DropVectors(ctx context.Context, space, agent string) error {
	err := s.write(ctx, "drop vectors", space, func(tx *sql.Tx) error {
		quiet := context.WithoutCancel(ctx)
		_, err := tx.ExecContext(quiet, `DELETE FROM vectors WHERE space IN (SELECT id FROM spaces WHERE name = ?1) AND (?2 = '' OR owner = ?3)`,
			space, agent, s.owner(agent))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(quiet, "DELETE FROM spaces WHERE name = ? AND NOT EXISTS (SELECT 1 FROM vectors WHERE space = spaces.id)", space)
		return err
	})
	if err == nil {
		s.forget(ctx)
	}
	return err
}

// vectorSum covers a vector, its entry and its space.
func vectorSum(space string, v *vector.Vector, body []byte) int64 {
	table := crc32.MakeTable(crc32.Castagnoli)
	p := packed.Writer{B: make([]byte, 0, 128)}
	p.Str(space)
	p.Str(v.ID)
	for _, n := range []int64{int64(v.Part), int64(v.Start), int64(v.End), int64(v.Hash)} {
		p.Int(n)
	}
	return int64(crc32.Update(crc32.Checksum(p.B, table), table, body))
}

func packFloats(values []float32) []byte {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func unpackFloats(b []byte) []float32 {
	values := make([]float32, len(b)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return values
}
