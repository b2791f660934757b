package registry

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// OpenStore opens a store by name, for programs that need no engine. The caller closes it. Of opts it uses Getenv, Logger, Host and
// Factory. Errors are ErrInvalid naming the key, or what the store's factory reports.
func (r *Registry) OpenStore(ctx context.Context, c Choice, opts BuildOptions) (core.Store, error) {
	d := decoder{r: r}
	full, err := d.complete(c, KindStore, path{string(KindStore)})
	if err != nil {
		return nil, fmt.Errorf("registry: open store: %w", err)
	}
	full = r.locatedChoice(KindStore, full, opts.Factory)
	store, err := newMaker(r, opts.env(), nil, "").openStore(ctx, full, opts.env())
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return store, nil
}

// OpenModel opens a model as an engine would, for programs that want nothing else. The caller closes what of it can be closed.
func (r *Registry) OpenModel(ctx context.Context, c Choice, opts BuildOptions) (Model, error) {
	m, err := open[Model](ctx, newMaker(r, opts.env(), nil, ""), KindModel, c, opts.env())
	if err != nil {
		return Model{}, fmt.Errorf("registry: %w", err)
	}
	return m, nil
}
