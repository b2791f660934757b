// Package hybrid recalls what several searchers agree on: words from a lexical index, meaning from a vector index, whatever else a store
// finds on its side.
//
//	retriever, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": words, "vectors": meaning})
//
// The searchers are asked at the same time and their finds fused by score: an entry scores the sum over searchers of weight times how many standard
// deviations it stands above what is found everywhere. Words count 1 and meaning Config.Meaning, unless Config.Weights says more: vectors find something for
// every question, and at equal weight a weak embedder drives out what the words had found. A single
// searcher keeps its own order exactly. A searcher that fails or is late is left out and named in the
// error beside what the others found; one that keeps failing is not asked for a while.
//
// Recency is no searcher here: fused at equal rank it drives out what was asked for. The newest part of the conversation has a
// share of its own, the window.
package hybrid
