package openbrain

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
)

// headerChanges is in the answer to a list of recent thoughts of one source: a number that is another one after a thought of the source was changed or
// deleted. Who keeps thoughts in memory sees by it whether they are still what they were.
const headerChanges = "OpenBrain-Changes"

// changes counts the changes and deletions of sources: in the store, as the version of a view that nothing else is kept in, so that all servers over it
// share the count. Where the store has no room for that, each server counts for itself.
type changes struct {
	views core.ViewStore
	own   atomic.Uint64
}

func newChanges(store core.Store, now time.Time) *changes {
	c := &changes{}
	c.views, _ = core.As[core.ViewStore](store)
	c.own.Store(uint64(now.UnixMicro())) // another number than before a restart
	return c
}

// of returns the count of a source.
func (c *changes) of(ctx context.Context, source string) (uint64, error) {
	v, err := c.load(ctx, source)
	return v.Version, err
}

func (c *changes) load(ctx context.Context, source string) (core.View, error) {
	id := core.SessionID{Agent: source, Session: Session}
	if c.views == nil {
		return core.View{Session: id, Version: c.own.Load()}, nil
	}
	v, err := c.views.LoadView(ctx, id)
	if errors.Is(err, core.ErrNotFound) {
		return core.View{Session: id}, nil
	}
	if err != nil {
		return v, fmt.Errorf("openbrain: count changes: %w", err)
	}
	return v, nil
}

// add counts one more, after it was made and before it is acknowledged.
func (c *changes) add(ctx context.Context, source string) error {
	if c.views == nil {
		c.own.Add(1)
		return nil
	}
	ctx = context.WithoutCancel(ctx) // it was made, whether the client waits or not
	v, err := c.load(ctx, source)
	if err != nil {
		return err
	}
	v.Version++
	// Whoever was faster counted for both: it was counted after this one was made.
	if err := c.views.SwapView(ctx, v); err != nil && !errors.Is(err, core.ErrConflict) {
		return fmt.Errorf("openbrain: count changes: %w", err)
	}
	return nil
}
