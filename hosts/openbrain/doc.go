// Package openbrain is the server side of the OpenBrain REST interface, over any core.Store.
//
// A thought is a content, a source and a JSON object of metadata. Start with New, which takes a store and a searcher over
// that store, and let Serve have a listener:
//
//	index, err := lexical.New(lexical.DefaultConfig())
//	err = index.Attach(store)
//	server, err := openbrain.New(openbrain.DefaultConfig(), store, index)
//	defer server.Close() // before the store is closed
//	err = server.Serve(ctx, listener)
//
// Run does all of that in one call; package verbs is the command line around it, and docs/selfhosting.md says how to run one.
//
// # Calls
//
//	POST   /v1/thoughts                {content, source?, metadata?}: 201, or 200 when the key was known
//	POST   /v1/thoughts/batch          {source?, thoughts: [{content, metadata?, position?}]}: {thoughts: [{id, created_at}]}
//	GET    /v1/thoughts                ?source=&metadata_id=&limit=&offset=&order=asc|desc&cursor=
//	DELETE /v1/thoughts                ?source=&metadata_id=: all that match both; 400 without a filter
//	GET    /v1/thoughts/recent         ?limit=&source=
//	GET, PATCH, DELETE /v1/thoughts/{id}
//	GET    /v1/changes                 ?source=&since=&limit=: {thoughts, gone, mark, more}
//	POST   /v1/search                  {query, limit?, source?, metadata?}
//	GET    /v1/stats                   {total, embedded, pending, by_source, sources}
//	GET    /healthz, /readyz           without a key
//
// Errors are {"detail": text}, and 422 with a list of {type, loc, msg}; neither repeats what was sent.
//
// Creating is idempotent: the Idempotency-Key header, or else a string "id" in the metadata, names the request within its
// source. The same request again is answered with the stored thought; another request under a known key is 409.
//
// An append can be conditional, which is an extension: the header OpenBrain-Position names a position in the source, in words of the client's own. It takes the place
// of the key. The first thought for a position is stored, the same request again is answered with it, and any other is 409, also when it
// comes through another server of the same store. The answer has the header too, with the value "kept". A position is free again when its thought was deleted, and the
// next one there has the id of the one before: the header OpenBrain-Created in a PATCH or DELETE names the created_at of the thought that is meant, and any other is 404.
//
// A batch, which is an extension as well, stores 1 to 10,000 thoughts of one source, all or none. Each names a position, or has a string "id" in its
// metadata, so that the same request again stores nothing twice. The answer names them in the order of the request.
// Lists say with the header OpenBrain-Batch how many bytes its body may have.
//
// # How thoughts are stored
//
// The agent of a thought's entry is its source, the whole string. All thoughts of a source are one session whose Seq is the time of
// creation in microseconds: that is what makes "the newest" a short read on any store, and lets metadata change, the session's name in
// it included, without moving an entry. Content and metadata are kept byte for byte. Sources are listed under the reserved agent
// CatalogueAgent, because a store has no scope across agents; an entry is written there before the first thought
// of a source.
//
// Several servers may serve one store, when the store allows that. A thought that one of them stored can be read, listed and found
// through the others at once when its source is named or known there, and within a second otherwise. Their clocks should agree within
// five seconds. A text that was changed through one server may be found by its old words through another until that one restarts; what
// is shown is always what the store holds.
//
// An answer of recent for one source has the header OpenBrain-Changes: a number that is another one after a thought of the source was changed or deleted, through
// whichever server over the store, as long as that keeps views (core.ViewStore).
//
// Over a store that is a core.ChangeFeed, a list of one source has the header OpenBrain-Feed, and /v1/changes says what happened to the source since a mark, oldest
// first: thoughts that were stored or changed, as they are now, and the ids of those that are gone. The answer's mark is the next one to ask with; without one it begins
// before the first thought. A mark that is not good any more is 410.
//
// # Search
//
// Thoughts are found by words, and by meaning too where the server has an embedder. Embedding happens in the background and never holds up
// storing. While the embedder is down, thoughts wait and searches go by words alone; the header OpenBrain-Search says how a search was
// answered.
//
// # Keys
//
// A key is limited to the sources that match its patterns: thoughts of others do not exist for it. Without keys
// a server only answers on loopback addresses, and only to requests that name one. Keys are random and kept as their SHA-256 only, in the
// configuration or in a keys file: a JSON object {"keys": [{"name", "sha256", "sources", "created"}]} that nobody but its owner may read. A
// server reads the file again within a second of a change; one that cannot be read changes nothing, one without keys lets nobody in.
// Certificate files are read again in the same way.
//
// # Limits
//
// Request bodies, pages, headers, requests a second for each key, and requests at the same time are bounded, and so is the time for
// sending, working on and answering a request; see Config. So is the memory that bodies and answers hold, all together: who stands still makes room. A request that is too much is answered with 413, 422, 429 or 503, the last two with
// Retry-After.
package openbrain
