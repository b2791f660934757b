package lexical

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// maxQueue bounds the changes that wait for a reading of the store to go on. Beyond it, the reading starts over when
// somebody searches again.
const maxQueue = 10_000

// state says how far a partition is.
type state uint8

const (
	unread  state = iota // nothing is indexed; changes are in the store and will be read from there
	reading              // the store is being read; changes are queued
	ready                // all is indexed; changes are applied
)

// partition is the index of one agent.
type partition struct {
	turn chan struct{} // held by whoever reads the store

	mu     sync.RWMutex // guards what follows
	state  state
	seg    *segment
	queue  []func(*segment)
	cursor core.Cursor
	active bool // somebody is reading at this moment
}

// loaded returns the agent's partition once all of its entries are indexed.
func (x *Index) loaded(ctx context.Context, agent string) (*partition, core.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	x.mu.Lock()
	store := x.store
	p := x.agents[agent]
	if p == nil && store != nil {
		p = &partition{turn: make(chan struct{}, 1)}
		x.agents[agent] = p
	}
	x.mu.Unlock()
	if store == nil {
		return nil, nil, fmt.Errorf("no store attached: call Attach first: %w", core.ErrInvalid)
	}
	if p.is(ready) {
		return p, store, nil
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if p.is(ready) { // by the one who was waited for
		return p, store, nil
	}
	return p, store, p.read(ctx, store, core.Scope{Agent: agent}, &x.cfg)
}

func (p *partition) is(s state) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.state == s
}

// read indexes the store's entries page by page, then what was queued meanwhile. When ctx ends, what was read so far is kept for the
// next caller: an agent with a long history is ready after a few searches with a deadline.
func (p *partition) read(ctx context.Context, store core.Store, scope core.Scope, cfg *Config) error {
	p.mu.Lock()
	if p.state == unread {
		p.state, p.seg, p.cursor = reading, newSegment(cfg), ""
	}
	p.active = true
	cursor := p.cursor
	p.mu.Unlock()
	for {
		// Small pages: a search with a short deadline should get somewhere.
		page, err := store.Scan(ctx, core.ScanQuery{Scope: scope, Cursor: cursor, Limit: 200})
		if err != nil {
			p.interrupt(ctx.Err() == nil && !errors.Is(err, core.ErrUnavailable))
			return err
		}
		p.mu.Lock()
		for _, e := range page.Entries {
			p.seg.add(e)
		}
		p.cursor = page.Next
		if page.Next == "" {
			for _, change := range p.queue {
				change(p.seg)
			}
			p.seg = p.seg.compacted()
			p.queue, p.state, p.active = nil, ready, false
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
		cursor = page.Next
		if err := ctx.Err(); err != nil {
			p.interrupt(false)
			return err
		}
	}
}

// interrupt ends a reading that is not complete, for good or to be continued.
func (p *partition) interrupt(forget bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = false
	if forget || len(p.queue) > maxQueue {
		p.forget()
	}
}

func (p *partition) forget() {
	p.state, p.seg, p.queue, p.cursor = unread, nil, nil, ""
}

// apply makes a change to an agent's index, now or when the store is read. The store holds the change already, so where
// nothing was read yet there is nothing to do.
func (x *Index) apply(agent string, change func(*segment)) {
	x.mu.Lock()
	p := x.agents[agent]
	x.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case ready:
		change(p.seg)
		p.seg = p.seg.compacted()
	case reading:
		p.queue = append(p.queue, change)
		if !p.active && len(p.queue) > maxQueue {
			p.forget()
		}
	}
}
