package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// Combination is a retriever, a compactor and a store that need nothing outside the process.
type Combination struct {
	Store, Retriever, Compactor string

	r       *Registry
	samples [3]chosen
}

type chosen struct {
	kind Kind
	name string
	sample
}

// Name names the combination in test output.
func (c Combination) Name() string { return c.Retriever + "+" + c.Compactor + "+" + c.Store }

// Combinations yields every retriever with every compactor and every store that were registered with Conformance, in an order
// that stays the same.
func (r *Registry) Combinations() []Combination {
	var out []Combination
	for _, retriever := range r.samplesOf(KindRetriever) {
		for _, compactor := range r.samplesOf(KindCompactor) {
			for _, store := range r.samplesOf(KindStore) {
				out = append(out, Combination{
					Retriever: retriever.label(), Compactor: compactor.label(), Store: store.label(),
					r: r, samples: [3]chosen{retriever, compactor, store},
				})
			}
		}
	}
	return out
}

func (c chosen) label() string {
	if c.variant == "" {
		return c.name
	}
	return c.name + "/" + c.variant
}

func (r *Registry) samplesOf(kind Kind) []chosen {
	var out []chosen
	for _, name := range slices.Sorted(maps.Keys(r.parts[kind])) {
		for _, s := range r.parts[kind][name].samples {
			out = append(out, chosen{kind: kind, name: name, sample: s})
		}
	}
	return out
}

// New returns a new engine with a new store, which the engine's Dispose closes. ids makes entry ids and may be nil for random ones. A
// host that lacks what a part needs is a capability.ErrRequirement.
func (c Combination) New(ctx context.Context, host core.Host, ids func() string) (*engine.Engine, error) {
	m := newMaker(c.r, BuildOptions{Host: host, Getenv: func(string) string { return "" }}.env(), ids, "")
	m.ownStore = true
	cfg := DefaultConfig()
	cfg.Engine.Type = DefaultEngine
	cfg.Core.Recall.Gate = false // every turn recalls: what is proven holds with a block and without
	for _, s := range c.samples {
		choice := Choice{Type: s.name, Options: encode(s.config())}
		switch s.kind {
		case KindStore:
			cfg.Store = choice
		case KindRetriever:
			cfg.Retriever = choice
		case KindCompactor:
			cfg.Compactor = choice
		}
	}
	env := m.base
	env.Config, env.maker = cfg, m
	e, err := env.Compose(ctx)
	if err != nil {
		return nil, fmt.Errorf("registry: combination %s: %w", c.Name(), err)
	}
	return e, nil
}
