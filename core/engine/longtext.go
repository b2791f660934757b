package engine

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/contextengine/contextengine/core/message"
)

const (
	// longText is the length in bytes from which a text may take longer to count than a call should go on when its ctx has ended: tokenizers cannot be stopped.
	longText = 256 << 10
	// maxLongCounts bounds how many counts of long texts are remembered.
	maxLongCounts = 64
)

// longCount is what counting a long text came to, or comes to.
type longCount struct {
	done chan struct{}
	n    int
	// panicked is what the counter panicked with.
	panicked any
}

// count counts a text. A long one is counted once, whoever asks meanwhile or again.
func (g *gauge) count(text string) int {
	if len(text) < longText {
		return g.counter(text)
	}
	key := maphash.String(g.seed, text)
	g.mu.Lock()
	c, known := g.long[key]
	if !known {
		if len(g.long) >= maxLongCounts {
			clear(g.long)
		}
		c = &longCount{done: make(chan struct{})}
		g.long[key] = c
	}
	g.mu.Unlock()
	if !known {
		g.countLong(c, key, text)
	}
	<-c.done
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.n
}

func (g *gauge) countLong(c *longCount, key uint64, text string) {
	defer func() {
		if c.panicked = recover(); c.panicked != nil {
			g.mu.Lock()
			delete(g.long, key)
			g.mu.Unlock()
		}
		close(c.done)
	}()
	c.n = g.counter(text)
}

// counted returns when the long texts of m are counted, or with ctx's error when ctx ends. Counting then goes on, for whoever asks again; Dispose waits for it.
func (e *Engine) counted(ctx context.Context, m *message.Message) error {
	size := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		size += len(p.Text) + len(p.Args) + len(p.Raw)
	}
	if size < longText {
		return nil
	}
	return e.countAside(ctx, *m)
}

func (e *Engine) countAside(ctx context.Context, m message.Message) error {
	m.Parts = slices.Clone(m.Parts) // the caller's, who may go on to use them
	for i := range m.Parts {
		m.Parts[i].Raw = slices.Clone(m.Parts[i].Raw)
	}
	done := make(chan any, 1)
	e.work.Go(func() {
		defer func() { done <- recover() }()
		e.gauge.messageCost(m)
	})
	select {
	case panicked := <-done:
		if panicked != nil {
			panic(panicked)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("core: count the tokens of a long message: %w", ctx.Err())
	}
}
