package engine

import (
	"context"

	"github.com/contextengine/contextengine/core"
)

// begin tells the telemetry, if there is one, of an operation; end is called with its outcome.
func (e *Engine) begin(ctx context.Context, name string, id core.SessionID) (_ context.Context, end func(error)) {
	if e.telemetry == nil {
		return ctx, untold
	}
	return e.telemetry.Begin(ctx, core.Operation{Name: name, Session: id})
}

func untold(error) {}
