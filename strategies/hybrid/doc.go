// Package hybrid recalls what several searchers agree on: words from a lexical index, meaning from a vector index, whatever else a store
// finds on its side.
//
//	retriever, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": words, "vectors": meaning})
//
// The searchers are asked at the same time and their finds fused by weighted reciprocal rank: an entry scores the sum over
// searchers of weight / (K + its rank there). Ranks, because scores of different searchers cannot be compared. A single
// searcher keeps its own order exactly. A searcher that fails or is late is left out and named in the
// error beside what the others found; one that keeps failing is not asked for a while.
//
// Recency is no searcher here: fused at equal rank it drives out what was asked for. The newest part of the conversation has a
// share of its own, the window.
package hybrid
