package postgres

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// vectorStore is the side of a Store that keeps vectors. core.As finds it when the server has the extension.
type vectorStore struct {
	*Store
	sql vectorStatements
	// iterates says that an index can go on searching where a filter left too little.
	iterates bool
	// hinted is set when a missing index was logged.
	hinted atomic.Bool
}

var (
	_ vector.Store    = (*vectorStore)(nil)
	_ vector.Searcher = (*vectorStore)(nil)
)

// Unwrap returns nil: a Store shows its vectorStore, which has nothing further inside.
func (v *vectorStore) Unwrap() core.Store { return nil }

// maxDimensions is the longest vector that the extension stores.
const maxDimensions = 16000

// PutVectors implements vector.Store. It is atomic.
func (v *vectorStore) PutVectors(ctx context.Context, space string, vectors []vector.Vector) error {
	if err := validVectors(space, vectors); err != nil {
		return err
	}
	return v.call(ctx, "put vectors", space, repeatable, func(ctx context.Context) error {
		if len(vectors) == 0 {
			return nil
		}
		dimensions := len(vectors[0].Values)
		return v.transact(ctx, func(tx pgx.Tx) error {
			number, err := v.ensureSpace(ctx, tx, space, dimensions)
			if err != nil {
				return err
			}
			owners, err := v.owners(ctx, tx, vectors)
			if err != nil {
				return err
			}
			b := &pgx.Batch{}
			for i := range vectors {
				x := &vectors[i]
				if agent, ok := owners[x.ID]; ok {
					b.Queue(v.sql.put, agent, []byte(x.ID), number, x.Part, x.Start, x.End, int64(x.Hash), pgvector.NewVector(x.Values).String())
				}
			}
			return tx.SendBatch(ctx, b).Close()
		})
	})
}

func validVectors(space string, vectors []vector.Vector) error {
	invalid := func(what string) error {
		return fmt.Errorf("postgres: put vectors %q: %s: %w", space, what, core.ErrInvalid)
	}
	if space == "" || len(space) > maxName {
		return invalid(fmt.Sprintf("the name of a space is 1 to %d bytes", maxName))
	}
	for i := range vectors {
		x := &vectors[i]
		switch {
		case len(x.Values) == 0 || len(x.Values) > maxDimensions:
			return invalid(fmt.Sprintf("vector of %q has %d dimensions: 1 to %d can be stored", x.ID, len(x.Values), maxDimensions))
		case len(x.Values) != len(vectors[0].Values):
			return invalid(fmt.Sprintf("vector of %q has %d dimensions, others have %d", x.ID, len(x.Values), len(vectors[0].Values)))
		case x.Part < 0 || x.Part > math.MaxInt32 || x.Start < 0 || x.End > math.MaxInt32 || x.End < x.Start:
			return invalid(fmt.Sprintf("vector of %q: part, start or end is out of range", x.ID))
		}
		for _, f := range x.Values {
			if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
				return invalid(fmt.Sprintf("vector of %q holds a value that is no number", x.ID))
			}
		}
	}
	return nil
}

// ensureSpace returns the number of a space, a new one if there is none. A space that holds nothing may change its dimensions.
func (v *vectorStore) ensureSpace(ctx context.Context, tx pgx.Tx, space string, dimensions int) (int, error) {
	if _, err := tx.Exec(ctx, v.sql.addSpace, []byte(space), dimensions); err != nil {
		return 0, err
	}
	var number, have int
	// Holding the row keeps a space from being dropped while it is filled.
	if err := tx.QueryRow(ctx, v.sql.holdSpace, []byte(space)).Scan(&number, &have); err != nil {
		return 0, err
	}
	if have == dimensions {
		return number, nil
	}
	tag, err := tx.Exec(ctx, v.sql.resizeSpace, number, dimensions)
	if err != nil {
		return 0, err
	}
	if tag.RowsAffected() == 0 {
		return 0, fmt.Errorf("the space holds vectors of %d dimensions, not %d: %w", have, dimensions, core.ErrInvalid)
	}
	// The index is for the old dimensions.
	_, err = tx.Exec(ctx, v.indexText(dropIndex, number, 0))
	return number, err
}

// owners returns the agents of those entries that are there, and are one agent's alone.
func (v *vectorStore) owners(ctx context.Context, tx pgx.Tx, vectors []vector.Vector) (map[string][]byte, error) {
	var ids []string
	for i := range vectors {
		ids = append(ids, vectors[i].ID)
	}
	rows, err := tx.Query(ctx, v.sql.owners, names(ids))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	several := map[string]bool{}
	defer rows.Close()
	for rows.Next() {
		var id, agent []byte
		if err := rows.Scan(&id, &agent); err != nil {
			return nil, err
		}
		several[string(id)] = out[string(id)] != nil
		out[string(id)] = agent
	}
	for id, more := range several {
		if more {
			delete(out, id)
		}
	}
	return out, rows.Err()
}

// ScanVectors implements vector.Store. The order is by id and part.
func (v *vectorStore) ScanVectors(ctx context.Context, q vector.Query) (vector.Page, error) {
	if err := (core.Scope{Agent: q.Agent}).Check("postgres: scan vectors"); err != nil {
		return vector.Page{}, err
	}
	if err := core.CheckLimit("postgres: scan vectors", q.Limit); err != nil {
		return vector.Page{}, err
	}
	id, part, err := parseVectorCursor(q.Cursor)
	if err != nil {
		return vector.Page{}, err
	}
	var page vector.Page
	err = v.call(ctx, "scan vectors", q.Space, repeatable, func(ctx context.Context) error {
		page = vector.Page{}
		rows, err := v.main.Query(ctx, v.sql.scan, []byte(q.Agent), []byte(q.Space), id, part, int64(q.Limit)+1)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if len(page.Vectors) == q.Limit {
				last := page.Vectors[q.Limit-1]
				page.Next = vectorCursor(last.ID, last.Part)
				break
			}
			var x vector.Vector
			var id []byte
			var hash int64
			if err := rows.Scan(&id, &x.Part, &x.Start, &x.End, &hash, &x.Values); err != nil {
				return err
			}
			x.ID, x.Hash = string(id), uint64(hash)
			page.Vectors = append(page.Vectors, x)
		}
		rows.Close()
		return rows.Err()
	})
	if err != nil {
		return vector.Page{}, err
	}
	return page, nil
}

func vectorCursor(id string, part int) core.Cursor {
	return core.Cursor("v." + strconv.Itoa(part) + "." + base64.RawURLEncoding.EncodeToString([]byte(id)))
}

func parseVectorCursor(c core.Cursor) (id []byte, part int, err error) {
	if c == "" {
		return []byte{}, -1, nil
	}
	parts := strings.Split(string(c), ".")
	if len(parts) == 3 && parts[0] == "v" {
		var err1, err2 error
		part, err1 = strconv.Atoi(parts[1])
		id, err2 = base64.RawURLEncoding.DecodeString(parts[2])
		if errors.Join(err1, err2) == nil && part >= 0 && part <= math.MaxInt32 {
			return id, part, nil
		}
	}
	return nil, 0, fmt.Errorf("postgres: scan vectors: the cursor is not one of this store: start again without one: %w", core.ErrInvalid)
}

// VectorSpaces implements vector.Store.
func (v *vectorStore) VectorSpaces(ctx context.Context, agent string) ([]vector.Space, error) {
	var out []vector.Space
	err := v.call(ctx, "vector spaces", agent, repeatable, func(ctx context.Context) error {
		out = nil
		rows, err := v.main.Query(ctx, v.sql.spaces, session(core.Scope{Session: agent}))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var space vector.Space
			var name []byte
			if err := rows.Scan(&name, &space.Dimensions, &space.Entries); err != nil {
				return err
			}
			space.Name = string(name)
			out = append(out, space)
		}
		return rows.Err()
	})
	return out, err
}

// DropVectors implements vector.Store. The space's index goes when all of its vectors do.
func (v *vectorStore) DropVectors(ctx context.Context, space, agent string) error {
	return v.call(ctx, "drop vectors", space, repeatable, func(ctx context.Context) error {
		return v.transact(ctx, func(tx pgx.Tx) error {
			var number, dimensions int
			err := tx.QueryRow(ctx, v.sql.holdSpace, []byte(space)).Scan(&number, &dimensions)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			if agent != "" {
				_, err := tx.Exec(ctx, v.sql.dropOf, number, []byte(agent))
				return err
			}
			for _, text := range []string{v.sql.dropAll, v.sql.dropSpace} {
				if _, err := tx.Exec(ctx, text, number); err != nil {
					return err
				}
			}
			_, err = tx.Exec(ctx, v.indexText(dropIndex, number, 0))
			return err
		})
	})
}
