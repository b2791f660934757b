package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// assemble measures the next prompt: the window part alone (a warm session, nothing recalled), beside copying the bytes it returns, and with
// hybrid retrieval over a lexical index, a new turn each time.
func assemble(ctx context.Context, b *board, o options) error {
	for _, n := range sizes(1000, o.largest) {
		for _, kind := range []string{"memory", "sqlite"} {
			if err := ctx.Err(); err != nil {
				return err
			}
			store, err := openStore(ctx, kind, filepath.Join(o.dir, fmt.Sprintf("assemble-%d.db", n)))
			if err != nil {
				return err
			}
			err = assembleOver(ctx, b, kind, store, n)
			if err = errors.Join(err, store.Close()); err != nil {
				return err
			}
		}
	}
	for _, budget := range []string{"32k", "128k"} {
		for _, kind := range []string{"memory", "sqlite"} {
			for _, n := range sizes(1000, o.largest) {
				what := fmt.Sprintf("assemble/budget=%s/entries=%d", budget, n)
				b.ratio(what, "ns-p50", kind+", window", kind+", copy", "at most 5")
				b.ratio(what, "ns/op", kind+", window", kind+", copy", "")
			}
			if v := b.value(kind+", with recall", fmt.Sprintf("assemble/budget=%s/entries=%d", budget, 100_000), "ns-p50"); v > 0 {
				b.note("budget %s, %s: p50 with recall at 100000 is %.1f ms (wanted: at most 5)", budget, kind, v/1e6)
			}
			small, large := fmt.Sprintf("assemble/budget=%s/entries=%d", budget, 10_000), fmt.Sprintf("assemble/budget=%s/entries=%d", budget, o.largest)
			if x, y := b.value(kind+", window", large, "ns-p50"), b.value(kind+", window", small, "ns-p50"); x > 0 && y > 0 && o.largest > 10_000 {
				b.note("budget %s, %s: the window part's p50 at %d is %.2f times that at 10000 (wanted at a million: at most 2)", budget, kind, o.largest, x/y)
			}
		}
	}
	return nil
}

func openStore(ctx context.Context, kind, path string) (core.Store, error) {
	if kind == "memory" {
		return memory.New(), nil
	}
	cfg := sqlite.DefaultConfig()
	cfg.Path = path
	return sqlite.Open(ctx, cfg)
}

// id is the session that is assembled.
var id = core.SessionID{Agent: agent, Session: "long"}

func assembleOver(ctx context.Context, b *board, kind string, store core.Store, n int) error {
	c := newCorpus(9)
	fill, err := newEngine(store, nil)
	if err != nil {
		return err
	}
	for at := 0; at < n; {
		batch := make([]message.Message, min(500, n-at))
		for i := range batch {
			batch[i] = c.message()
		}
		if _, err := fill.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: batch}); err != nil {
			return err
		}
		at += len(batch)
	}
	if err := fill.Dispose(ctx); err != nil {
		return err
	}
	for _, budget := range []int{32_000, 128_000} {
		what := fmt.Sprintf("assemble/budget=%dk/entries=%d", budget/1000, n)
		if err := windowPart(ctx, b, kind, what, store, budget); err != nil {
			return err
		}
		if err := wholePart(ctx, b, kind, what, store, budget, c); err != nil {
			return err
		}
	}
	return nil
}

// windowPart assembles the same session again and again, and copies what it got.
func windowPart(ctx context.Context, b *board, kind, what string, store core.Store, budget int) error {
	e, err := newEngine(store, nil)
	if err != nil {
		return err
	}
	req := core.AssembleRequest{Session: id, Budget: budget}
	begin := time.Now()
	res, err := e.Assemble(ctx, req)
	if err != nil {
		return err
	}
	cold := time.Since(begin)
	one := func(int) error {
		_, err := e.Assemble(ctx, req)
		return err
	}
	if err := one(0); err != nil {
		return err
	}
	ops, took, all, err := latencies(200, one)
	if err != nil {
		return err
	}
	b.add(kind+", window", what, ops, append(took.per(ops), figure{"ns-p50", quantile(all, 0.5)}, figure{"ns-p95", quantile(all, 0.95)},
		figure{"ns-cold", float64(cold)}, figure{"messages", float64(len(res.Messages))})...)
	size := 0
	ops, took, all, err = latencies(2000, func(int) error {
		size = len(copied(res.Messages))
		return nil
	})
	if err != nil {
		return err
	}
	b.add(kind+", copy", what, ops, append(took.per(ops), figure{"ns-p50", quantile(all, 0.5)}, figure{"ns-p95", quantile(all, 0.95)},
		figure{"messages", float64(size)})...)
	return e.Dispose(ctx)
}

// copied copies messages with every byte they hold, as somebody does who hands them on and keeps nothing in common.
func copied(msgs []message.Message) []message.Message {
	out := slices.Clone(msgs)
	for i := range out {
		m := &out[i]
		m.Raw = slices.Clone(m.Raw)
		m.Parts = slices.Clone(m.Parts)
		for j := range m.Parts {
			p := &m.Parts[j]
			p.Text = string([]byte(p.Text))
			p.Args = string([]byte(p.Args))
			p.Raw = slices.Clone(p.Raw)
		}
	}
	return out
}

// wholePart lives turns: each time the user says something that has to do with an old message, and the prompt is assembled with recall.
func wholePart(ctx context.Context, b *board, kind, what string, store core.Store, budget int, c *corpus) error {
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		return err
	}
	retriever, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": index})
	if err != nil {
		return err
	}
	timing := &stopwatch{Retriever: retriever}
	e, err := newEngine(store, func(p *engine.Parts) { p.Retriever, p.Observers = timing, []core.Observer{index} })
	if err != nil {
		return err
	}
	if err := index.Attach(store); err != nil {
		return err
	}
	if err := index.Load(ctx, id.Agent); err != nil {
		return err
	}
	req := core.AssembleRequest{Session: id, Budget: budget}
	if _, err := e.Assemble(ctx, req); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(10, 11))
	timing.took = nil
	var all []time.Duration
	var spentAll spent
	runtime.GC()
	begin := time.Now()
	for i := 0; i < 200 && (i < 20 || time.Since(begin) < 3*time.Second); i++ {
		ask := message.New(message.User, sentence(rng, c.text(60)))
		answer := message.New(message.Assistant, c.text(60))
		if _, err := e.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: []message.Message{ask}}); err != nil {
			return err
		}
		took, err := timed(func() error {
			_, err := e.Assemble(ctx, req)
			return err
		})
		if err != nil {
			return err
		}
		all = append(all, took.wall)
		spentAll.cpu += took.cpu
		spentAll.wall += took.wall
		if _, err := e.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: []message.Message{answer}}); err != nil {
			return err
		}
	}
	slices.Sort(all)
	slices.Sort(timing.took)
	b.add(kind+", with recall", what, len(all), append(spentAll.per(len(all)), figure{"ns-p50", quantile(all, 0.5)}, figure{"ns-p95", quantile(all, 0.95)})...)
	b.add(kind+", of which the retriever", what, len(timing.took), figure{"ns-p50", quantile(timing.took, 0.5)}, figure{"ns-p95", quantile(timing.took, 0.95)})
	return errors.Join(e.Dispose(ctx), index.Close())
}

// stopwatch measures a retriever.
type stopwatch struct {
	core.Retriever
	took []time.Duration
}

func (s *stopwatch) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	begin := time.Now()
	c, err := s.Retriever.Retrieve(ctx, q)
	s.took = append(s.took, time.Since(begin))
	return c, err
}

// latencies is repeat with the time of each operation, sorted. What was done before leaves no garbage to it, as in package testing.
func latencies(limit int, f func(i int) error) (int, spent, []time.Duration, error) {
	runtime.GC()
	var all []time.Duration
	n, s, err := repeat(limit, func(i int) error {
		begin := time.Now()
		err := f(i)
		all = append(all, time.Since(begin))
		return err
	})
	slices.Sort(all)
	return n, s, all, err
}
