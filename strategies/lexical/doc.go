// Package lexical finds entries by their words, in memory, over any store.
//
// An Index follows the entries of a store and answers as a core.Searcher, for stores that cannot search on their side:
//
//	index, err := lexical.New(lexical.DefaultConfig())
//	...
//	engine, err := core.New(core.Parts{Store: store, Retriever: ..., Observers: []core.Observer{index}, ...})
//
// The first search for an agent reads that agent's entries from the store; from then on the index follows what it is told as an
// Observer. Agents are indexed apart, so no statistics leak from one to another.
//
// How it ranks: messages are cut into passages of a few sentences. A passage is known by its own words, by who spoke and
// when, and, with less weight, by the words of the passages around it in the session: an answer is found by the
// words of its question. Passages are ranked by BM25 over these widened frequencies, speakers that the query names are preferred, long messages are
// damped, and a message ranks as its best passage. English words are stemmed; Chinese, Japanese, Korean, Thai and other
// scripts without spaces are indexed by pairs of characters; identifiers such as paths, versions and snake_case names
// count both in one piece and by their parts.
package lexical
