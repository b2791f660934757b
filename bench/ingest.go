package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/archive"
)

// ingested is how many entries each of them takes, in turns of 2 and 3.
const ingested = 10_000

func turnsOf(n int) [][]core.Entry {
	c := newCorpus(8)
	var out [][]core.Entry
	for n > 0 {
		turn := make([]core.Entry, min(2+len(out)%2, n))
		for i := range turn {
			turn[i] = c.entry()
		}
		n -= len(turn)
		out = append(out, turn)
	}
	return out
}

// ingest compares what storing a message costs: bare, in the stores, and through the engine.
func ingest(ctx context.Context, b *board, o options) error {
	turns := turnsOf(ingested)
	const what = "ingest/turns of 2 and 3"
	type subject struct {
		name string
		open func() (put func([]core.Entry) error, closing func() error, err error)
	}
	engine := func(store core.Store) (func([]core.Entry) error, func() error, error) {
		e, err := newEngine(store, nil)
		if err != nil {
			return nil, nil, err
		}
		return func(turn []core.Entry) error {
			msgs := make([]message.Message, len(turn))
			for i := range turn {
				msgs[i] = turn[i].Message
			}
			_, err := e.IngestBatch(ctx, core.IngestBatchRequest{Session: turn[0].SessionID(), Messages: msgs})
			return err
		}, func() error { return errors.Join(e.Dispose(ctx), store.Close()) }, nil
	}
	openFile := func(name, durability string) (*sqlite.Store, error) {
		cfg := sqlite.DefaultConfig()
		cfg.Path, cfg.Durability = filepath.Join(o.dir, name), durability
		return sqlite.Open(ctx, cfg)
	}
	subjects := []subject{
		{"slice", func() (func([]core.Entry) error, func() error, error) {
			var all []core.Entry
			return func(turn []core.Entry) error { all = append(all, turn...); return nil }, func() error { return nil }, nil
		}},
		{"memory", func() (func([]core.Entry) error, func() error, error) {
			s := memory.New()
			return func(turn []core.Entry) error { _, err := s.Append(ctx, turn); return err }, s.Close, nil
		}},
		{"engine+memory", func() (func([]core.Entry) error, func() error, error) { return engine(memory.New()) }},
		{"bare sqlite", func() (func([]core.Entry) error, func() error, error) { return bareSQLite(ctx, o.dir, "bare.db", "") }},
		{"bare sqlite with the indexes", func() (func([]core.Entry) error, func() error, error) {
			return bareSQLite(ctx, o.dir, "indexed.db", `CREATE UNIQUE INDEX a ON t (id); CREATE UNIQUE INDEX b ON t (agent, session, key); CREATE INDEX c ON t (agent, session, seq)`)
		}},
		{"sqlite", func() (func([]core.Entry) error, func() error, error) {
			s, err := openFile("store.db", sqlite.DurabilityProcess)
			if err != nil {
				return nil, nil, err
			}
			return func(turn []core.Entry) error { _, err := s.Append(ctx, turn); return err }, s.Close, nil
		}},
		{"engine+sqlite", func() (func([]core.Entry) error, func() error, error) {
			s, err := openFile("engine.db", sqlite.DurabilityProcess)
			if err != nil {
				return nil, nil, err
			}
			return engine(s)
		}},
		{"sqlite, survives power failure", func() (func([]core.Entry) error, func() error, error) {
			s, err := openFile("power.db", sqlite.DurabilityPower)
			if err != nil {
				return nil, nil, err
			}
			return func(turn []core.Entry) error { _, err := s.Append(ctx, turn); return err }, s.Close, nil
		}},
	}
	for _, s := range subjects {
		put, closing, err := s.open()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		took, err := timed(func() error {
			for _, turn := range turns {
				if err := put(turn); err != nil {
					return err
				}
			}
			return nil
		})
		if err = errors.Join(err, closing()); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		b.add(s.name, what, ingested, append(took.per(ingested), figure{"messages/s", ingested / took.wall.Seconds()})...)
	}
	for _, unit := range []string{"ns/op", "ns-wall/op"} {
		b.ratio(what, unit, "sqlite", "bare sqlite", "at most 4")
		b.ratio(what, unit, "sqlite", "bare sqlite with the indexes", "")
		b.ratio(what, unit, "engine+sqlite", "bare sqlite", "")
	}
	b.ratio(what, "ns/op", "memory", "slice", "")
	return nil
}

// newEngine makes an engine over a store, with tokens counted as models count them.
func newEngine(store core.Store, change func(*engine.Parts)) (*engine.Engine, error) {
	counter, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		return nil, err
	}
	compactor, err := archive.New(archive.DefaultConfig())
	if err != nil {
		return nil, err
	}
	parts := engine.Parts{Store: store, Compactor: compactor, Counter: counter.Count}
	if change != nil {
		change(&parts)
	}
	return engine.New(parts, engine.DefaultConfig())
}

// bareSQLite inserts the same rows in the same transactions, and nothing else.
func bareSQLite(ctx context.Context, dir, name, indexes string) (func([]core.Entry) error, func() error, error) {
	db, err := sql.Open("sqlite", filepath.Join(dir, name)+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=cache_size(-65536)")
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `CREATE TABLE t (n INTEGER PRIMARY KEY, id TEXT, agent TEXT, session TEXT, seq INTEGER, turn INTEGER, role TEXT, type TEXT,
		time INTEGER, tokens INTEGER, key TEXT, fingerprint TEXT, message BLOB);`+indexes)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	insert, err := db.PrepareContext(ctx, "INSERT INTO t VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return func(turn []core.Entry) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		stmt := tx.StmtContext(ctx, insert)
		for _, e := range turn {
			if _, err := stmt.ExecContext(ctx, e.ID, e.Agent, e.Session, e.Seq, e.Turn, string(e.Role), string(e.Type), e.Time.UnixMilli(), e.Tokens, e.Key,
				e.Fingerprint, e.Message.Raw); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		return tx.Commit()
	}, db.Close, nil
}
