package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// cost measures what docs/scale.md reckons with: bytes of a message in each place, what a session takes, and what a turn reads.
func cost(ctx context.Context, b *board, o options) error {
	if _, err := tiktoken.New(tiktoken.DefaultEncoding); err != nil { // its vocabulary is no message's
		return err
	}
	for _, n := range sizes(1000, o.largest) {
		what := fmt.Sprintf("cost/entries=%d", n)
		c := newCorpus(12)
		batches := make([][]message.Message, 0, n/500+1)
		raw := 0
		for at := 0; at < n; at += 500 {
			batch := make([]message.Message, min(500, n-at))
			for i := range batch {
				batch[i] = c.message()
				raw += len(batch[i].Raw)
			}
			batches = append(batches, batch)
		}
		fill := func(store core.Store) error {
			counter := func(text string) int { return len(text) / 4 } // tokens are not what is measured
			e, err := newEngine(store, func(p *engine.Parts) { p.Counter = counter })
			if err != nil {
				return err
			}
			for _, batch := range batches {
				if _, err := e.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: batch}); err != nil {
					return err
				}
			}
			return e.Dispose(ctx)
		}
		per := func(unit string, v float64) figure { return figure{unit, v / float64(n)} }
		b.add("raw", what, 1, per("B/message", float64(raw)))

		before := heap()
		ram := memory.New()
		if err := fill(ram); err != nil {
			return err
		}
		b.add("memory", what, 1, per("B/message", heap()-before))
		runtime.KeepAlive(ram)

		path := filepath.Join(o.dir, fmt.Sprintf("cost-%d", n), "store.db")
		cfg := sqlite.DefaultConfig()
		cfg.Path = path
		file, err := sqlite.Open(ctx, cfg)
		if err != nil {
			return err
		}
		if err := fill(file); err != nil {
			return err
		}
		x, err := lexical.New(lexical.DefaultConfig())
		if err != nil {
			return err
		}
		if err := x.Attach(file); err != nil {
			return err
		}
		before = heap()
		if err := x.Load(ctx, id.Agent); err != nil {
			return err
		}
		b.add("lexical, memory", what, 1, per("B/message", heap()-before))
		if err := x.Close(); err != nil {
			return err
		}
		if err := session(ctx, b, what, file); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
		size := 0.0
		for _, name := range []string{path, path + "-wal"} {
			if info, err := os.Stat(name); err == nil {
				size += float64(info.Size())
			}
		}
		b.add("sqlite", what, 1, per("B/message", size))
		all, err := onDisk(filepath.Dir(path))
		if err != nil {
			return err
		}
		b.add("lexical, file", what, 1, per("B/message", all-size))
	}
	return nil
}

// session measures a session at rest and in memory: its view, the heap of its window, and what a first and a further turn ask of the store.
func session(ctx context.Context, b *board, what string, store core.Store) error {
	views, ok := core.As[core.ViewStore](store)
	if !ok {
		return errors.New("the store keeps no views")
	}
	asked := &asked{Store: store, ViewStore: views}
	e, err := newEngine(asked, nil)
	if err != nil {
		return err
	}
	before := heap()
	req := core.AssembleRequest{Session: id, Budget: 32_000}
	begin := time.Now()
	if _, err := e.Assemble(ctx, req); err != nil {
		return err
	}
	cold := time.Since(begin)
	window := heap() - before
	v, err := views.LoadView(ctx, id)
	if err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b.add("session of 32k, cold", what, 1, figure{"B-heap", window}, figure{"B-view", float64(len(text))}, figure{"reads", float64(asked.reads)},
		figure{"entries read", float64(asked.entries)}, figure{"writes", float64(asked.writes)}, figure{"ns-wall/op", float64(cold)})
	asked.reads, asked.entries, asked.writes = 0, 0, 0
	turn := []message.Message{message.New(message.User, "what did we say of the bread?"), message.New(message.Assistant, "let it rise longer")}
	for _, m := range turn {
		if _, err := e.Ingest(ctx, core.IngestRequest{Session: id, Message: m}); err != nil {
			return err
		}
		if m.Role == message.User {
			if _, err := e.Assemble(ctx, req); err != nil {
				return err
			}
		}
	}
	b.add("session of 32k, further turn", what, 1, figure{"reads", float64(asked.reads)}, figure{"entries read", float64(asked.entries)},
		figure{"writes", float64(asked.writes)})
	return e.Dispose(ctx)
}

// asked counts what is asked of a store, from one goroutine.
type asked struct {
	core.Store
	core.ViewStore
	reads, entries, writes int
}

func (a *asked) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	a.reads++
	a.entries += len(ids)
	return a.Store.Get(ctx, scope, ids)
}

func (a *asked) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	page, err := a.Store.Scan(ctx, q)
	a.reads++
	a.entries += len(page.Entries)
	return page, err
}

func (a *asked) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	a.writes++
	return a.Store.Append(ctx, entries)
}

func (a *asked) LoadView(ctx context.Context, s core.SessionID) (core.View, error) {
	a.reads++
	return a.ViewStore.LoadView(ctx, s)
}

func (a *asked) SwapView(ctx context.Context, v core.View) error {
	a.writes++
	return a.ViewStore.SwapView(ctx, v)
}
