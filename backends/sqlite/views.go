package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/packed"
)

// LoadView implements core.ViewStore.
func (s *Store) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	if err := id.Validate(); err != nil {
		return core.View{}, fmt.Errorf("sqlite: load view: %w", err)
	}
	var v core.View
	err := s.read(ctx, "load view", id.String(), func(tx *sql.Tx) error {
		var version, sum int64
		var body []byte
		err := tx.StmtContext(ctx, s.r.view).QueryRowContext(ctx, id.Agent, id.Session).Scan(&version, &body, &sum)
		if err := s.scanned(err); err != nil {
			return err
		}
		v, err = s.decodeView(id, version, body, sum)
		return err
	})
	if err != nil {
		return core.View{}, err
	}
	return v, nil
}

// SwapView implements core.ViewStore.
func (s *Store) SwapView(ctx context.Context, v core.View) error {
	if err := v.Session.Validate(); err != nil {
		return fmt.Errorf("sqlite: swap view: %w", err)
	}
	if v.Version == 0 || v.Version > math.MaxInt64 {
		return fmt.Errorf("sqlite: swap view %q: version is %d: the first version of a view is 1: %w", v.Session, v.Version, core.ErrInvalid)
	}
	b, ok := s.buffers.Get().(*bytes.Buffer)
	if !ok {
		b = new(bytes.Buffer)
	}
	defer s.buffers.Put(b)
	body, sum, err := s.encodeView(&v, b)
	if err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("sqlite: swap view: %w", err)
	}
	defer s.leave()
	err = s.transactDirect(ctx, func(d *direct) error {
		return s.swap(context.WithoutCancel(ctx), d, &v, body, sum)
	}, nil)
	return s.failed(ctx, "swap view", v.Session.String(), err)
}

// swap puts a view into its place if it follows the one that is there.
func (s *Store) swap(ctx context.Context, d *direct, v *core.View, body []byte, sum int64) error {
	b := batch{s: s, d: d}
	scope, err := b.scope(ctx, v.Session)
	if err != nil {
		return err
	}
	var res driver.Result
	if v.Version == 1 {
		res, err = d.exec(ctx, d.firstView, scope, body, sum)
	} else {
		res, err = d.exec(ctx, d.nextView, scope, int64(v.Version-1), body, sum)
	}
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	var have [1]driver.Value
	err = d.one(ctx, d.viewVersion, have[:], scope)
	if errors.Is(err, sql.ErrNoRows) {
		have[0] = 0
	} else if err != nil {
		return err
	}
	return fmt.Errorf("version %v is stored, %d does not follow it: %w", have[0], v.Version, core.ErrConflict)
}

// DeleteView implements core.ViewStore. Unless Config.Insecure is set, the view's bytes leave the file.
func (s *Store) DeleteView(ctx context.Context, id core.SessionID) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("sqlite: delete view: %w", err)
	}
	gone := false
	err := s.write(ctx, "delete view", id.String(), func(tx *sql.Tx) error {
		quiet := context.WithoutCancel(ctx)
		var scope, next int64
		err := tx.StmtContext(quiet, s.w.scope).QueryRowContext(quiet, id.Agent, id.Session).Scan(&scope, &next)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.StmtContext(quiet, s.w.dropView).ExecContext(quiet, scope); err != nil {
			return err
		}
		gone = true
		return s.dropEmpty(quiet, tx, map[int64]bool{scope: true})
	})
	if err == nil && gone {
		s.forget(ctx)
	}
	return err
}

// ListViews implements core.ViewStore.
func (s *Store) ListViews(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
	if err := core.CheckLimit("sqlite: list views", q.Limit); err != nil {
		return nil, err
	}
	var out []core.SessionID
	err := s.read(ctx, "list views", q.Agent, func(tx *sql.Tx) error {
		out = nil
		rows, err := tx.QueryContext(ctx, `SELECT s.agent, s.session FROM scopes s JOIN views v ON v.scope = s.id
			WHERE (?1 = '' OR s.agent = ?1) AND (s.agent, s.session) > (?2, ?3) ORDER BY s.agent, s.session LIMIT ?4`,
			q.Agent, q.After.Agent, q.After.Session, q.Limit)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var id core.SessionID
			if err := rows.Scan(&id.Agent, &id.Session); err != nil {
				return err
			}
			out = append(out, id)
		}
		return rows.Err()
	})
	return out, err
}

// minDeflateView is the size in bytes from which views are compressed, which every turn writes over: compressing one of 30 KB takes longer than writing it.
const minDeflateView = 256 << 10

// encodeView returns what the table holds of a view, most often in b. Writing the body as it will be, without copies and into a buffer that is there
// already, takes half the time that json.Marshal and plain do with a recall block of 20 KB.
func (s *Store) encodeView(v *core.View, b *bytes.Buffer) (body []byte, sum int64, err error) {
	b.Reset()
	b.WriteByte(packed.Plain)
	to := json.NewEncoder(b)
	// '<' and the like mean nothing here.
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		return nil, 0, fmt.Errorf("sqlite: swap view %q: %w: %w", v.Session, err, core.ErrInvalid)
	}
	if body = b.Bytes(); len(body) > minDeflateView {
		body = packed.Seal(body[1:])
	}
	return body, viewSum(v.Session, int64(v.Version), body), nil
}

func (s *Store) decodeView(id core.SessionID, version int64, body []byte, sum int64) (core.View, error) {
	if sum != viewSum(id, version, body) {
		return core.View{}, s.damaged("the view of session %q does not match its checksum", id)
	}
	b, err := packed.Unseal(body)
	if err != nil {
		return core.View{}, s.damaged("the view of session %q: %v", id, err)
	}
	var v core.View
	if err := json.Unmarshal(b, &v); err != nil {
		return core.View{}, s.damaged("the view of session %q: %v", id, err)
	}
	return v, nil
}

func viewSum(id core.SessionID, version int64, body []byte) int64 {
	table := crc32.MakeTable(crc32.Castagnoli)
	var p packed.Writer
	p.Str(id.Agent)
	p.Str(id.Session)
	p.Int(version)
	return int64(crc32.Update(crc32.Checksum(p.B, table), table, body))
}

// Tail implements core.Tailer.
func (s *Store) Tail(ctx context.Context, id core.SessionID) (core.Tail, error) {
	if err := id.Scope().Check("sqlite: tail"); err != nil {
		return core.Tail{}, err
	}
	var version, next int64
	look := func(from reader) error {
		err := from.row(ctx, &s.r.end, id.Agent, id.Session).Scan(&version, &next)
		if errors.Is(err, sql.ErrNoRows) {
			version, next, err = 0, 0, nil
		}
		return err
	}
	done, err := s.glance(ctx, "tail", func(_ context.Context, from reader) error { return look(from) })
	if !done {
		err = s.read(ctx, "tail", id.String(), func(tx *sql.Tx) error { return look(pooled{tx}) })
	}
	if err != nil {
		return core.Tail{}, err
	}
	return core.Tail{View: uint64(version), Next: next}, nil
}
