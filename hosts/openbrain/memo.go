package openbrain

import (
	"context"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// memoSize is how many queries are remembered.
const memoSize = 64

// memo is an embedder that asks for the vector of one text once: a search over a thousand sources embeds its query in each of them.
type memo struct {
	core.Embedder

	mu    sync.Mutex
	calls map[string]*memoCall
	order []string // oldest first
}

type memoCall struct {
	done    chan struct{}
	vectors [][]float32
	err     error
}

func newMemo(e core.Embedder) *memo { return &memo{Embedder: e, calls: map[string]*memoCall{}} }

// Embed implements core.Embedder. Failures are not remembered. The vectors are shared and must not be changed.
func (m *memo) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) != 1 {
		return m.Embedder.Embed(ctx, texts)
	}
	for {
		m.mu.Lock()
		c, there := m.calls[texts[0]]
		if !there {
			c = &memoCall{done: make(chan struct{})}
			m.put(texts[0], c)
		}
		m.mu.Unlock()
		if !there {
			c.vectors, c.err = m.Embedder.Embed(ctx, texts)
			if c.err != nil {
				m.drop(texts[0], c)
			}
			close(c.done)
			return c.vectors, c.err
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if c.err == nil {
			return c.vectors, nil
		}
		// The one who asked may have given up; this call has its own time.
	}
}

func (m *memo) put(text string, c *memoCall) {
	if len(m.order) >= memoSize {
		delete(m.calls, m.order[0])
		m.order = slices.Delete(m.order, 0, 1)
	}
	m.calls[text] = c
	m.order = append(m.order, text)
}

func (m *memo) drop(text string, c *memoCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls[text] == c {
		delete(m.calls, text)
		m.order = slices.DeleteFunc(m.order, func(s string) bool { return s == text })
	}
}
