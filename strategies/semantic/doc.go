// Package semantic recalls what one searcher finds for the turn at hand: a store that searches on its side, a lexical index, or the
// VectorIndex of this package.
//
//	index, err := semantic.NewVector(semantic.DefaultVectorConfig(), embedder)
//	...
//	retriever, err := semantic.New(semantic.DefaultConfig(), index)
//
// The retriever passes on what it hears as an observer, and the store it is attached to, to a searcher that wants them.
package semantic
