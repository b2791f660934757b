package openbrain

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/internal/endpoint"
)

// firstEmbedWait is how long the worker waits after the first failure; each further one doubles it.
const firstEmbedWait = 200 * time.Millisecond

// embedding keeps vectors up to date in the background. What is to do is a set of sources, not of thoughts: which thoughts of a source
// are pending, the index knows itself. So the queue is never longer than the list of sources, and nothing in it can be lost.
type embedding struct {
	vectors Vectors
	cfg     Config
	log     *slog.Logger
	stop    context.CancelFunc
	done    chan struct{}
	wake    chan struct{}
	// down says that the worker's last try failed; searches then go without vectors.
	down atomic.Bool
	// rest is until when searches do not ask an embedder that failed one of them, in nanoseconds of Unix time.
	rest atomic.Int64

	mu     sync.Mutex
	queue  []string
	queued map[string]bool
	// loaded holds the sources of which the index has read what the store holds.
	loaded map[string]bool
}

func startEmbedding(v Vectors, cfg Config, log *slog.Logger, c *catalogue) *embedding {
	ctx, cancel := context.WithCancel(context.Background())
	e := &embedding{
		vectors: v, cfg: cfg, log: log, stop: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1),
		queued: map[string]bool{}, loaded: map[string]bool{},
	}
	go e.run(ctx, c)
	return e
}

func (e *embedding) close() {
	e.stop()
	<-e.done
}

// enqueue has the worker embed what is pending of a source.
func (e *embedding) enqueue(source string) {
	e.mu.Lock()
	if !e.queued[source] {
		e.queued[source] = true
		e.queue = append(e.queue, source)
	}
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *embedding) take() (string, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return "", false
	}
	name := e.queue[0]
	e.queue = e.queue[1:]
	delete(e.queued, name) // what comes while it is embedded queues it again
	return name, true
}

func (e *embedding) run(ctx context.Context, c *catalogue) {
	defer close(e.done)
	wait := time.Duration(0)
	for all := false; ctx.Err() == nil; {
		var err error
		if !all {
			if err = e.enqueueAll(ctx, c); err == nil {
				all = true
			}
		} else if name, ok := e.take(); ok {
			err = e.embed(ctx, name)
		} else {
			select {
			case <-e.wake:
			case <-ctx.Done():
			}
			continue
		}
		if err == nil {
			wait = 0
			continue
		}
		if ctx.Err() != nil {
			return
		}
		wait = min(max(2*wait, firstEmbedWait), e.cfg.EmbedMaxWait)
		e.log.WarnContext(ctx, "openbrain: thoughts stay pending, the embedder failed", slog.Any("error", err), slog.Duration("wait", wait))
		_ = endpoint.Sleep(ctx, wait) // the loop asks ctx itself
	}
}

// enqueueAll queues every source once, after a start.
func (e *embedding) enqueueAll(ctx context.Context, c *catalogue) error {
	sources, err := c.all(ctx, &caller{})
	if err != nil {
		return err
	}
	for _, s := range sources {
		e.enqueue(s.name)
	}
	return nil
}

// embed embeds what is pending of a source. When it fails without having got anywhere, the error is returned.
func (e *embedding) embed(ctx context.Context, name string) error {
	before := e.vectors.Pending(name)
	round, cancel := context.WithTimeout(ctx, e.cfg.EmbedTimeout)
	defer cancel()
	err := hide(e.vectors.Load(round, name), name)
	after := e.vectors.Pending(name)
	e.mu.Lock()
	if err == nil || after > 0 {
		e.loaded[name] = true
	}
	e.mu.Unlock()
	if err == nil {
		e.down.Store(false)
		return nil
	}
	e.enqueue(name)
	if after < before { // a long history that takes several rounds
		return nil
	}
	e.down.Store(true)
	return err
}

// searchRest is how long searches do without vectors after one of them had to.
const searchRest = 5 * time.Second

// usable reports whether a search should ask for vectors.
func (e *embedding) usable(now time.Time) bool {
	return !e.down.Load() && now.UnixNano() >= e.rest.Load()
}

// pending returns how many of a source's thoughts have no vector yet.
func (e *embedding) pending(source string, total int) int {
	e.mu.Lock()
	loaded := e.loaded[source]
	e.mu.Unlock()
	if !loaded {
		return total
	}
	return min(e.vectors.Pending(source), total)
}
