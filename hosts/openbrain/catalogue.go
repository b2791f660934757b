package openbrain

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

const (
	// catalogueSession holds the entries of the reserved agent, metaSource names the source of one.
	catalogueSession = "sources"
	metaSource       = "source"
	// catalogueAge is how old the list of sources may be for calls that span all of them: another server may have added one.
	catalogueAge = time.Second
)

// catalogue knows which sources there are. What it knows is a copy of what the store holds: sources are only ever added.
type catalogue struct {
	store core.Store
	now   func() time.Time
	// reading is held by whoever reads the store.
	reading chan struct{}

	mu     sync.Mutex
	byName map[string]*source
	byTag  map[uint32][]*source
	// read is when the last complete reading began. Readings are numbered: begun is the last that began, completed the last that
	// got to the end.
	read             time.Time
	begun, completed int
}

func newCatalogue(store core.Store, now func() time.Time) *catalogue {
	return &catalogue{
		store: store, now: now, reading: make(chan struct{}, 1),
		byName: map[string]*source{}, byTag: map[uint32][]*source{},
	}
}

// register returns a source, which is in the store's list from then on.
func (c *catalogue) register(ctx context.Context, name string, seq int64) (*source, error) {
	if s := c.known(name); s != nil {
		return s, nil
	}
	m := message.New(message.System, name)
	sum := sha256.Sum256([]byte(name))
	id := "source-" + hex.EncodeToString(sum[:24])
	entry := core.Entry{
		ID: id, Agent: CatalogueAgent, Session: catalogueSession, Seq: seq, Role: m.Role, Type: core.TypeMessage,
		Time: time.UnixMicro(seq).UTC(), Tokens: tokensAtMost(name), Key: id, Fingerprint: message.Fingerprint(m), Message: m,
		Meta: map[string]string{metaSource: name},
	}
	_, err := c.store.Append(ctx, []core.Entry{entry})
	for try := 0; errors.Is(err, core.ErrConflict) && try < 5; try++ {
		entry.Seq++ // another server gave out the same
		_, err = c.store.Append(ctx, []core.Entry{entry})
	}
	if err != nil {
		return nil, fmt.Errorf("openbrain: register source: %w", err)
	}
	return c.add(name), nil
}

func (c *catalogue) known(name string) *source {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byName[name]
}

func (c *catalogue) add(name string) *source {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byName[name]
	if s == nil {
		s = newSource(name)
		c.byName[name] = s
		c.byTag[tagOf(name)] = append(c.byTag[tagOf(name)], s)
	}
	return s
}

// named returns a source, or nil when there is none.
func (c *catalogue) named(ctx context.Context, name string) (*source, error) {
	if s := c.known(name); s != nil {
		return s, nil
	}
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	return c.known(name), nil
}

// tagged returns the sources that ids with this tag can be of.
func (c *catalogue) tagged(tag uint32) []*source {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.byTag[tag])
}

// all returns the sources that a caller may use, by name.
func (c *catalogue) all(ctx context.Context, who *caller) ([]*source, error) {
	c.mu.Lock()
	fresh := !c.read.IsZero() && c.now().Sub(c.read) < catalogueAge
	c.mu.Unlock()
	if !fresh {
		if err := c.refresh(ctx); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*source
	for name, s := range c.byName {
		if who.may(name) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *source) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}

// refresh reads the store's list. Callers that come while it is read wait for one reading that began after they came.
func (c *catalogue) refresh(ctx context.Context) error {
	c.mu.Lock()
	before := c.begun
	c.mu.Unlock()
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		return fmt.Errorf("openbrain: read sources: %w", ctx.Err())
	}
	c.mu.Lock()
	if c.completed > before {
		c.mu.Unlock()
		return nil
	}
	c.begun++
	read := c.now()
	c.mu.Unlock()
	for e, err := range core.All(ctx, c.store, core.Scope{Agent: CatalogueAgent, Session: catalogueSession}, false) {
		if err != nil {
			return fmt.Errorf("openbrain: read sources: %w", err)
		}
		if name := e.Meta[metaSource]; name != "" {
			c.add(name)
		}
	}
	c.mu.Lock()
	c.read, c.completed = read, c.begun
	c.mu.Unlock()
	return nil
}
