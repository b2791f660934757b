// Package lexical finds entries by their words, in memory, over any store.
//
// An Index follows the entries of a store and answers as a core.Searcher, for stores that cannot search on their side:
//
//	index, err := lexical.New(lexical.DefaultConfig())
//	...
//	e, err := engine.New(engine.Parts{Store: store, Retriever: ..., Observers: []core.Observer{index}, ...})
//	...
//	err = index.Close() // before the store
//
// The first search for an agent reads that agent's entries from the store, or its index from the file beside the store. From then on the
// index follows the store's change feed, where there is one, and what it is told as an Observer. However it came about, the same
// entries give the same hits in the same order, with the same scores. Agents are indexed apart, so no statistics leak from one to another.
//
// How it ranks: messages are cut into passages of a few sentences. A passage is known by its own words, by who spoke and
// when, and, with less weight, by the words of the passages around it in the session: an answer is found by the
// words of its question. Passages are ranked by BM25 over these widened frequencies, speakers that the query names are preferred, long messages are
// damped, and a message ranks as its best passage. When the query is a question, messages that ask are worth less and what follows them
// more, as is what follows a call of a tool; when it asks for a time, passages that speak of one are preferred. English words are brought to their base form and stemmed. The language of other texts is told by their script
// and function words, message by message: their words are stemmed, and indexed by their first five letters as well, so that a question meets an answer
// whose language was not seen. Chinese, Japanese, Korean, Thai and other scripts without spaces are indexed by pairs of characters; identifiers such as paths, versions, snake_case and
// camelCase names count both in one piece and by their parts, and are found by their beginning. Days that a query names are matched with
// the time of entries.
//
// A search is exact: it finds what ranking all passages would. Passages are kept in blocks of eight; for each block an upper bound of the score is added up from what its terms can be worth there, the most promising
// blocks are scored first, and those whose bound is below the threshold that results are pruned, as block-max indexes do (Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max Indexes", SIGIR 2011).
// What frequent terms are worth is bounded apart from the rest, as in MaxScore (Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995), and looked up only where the rest does not decide.
package lexical
