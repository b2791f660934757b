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
// # Calls
//
//	POST   /v1/thoughts                {content, source?, metadata?}: 201, or 200 when the key was known
//	GET    /v1/thoughts                ?source=&metadata_id=&limit=&offset=&order=asc|desc&cursor=
//	DELETE /v1/thoughts                ?source=&metadata_id=: all that match both; 400 without a filter
//	GET    /v1/thoughts/recent         ?limit=&source=
//	GET, PATCH, DELETE /v1/thoughts/{id}
//	POST   /v1/search                  {query, limit?, source?, metadata?}
//	GET    /v1/stats                   {total, embedded, pending, by_source, sources}
//	GET    /healthz, /readyz           without a key
//
// Errors are {"detail": text}, and 422 with a list of {type, loc, msg}; neither repeats what was sent.
//
// Creating is idempotent: the Idempotency-Key header, or else a string "id" in the metadata, names the request within its
// source. The same request again is answered with the stored thought; another request under a known key is 409.
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
// # Keys
//
// A key is limited to the sources that match its patterns: thoughts of others do not exist for it. Without keys
// a server only answers on loopback addresses, and only to requests that name one.
package openbrain
