package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/contextengine/contextengine/core"
)

// Append implements core.Store: one transaction in one round trip, committed when it returns. The keys of deleted entries are free again.
// Names (id, key, agent, session) are at most 800 bytes, else it is core.ErrInvalid.
func (s *Store) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	for i := range entries {
		if err := complete(&entries[i]); err != nil {
			return core.AppendResult{}, err
		}
	}
	a := arrange(entries)
	var res core.AppendResult
	err := s.call(ctx, "append", "", repeatable, func(ctx context.Context) (err error) {
		if len(entries) == 0 {
			return nil
		}
		res, err = s.append(ctx, a)
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == stateDivisionByZero {
			return s.taken(ctx, a)
		}
		return err
	})
	if err != nil {
		return core.AppendResult{}, err
	}
	return res, nil
}

// columnar holds entries column by column, as they are sent.
type columnar struct {
	// agents and counts say how many entries there are of each agent.
	agents                        [][]byte
	counts                        []int64
	agent, session, id, key       [][]byte
	back, seq, turn, tokens, raws []int64
	role, kind, text, mark        []string
	time                          []time.Time
	nanos                         []int16
	meta, body                    [][]byte
}

func arrange(entries []core.Entry) *columnar {
	c := &columnar{}
	counts := map[string]int64{}
	for i := range entries {
		counts[entries[i].Agent]++
	}
	for _, agent := range slices.SortedFunc(maps.Keys(counts), cmp.Compare[string]) {
		c.agents = append(c.agents, []byte(agent))
		c.counts = append(c.counts, counts[agent])
	}
	for i := range entries {
		e := &entries[i]
		r := makeRow(e)
		counts[e.Agent]--
		c.agent, c.session = append(c.agent, []byte(e.Agent)), append(c.session, r.session)
		c.id, c.key = append(c.id, r.id), append(c.key, r.key)
		c.back, c.seq, c.turn = append(c.back, counts[e.Agent]), append(c.seq, r.seq), append(c.turn, r.turn)
		c.tokens, c.raws = append(c.tokens, r.tokens), append(c.raws, r.raw)
		c.role, c.kind, c.text, c.mark = append(c.role, r.role), append(c.kind, r.kind), append(c.text, r.text), append(c.mark, mark(e.Agent))
		c.time, c.nanos = append(c.time, r.time), append(c.nanos, r.nanos)
		c.meta, c.body = append(c.meta, r.meta), append(c.body, r.body)
	}
	return c
}

func (s *Store) append(ctx context.Context, c *columnar) (core.AppendResult, error) {
	b := &pgx.Batch{}
	b.Queue(s.sql.lockAgents, c.agents, c.counts)
	b.Queue(s.sql.insert, c.agent, c.session, c.id, c.back, c.seq, c.turn, c.role, c.kind, c.time, c.nanos, c.tokens, c.key, c.meta, c.body,
		c.raws, c.text, c.mark)
	b.Queue(s.sql.known, c.agent, c.session, c.id, c.key, c.back)
	var res core.AppendResult
	err := s.batch(ctx, b, func(r pgx.BatchResults) error {
		if _, err := r.Exec(); err != nil {
			return err
		}
		tag, err := r.Exec()
		if err != nil {
			return err
		}
		rows, err := r.Query()
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			var id []byte
			var fine int
			err := row.Scan(&id, &fine)
			return string(id), err
		})
		res = core.AppendResult{IDs: ids, Duplicates: len(c.id) - int(tag.RowsAffected())}
		return err
	})
	return res, err
}

// taken names the entry that made an append fail.
func (s *Store) taken(ctx context.Context, c *columnar) error {
	var id []byte
	var seq int64
	var known bool
	err := s.main.QueryRow(ctx, s.sql.conflict, c.agent, c.session, c.id, c.key, c.seq).Scan(&id, &seq, &known)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // they are both in the batch, or the other one is gone by now
		return fmt.Errorf("another entry has the id, or the position in the session: %w", core.ErrConflict)
	case err != nil:
		return err
	case known:
		return fmt.Errorf("entry %q: the id belongs to an entry with another key: %w", id, core.ErrConflict)
	}
	return fmt.Errorf("entry %q: another entry of the session has position %d: %w", id, seq, core.ErrConflict)
}
