package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/identity"
)

// Forget erases entries with the engine that the agent's configuration names, and makes every other engine read its sessions anew, so that none
// shows from memory what is gone. An engine that stores nothing is errors.ErrUnsupported.
func (i *Instance) Forget(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
	if req.Scope.Agent == "" {
		return engine.Receipt{}, fmt.Errorf("registry: forget: name the agent: %w", core.ErrInvalid)
	}
	eng, _, err := i.Lookup(ctx, req.Scope.Agent, req.Scope.Session)
	if err != nil {
		return engine.Receipt{}, err
	}
	f, ok := eng.(engine.Forgetter)
	if !ok {
		return engine.Receipt{}, fmt.Errorf("registry: forget: engine %q stores nothing: %w", eng.Info().ID, errors.ErrUnsupported)
	}
	rec, err := f.Forget(ctx, req)
	for _, other := range i.Engines() {
		if e, ok := other.(engine.Refresher); ok && !identity.Same(other, eng) {
			err = errors.Join(err, e.Refresh(ctx))
		}
	}
	return rec, err
}
