package conformance

import (
	"context"
	"errors"
)

// errWentAway is why a call is cancelled: a cause of the caller's own, which is not the context's error.
var errWentAway = errors.New("whoever asked went away")

// cancellable returns a context that is cancelled with a cause, as callers do: what is called returns the context's error all the same.
func cancellable(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, func() { cancel(errWentAway) }
}
