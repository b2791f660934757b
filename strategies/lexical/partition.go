package lexical

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// source is a store and what it offers an index.
type source struct {
	store core.Store
	feed  core.ChangeFeed // nil when there is none
	dir   folder          // empty when there is none
	// deaf is set once the feed turned out to be that of a decorator over a store without one.
	mu   sync.Mutex
	deaf bool
}

// sourceOf looks for the companions of a store.
func sourceOf(store core.Store, log *slog.Logger) *source {
	src := &source{store: store}
	src.feed, _ = core.As[core.ChangeFeed](store)
	if b, ok := core.As[core.Beside](store); ok && src.feed != nil {
		dir, err := b.Beside("lexical")
		switch {
		case err == nil:
			src.dir = folder(dir)
		case !errors.Is(err, errors.ErrUnsupported):
			log.Warn("lexical: index is not kept in files", slog.String("error", err.Error()))
		}
	}
	return src
}

// follows reports whether the store tells its changes.
func (s *source) follows() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.feed != nil && !s.deaf
}

func (s *source) stopFollowing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = true
}

// keeps reports whether there are files.
func (s *source) keeps() bool { return s.dir != "" && s.follows() }

// state says how far a partition of a store without a feed is.
type state uint8

const (
	unread  state = iota // nothing is indexed; changes are in the store and will be read from there
	reading              // the store is being read; changes are queued
	ready                // all is indexed; changes are applied
)

// partition is the index of one agent.
type partition struct {
	agent string
	src   *source
	turn  chan struct{} // held by whoever reads the store, or a file
	saver chan struct{} // held by whoever writes the file

	mu     sync.RWMutex // guards what follows
	state  state
	seg    *segment // nil when nothing was read yet
	queue  []func(*segment)
	cursor core.Cursor
	active bool // somebody is reading at this moment

	mark core.Mark
	// told holds the ids of entries that an observer's call changed while a page of the feed is on its way, which is then older; nil when none is.
	told    map[string]struct{}
	changes int // since the file was written
	retry   int // as many changes before the file is tried again
	// Index.mu guards these: when it was searched last, and the memory it took then.
	used, held int64
}

// known returns an agent's partition, nil when it is not in memory: what happens to its entries is in the store, and will be read from there.
func (x *Index) known(agent string) *partition {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.agents[agent]
}

// current returns an agent's partition with everything in it that was acknowledged before the call.
func (x *Index) current(ctx context.Context, agent string) (*partition, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := x.partition(agent)
	if err != nil {
		return nil, err
	}
	if !p.src.follows() && p.is(ready) {
		return p, nil
	}
	if err := p.enter(ctx); err != nil {
		return nil, err
	}
	err = x.read(ctx, p)
	p.leave()
	x.grown(ctx, p)
	return p, err
}

func (x *Index) partition(agent string) (*partition, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.closed:
		return nil, core.ErrClosed
	case x.src == nil:
		return nil, fmt.Errorf("no store attached: call Attach first: %w", core.ErrInvalid)
	}
	p := x.agents[agent]
	if p == nil {
		p = &partition{agent: agent, src: x.src, turn: make(chan struct{}, 1), saver: make(chan struct{}, 1)}
		x.agents[agent] = p
	}
	x.clock++
	p.used = x.clock
	return p, nil
}

// enter waits until nobody else reads for the partition.
func (p *partition) enter(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *partition) leave() { <-p.turn }

func (p *partition) is(s state) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.state == s
}

// apply makes n changes, of which those to ids may take something away, now or when the store is read. The store holds them
// already, so where nothing was read yet there is nothing to do.
func (p *partition) apply(n int, ids []string, change func(*segment)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told != nil {
		for _, id := range ids {
			p.told[id] = struct{}{}
		}
	}
	switch {
	case p.seg == nil:
	case p.state == reading:
		p.queue = append(p.queue, change)
		if !p.active && len(p.queue) > maxQueue {
			p.forget()
		}
	default:
		change(p.seg)
		p.seg = p.seg.compacted()
		p.changes += n
	}
}

func (p *partition) forget() {
	p.state, p.seg, p.queue, p.cursor, p.mark = unread, nil, nil, "", ""
}
