// Package partstest builds the retrievers and compactors of this repository for the matrices of tests, which are in several packages: each store is played with
// each of them where its server, its file or its remote store can be had.
package partstest

import (
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/chain"
	"github.com/contextengine/contextengine/strategies/delegate"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/index"
	"github.com/contextengine/contextengine/strategies/lexical"
	"github.com/contextengine/contextengine/strategies/mask"
	"github.com/contextengine/contextengine/strategies/recent"
	"github.com/contextengine/contextengine/strategies/semantic"
	"github.com/contextengine/contextengine/strategies/summary"
)

// Retrievers returns what builds each retriever, by its name in the registry. Those that go by meaning ask an embedder.
func Retrievers() map[string]func(core.Embedder) (core.Retriever, error) {
	return map[string]func(core.Embedder) (core.Retriever, error){
		"recent": func(core.Embedder) (core.Retriever, error) { return recent.New(recent.DefaultConfig()) },
		"semantic": func(e core.Embedder) (core.Retriever, error) {
			meaning, err := semantic.NewVector(semantic.DefaultVectorConfig(), e)
			if err != nil {
				return nil, err
			}
			return semantic.New(semantic.DefaultConfig(), meaning)
		},
		"hybrid": func(e core.Embedder) (core.Retriever, error) {
			words, err := lexical.New(lexical.DefaultConfig())
			if err != nil {
				return nil, err
			}
			meaning, err := semantic.NewVector(semantic.DefaultVectorConfig(), e)
			if err != nil {
				return nil, err
			}
			return hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": words, "vector": meaning})
		},
	}
}

// Compactors returns what builds each compactor, by its name in the registry.
func Compactors() map[string]func(conformance.Env) (core.Compactor, error) {
	return map[string]func(conformance.Env) (core.Compactor, error){
		"archive":  func(conformance.Env) (core.Compactor, error) { return archive.New(archive.DefaultConfig()) },
		"delegate": func(env conformance.Env) (core.Compactor, error) { return delegate.New(env.Host) },
		"summary": func(env conformance.Env) (core.Compactor, error) {
			return summary.New(summary.DefaultConfig(), env.Model)
		},
		"mask":  func(conformance.Env) (core.Compactor, error) { return mask.New(mask.DefaultConfig()) },
		"index": func(conformance.Env) (core.Compactor, error) { return index.New(index.DefaultConfig()) },
		"chain": func(conformance.Env) (core.Compactor, error) { return tiers() },
	}
}

// Tier reports whether a compactor is made to be a tier of a chain, or is the chain. What tiers do differently they do in core; a few sessions find what a
// store makes of it.
func Tier(compactor string) bool {
	return compactor == "mask" || compactor == "index" || compactor == "chain"
}

// tiers is the chain that the framework recommends where no model is asked.
func tiers() (core.Compactor, error) {
	m, err := mask.New(mask.DefaultConfig())
	if err != nil {
		return nil, err
	}
	x, err := index.New(index.DefaultConfig())
	if err != nil {
		return nil, err
	}
	a, err := archive.New(archive.DefaultConfig())
	if err != nil {
		return nil, err
	}
	return chain.New(m, x, a)
}
