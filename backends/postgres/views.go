package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/contextengine/contextengine/core"
)

// LoadView implements core.ViewStore.
func (s *Store) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	if err := id.Validate(); err != nil {
		return core.View{}, fmt.Errorf("postgres: load view: %w", err)
	}
	var v core.View
	err := s.call(ctx, "load view", id.String(), repeatable, func(ctx context.Context) error {
		_, body, err := s.stored(ctx, id)
		if err != nil {
			return err
		}
		v = core.View{}
		if err := json.Unmarshal(body, &v); err != nil {
			return damaged("the view cannot be read")
		}
		return nil
	})
	if err != nil {
		return core.View{}, err
	}
	return v, nil
}

// stored returns the version and the bytes of a session's view.
func (s *Store) stored(ctx context.Context, id core.SessionID) (version int64, body []byte, err error) {
	err = s.main.QueryRow(ctx, s.sql.view, []byte(id.Agent), []byte(id.Session)).Scan(&version, &body)
	return version, body, err
}

// SwapView implements core.ViewStore: one statement compares and swaps.
func (s *Store) SwapView(ctx context.Context, v core.View) error {
	if err := v.Session.Validate(); err != nil {
		return fmt.Errorf("postgres: swap view: %w", err)
	}
	if v.Version == 0 || v.Version > math.MaxInt64 {
		return fmt.Errorf("postgres: swap view %q: version is %d: the first version of a view is 1: %w", v.Session, v.Version, core.ErrInvalid)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("postgres: swap view %q: %w: %w", v.Session, err, core.ErrInvalid)
	}
	text := s.sql.nextView
	if v.Version == 1 {
		text = s.sql.firstView
	}
	tried := false
	return s.call(ctx, "swap view", v.Session.String(), repeatable, func(ctx context.Context) error {
		b := &pgx.Batch{}
		b.Queue(text, []byte(v.Session.Agent), []byte(v.Session.Session), int64(v.Version), body)
		n, err := s.exec(ctx, b)
		if err != nil {
			tried = true
			return err
		}
		if n == 1 {
			return nil
		}
		have, stored, err := s.stored(ctx, v.Session)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if tried && err == nil && have == int64(v.Version) && bytes.Equal(stored, body) {
			return nil // the try before was committed, and only its answer got lost
		}
		return fmt.Errorf("version %d is stored, %d does not follow it: %w", have, v.Version, core.ErrConflict)
	})
}

// DeleteView implements core.ViewStore.
func (s *Store) DeleteView(ctx context.Context, id core.SessionID) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("postgres: delete view: %w", err)
	}
	return s.call(ctx, "delete view", id.String(), repeatable, func(ctx context.Context) error {
		b := &pgx.Batch{}
		b.Queue(s.sql.dropView, []byte(id.Agent), []byte(id.Session))
		_, err := s.exec(ctx, b)
		return err
	})
}

// ListViews implements core.ViewStore.
func (s *Store) ListViews(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
	if err := core.CheckLimit("postgres: list views", q.Limit); err != nil {
		return nil, err
	}
	var out []core.SessionID
	err := s.call(ctx, "list views", q.Agent, repeatable, func(ctx context.Context) error {
		out = nil
		rows, err := s.main.Query(ctx, s.sql.listViews, []byte(q.After.Agent), []byte(q.After.Session), session(core.Scope{Session: q.Agent}), q.Limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var agent, name []byte
			if err := rows.Scan(&agent, &name); err != nil {
				return err
			}
			out = append(out, core.SessionID{Agent: string(agent), Session: string(name)})
		}
		return rows.Err()
	})
	return out, err
}

// Tail implements core.Tailer: one statement, which looks once into each of two indexes.
func (s *Store) Tail(ctx context.Context, id core.SessionID) (core.Tail, error) {
	if err := id.Scope().Check("postgres: tail"); err != nil {
		return core.Tail{}, err
	}
	var version, next int64
	err := s.call(ctx, "tail", id.String(), repeatable, func(ctx context.Context) error {
		return s.main.QueryRow(ctx, s.sql.tail, []byte(id.Agent), []byte(id.Session)).Scan(&version, &next)
	})
	if err != nil {
		return core.Tail{}, err
	}
	return core.Tail{View: uint64(version), Next: next}, nil
}
