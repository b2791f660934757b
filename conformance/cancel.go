package conformance

import (
	"context"
	"errors"
	"time"
)

// errWentAway is why a call is cancelled: a cause of the caller's own, which is not the context's error.
var errWentAway = errors.New("whoever asked went away")

// cancellable returns a context that is cancelled with a cause, as callers do: what is called returns the context's error all the same.
func cancellable(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, func() { cancel(errWentAway) }
}

// ending is a way in which a context ends, and its error.
type ending struct {
	what    string
	context func(context.Context) (context.Context, context.CancelFunc)
	err     error
}

// endings are both ways, for calls whose context has ended before they are made.
func endings() []ending {
	return []ending{
		{"was cancelled", cancelled, context.Canceled},
		{"had a deadline that has passed", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, time.Now().Add(-time.Second))
		}, context.DeadlineExceeded},
	}
}
