package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// reembedder is a searcher that keeps vectors of entries.
type reembedder interface {
	Reembed(ctx context.Context, agent string, progress func(done, total int)) error
}

// Reembed makes the vectors of an agent's entries anew where they are missing or of another model than the configured one, in every searcher
// that keeps vectors. Progress, when not nil, is told from this goroutine. Without such a searcher it is errors.ErrUnsupported.
func (i *Instance) Reembed(ctx context.Context, agent string, progress func(done, total int)) error {
	if _, _, err := i.Lookup(ctx, agent, ""); err != nil {
		return err
	}
	select {
	case i.gate <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("registry: reembed: %w", ctx.Err())
	}
	parts := slices.Clone(i.maker.opened)
	<-i.gate
	found := false
	for _, p := range parts {
		r, ok := p.(reembedder)
		if !ok {
			continue
		}
		found = true
		if err := r.Reembed(ctx, agent, progress); err != nil {
			return fmt.Errorf("registry: reembed: %w", err)
		}
	}
	if !found {
		return fmt.Errorf("registry: reembed: no searcher of agent %q keeps vectors: set the keys searchers to vector, and embedder: %w", agent, errors.ErrUnsupported)
	}
	return nil
}
