// Package delegate leaves compaction to the runtime: each request is passed on once, and the runtime's result is handed
// back as it is.
//
// Start with New and hand the result to engine.New as Parts.Compactor; it needs a host that offers capability.DelegateHost:
//
//	compactor, err := delegate.New(host)
package delegate

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
)

// Compactor passes compactions on to the runtime. Make one with New; it is safe for concurrent use.
type Compactor struct {
	host core.Host
}

var _ core.Compactor = (*Compactor)(nil)

// New returns a compactor for this host. The error is a *capability.RequirementError when the host does not compact.
func New(host core.Host) (*Compactor, error) {
	if host == nil {
		host = core.NoHost{}
	}
	if err := check(host); err != nil {
		return nil, err
	}
	return &Compactor{host: host}, nil
}

// OwnsCompaction returns false.
func (*Compactor) OwnsCompaction() bool { return false }

// Compact calls the host's Compact once with c.Request and returns the result, unchanged, as Patch.Delegated. It asks c.Host, or
// the host given to New when c has none. An error is the host's, wrapped; there is no second attempt, because the first may have had an
// effect.
func (d *Compactor) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	if err := ctx.Err(); err != nil {
		return core.Patch{}, fmt.Errorf("delegate: compact %q: %w", c.Session, err)
	}
	host := c.Host
	if host == nil {
		host = d.host
	}
	if err := check(host); err != nil {
		return core.Patch{}, err
	}
	res, err := host.Compact(ctx, c.Request)
	if err != nil {
		return core.Patch{}, fmt.Errorf("delegate: compact %q: %w", c.Session, err)
	}
	return core.Patch{Delegated: &res}, nil
}

func check(host core.Host) error {
	have := host.Capabilities()
	if slices.Contains(have, capability.DelegateHost) {
		return nil
	}
	return &capability.RequirementError{
		Engine: "delegate", Operation: "compact", Missing: []capability.Name{capability.DelegateHost}, Have: have,
	}
}
