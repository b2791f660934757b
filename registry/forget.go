package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// Forget erases entries with the engine that the agent's configuration names, and makes every other engine read its sessions anew, so that none
// shows from memory what is gone. An engine that stores nothing is errors.ErrUnsupported.
func (i *Instance) Forget(ctx context.Context, req core.ForgetRequest) (core.Receipt, error) {
	if req.Scope.Agent == "" {
		return core.Receipt{}, fmt.Errorf("registry: forget: name the agent: %w", core.ErrInvalid)
	}
	engine, _, err := i.Lookup(ctx, req.Scope.Agent, req.Scope.Session)
	if err != nil {
		return core.Receipt{}, err
	}
	f, ok := engine.(core.Forgetter)
	if !ok {
		return core.Receipt{}, fmt.Errorf("registry: forget: engine %q stores nothing: %w", engine.Info().ID, errors.ErrUnsupported)
	}
	rec, err := f.Forget(ctx, req)
	for _, other := range i.Engines() {
		if e, ok := other.(*core.Engine); ok && other != engine {
			err = errors.Join(err, e.Refresh(ctx))
		}
	}
	return rec, err
}
