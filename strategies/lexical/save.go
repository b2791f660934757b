package lexical

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/contextengine/contextengine/core"
)

// minUnsaved is how many changes are not worth writing the index again before Close.
const minUnsaved = 1000

// grown does what is due after an agent's index changed: writing it in the background when enough changed, and letting go of
// other agents when memory is short.
func (x *Index) grown(ctx context.Context, p *partition) {
	if p.src.keeps() && p.due() {
		x.background(ctx, p, minUnsaved)
	}
	x.evict(ctx, p)
}

// due reports whether an index changed so much that it should be written: by a quarter.
func (p *partition) due() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.seg != nil && p.changes >= max(minUnsaved, p.seg.ids.len()/4, p.retry)
}

// background saves a partition without making the caller wait. Close waits for it.
func (x *Index) background(ctx context.Context, p *partition, least int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	select {
	case p.saver <- struct{}{}:
		<-p.saver
	default: // somebody saves it already
		return
	}
	x.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
		defer cancel()
		if err := x.save(ctx, p, least); err != nil && !errors.Is(err, core.ErrClosed) {
			x.log.WarnContext(ctx, "lexical: index is not saved", slog.String("agent", p.agent), slog.String("error", err.Error()))
		}
	})
}

// save writes a partition's index beside the store, if there are at least so many changes that the file does not hold.
func (x *Index) save(ctx context.Context, p *partition, least int) (err error) {
	select {
	case p.saver <- struct{}{}:
		defer func() { <-p.saver }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.RLock()
	nothing := p.seg == nil || p.changes < least
	p.mu.RUnlock()
	if nothing || !p.src.keeps() {
		return nil
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.retry = 0
		if err != nil { // a full disk is not to be tried at every message
			p.retry = 2 * p.changes
		}
	}()
	d, err := p.src.dir.begin(p.agent)
	if err != nil {
		return err
	}
	// Only now: an erasure that is not among the changes finds the draft, see folder.
	snapshot, h, changes, err := x.freeze(ctx, p)
	if err != nil {
		d.abandon()
		return err
	}
	err = d.publish(h, snapshot.tidy())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // erased meanwhile, the next one will do
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.changes = max(p.changes-changes, 0)
	p.mu.Unlock()
	return nil
}

// freeze brings a partition up to date and returns a copy of its index.
func (x *Index) freeze(ctx context.Context, p *partition) (*segment, header, int, error) {
	if err := p.enter(ctx); err != nil {
		return nil, header{}, 0, err
	}
	defer p.leave()
	if err := p.follow(ctx, &x.cfg, x.log); err != nil {
		return nil, header{}, 0, err
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.seg == nil { // the store has no feed after all
		return nil, header{}, 0, errors.ErrUnsupported
	}
	return p.seg.snapshot(), header{agent: p.agent, mark: p.mark, config: configHash(&x.cfg)}, p.changes, nil
}

// discard removes an agent's file, which may hold what was erased. It is written again when enough changed, and at Close.
func (x *Index) discard(agent string) error {
	x.mu.Lock()
	src := x.src
	x.mu.Unlock()
	if src == nil || !src.keeps() {
		return nil
	}
	if err := src.dir.discard(agent); err != nil {
		return fmt.Errorf("lexical: forget %q: %w", agent, err)
	}
	return nil
}

// evict lets go of the agents that were searched least recently, until the others fit in memory. The one that was just used stays.
func (x *Index) evict(ctx context.Context, used *partition) {
	size := used.bytes()
	x.mu.Lock()
	if x.agents[used.agent] == used {
		x.held += size - used.held
		used.held = size
	}
	var gone []*partition
	for x.held > x.cfg.MaxBytes {
		var oldest *partition
		for _, p := range x.agents {
			if p != used && (oldest == nil || p.used < oldest.used) {
				oldest = p
			}
		}
		if oldest == nil {
			break
		}
		x.held -= oldest.held
		delete(x.agents, oldest.agent)
		gone = append(gone, oldest)
	}
	x.mu.Unlock()
	for _, p := range gone {
		x.log.DebugContext(ctx, "lexical: index of an agent leaves memory", slog.String("agent", p.agent))
		if p.src.keeps() {
			x.background(ctx, p, 1)
		}
	}
}

// bytes is the memory that a partition takes, about.
func (p *partition) bytes() int64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.seg == nil {
		return 0
	}
	return p.seg.bytes() + 512
}
