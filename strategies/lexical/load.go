package lexical

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"github.com/contextengine/contextengine/core"
)

const (
	// maxQueue bounds the changes that wait for a reading of the store to go on. Beyond it, the reading starts over when
	// somebody searches again.
	maxQueue = 10_000
	// readPage is how many entries are read at once: few, so that a search with a short deadline gets somewhere.
	readPage = 200
)

// read brings a partition up to date. The caller holds its turn. When ctx ends, what was read so far is kept for the next caller: an agent
// with a long history is ready after a few searches with a deadline.
func (x *Index) read(ctx context.Context, p *partition) error {
	if p.src.follows() {
		x.restore(ctx, p)
		err := p.follow(ctx, &x.cfg, x.log)
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		p.src.stopFollowing()
		p.mu.Lock()
		p.forget()
		p.mu.Unlock()
	}
	if p.is(ready) { // by the one who was waited for
		return nil
	}
	return p.scan(ctx, &x.cfg)
}

// restore takes the index from its file, the first time. A file that cannot be used is as good as none.
func (x *Index) restore(ctx context.Context, p *partition) {
	p.mu.RLock()
	known := p.seg != nil
	p.mu.RUnlock()
	if known {
		return
	}
	seg, mark := newSegment(&x.cfg), core.Mark("")
	if p.src.dir != "" {
		s, m, err := p.src.dir.load(p.agent, &x.cfg)
		switch {
		case err == nil:
			seg, mark = s, m
		case !errors.Is(err, fs.ErrNotExist):
			x.log.WarnContext(ctx, "lexical: index is built anew", slog.String("agent", p.agent), slog.String("error", err.Error()))
		}
	}
	p.mu.Lock()
	p.seg, p.mark, p.changes = seg, mark, 0
	p.mu.Unlock()
}

// follow applies what the store's feed tells.
func (p *partition) follow(ctx context.Context, cfg *Config, log *slog.Logger) error {
	anew := false
	for {
		p.mu.Lock()
		p.told = map[string]struct{}{}
		mark := p.mark
		p.mu.Unlock()
		page, err := p.src.feed.Changes(ctx, core.ChangeQuery{Agent: p.agent, After: mark, Limit: readPage, Known: p.knows})
		if errors.Is(err, core.ErrNotFound) && mark != "" && !anew {
			log.WarnContext(ctx, "lexical: index is built anew: the store does not know its mark", slog.String("agent", p.agent))
			p.mu.Lock()
			p.seg, p.mark, p.changes, p.told = newSegment(cfg), "", 0, nil
			p.mu.Unlock()
			anew = true
			continue
		}
		if err != nil {
			p.mu.Lock()
			p.told = nil
			p.mu.Unlock()
			return err
		}
		p.take(page)
		if !page.More {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// knows reports whether the index has an entry as it was appended: whoever appended it told, and changes are told again.
func (p *partition) knows(id string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.seg != nil && p.seg.find(id) != none
}

// take applies a page of the feed.
func (p *partition) take(page core.ChangePage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seg == nil {
		return
	}
	for _, c := range page.Changes {
		if _, newer := p.told[c.ID]; newer {
			continue // the feed will tell that, too
		}
		if c.Entry == nil {
			p.seg.remove(core.Scope{Agent: p.agent}, c.ID)
		} else {
			p.seg.put(*c.Entry)
		}
	}
	p.changes += len(page.Changes)
	p.mark, p.told = page.Mark, nil
	if len(page.Changes) > 0 {
		p.seg = p.seg.compacted()
	}
}

// scan indexes all entries of a store without a feed page by page, then what was queued meanwhile.
func (p *partition) scan(ctx context.Context, cfg *Config) error {
	p.mu.Lock()
	if p.state == unread {
		p.state, p.seg, p.cursor = reading, newSegment(cfg), ""
	}
	p.active = true
	cursor := p.cursor
	p.mu.Unlock()
	for {
		page, err := p.src.store.Scan(ctx, core.ScanQuery{Scope: core.Scope{Agent: p.agent}, Cursor: cursor, Limit: readPage})
		if err != nil {
			p.interrupt(ctx.Err() == nil && !errors.Is(err, core.ErrUnavailable))
			return err
		}
		p.mu.Lock()
		for _, e := range page.Entries {
			p.seg.put(e)
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
