package engine

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/contextengine/contextengine/core"
)

// grace is how long a compactor that was told to stop may take to hand over what it has. One that does not return even then is left behind.
const grace = 5 * time.Second

// guarded calls a part. A panic is the part's failure and not the engine's: what it says may be from a conversation, so only its kind is told; where it
// happened is logged.
func (e *Engine) guarded(ctx context.Context, part string, call func(context.Context) error) (err error) {
	ctx, end := e.begin(ctx, part, core.SessionID{})
	defer func() { end(err) }()
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		err = fmt.Errorf("core: the %s panicked (%T): %w", part, r, core.ErrUnavailable)
		if own, ok := r.(runtime.Error); ok {
			err = fmt.Errorf("core: the %s panicked: %s: %w", part, own.Error(), core.ErrUnavailable)
		}
		e.log.ErrorContext(ctx, "context engine part panicked", "engine", e.info.ID, "part", part, "stack", string(debug.Stack()))
	}()
	return call(ctx)
}

// askCompactor runs the compactor. What it returns when its time is over is used, as long as it comes soon.
func (e *Engine) askCompactor(ctx context.Context, c core.Compaction) (core.Patch, error) {
	type answer struct {
		patch core.Patch
		err   error
	}
	ch := make(chan answer, 1)
	e.work.Go(func() {
		var a answer
		a.err = e.guarded(ctx, "compactor", func(ctx context.Context) (err error) {
			a.patch, err = e.compactor.Compact(ctx, c)
			return err
		})
		ch <- a
	})
	select {
	case a := <-ch:
		return a.patch, a.err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case a := <-ch:
		return a.patch, a.err
	case <-late.C:
		return core.Patch{}, fmt.Errorf("core: compact %q: the compactor does not return: %w", c.Session, context.Cause(ctx))
	}
}
