// Package openbrain is a core.Store and core.Searcher on top of an OpenBrain server: every entry is a thought, written,
// searched, changed and deleted over the server's REST interface.
//
// Start with Open, which needs a base URL and a key, from the configuration or from the environment:
//
//	cfg := openbrain.DefaultConfig()
//	cfg = cfg.WithEnv(os.Getenv) // OPENBRAIN_URL and OPENBRAIN_API_KEY where the configuration names none
//	store, err := openbrain.Open(ctx, cfg)
//
// # What a thought looks like
//
// The source is "openclaw:" and the agent's id (see Config.Source). The content is the entry's text, cleaned of what
// servers refuse and bounded in size: it is what the server searches. The metadata holds sessionId, turn, role, type,
// source and id for everybody, and what restores the entry exactly: the message travels as a JSON text inside a
// string, so that a server that reorders JSON or refuses NUL cannot change it. Strings that are not clean text are
// written as "base64:" and their base64.
//
// # Atomic batches without a batch call
//
// The interface stores one thought at a time. The new entries of one Append are therefore sent one after the other and
// share a batch id; the last one ends the batch. Readers hide the entries of a batch that has no end, so a half-sent
// batch shows nothing; a repeated Append sends only what is missing. A delete that would take the end of a batch away first
// passes the end on to a survivor. An Append whose entries belong to several agents is one batch per agent.
// Thoughts of one key or id that arrived twice (a request that timed out after the server had stored it, two writers at
// once) count as one: readers show the first, updates and deletes erase the others.
//
// A create whose answer is lost is looked for before it is sent again. One that is answered is believed when the server shows the
// entry: servers that remove duplicates answer with a thought they had. The entry is then sent again with a content of
// its own; a server that merges that too is an error that wraps errors.ErrUnsupported, and the batch is none. A thought that a
// server says it does not have, when told to delete it, must be gone from the list as well.
//
// Three things are beyond a client: a create that reaches the server after its entry was deleted brings the entry back (an erased entry
// that stays as its place, core.TypeErased, hides it); a process that dies after it took over entries of a batch that another process is still
// sending may leave them hidden, until one of the two repeats its Append; an entry of more than 24 MiB as JSON is refused.
//
// # What it costs
//
// The server can filter a listing by source only. A Scan lists the agent's thoughts once and pages through that snapshot;
// the first Append of an agent and every Delete and Update list them too, to know what is there. Each further
// Append costs one small request for news (see Config.Exclusive) and one request per entry; two where the answer to a create does not
// show it. A Get of few entries costs one request each. A listing takes one request per Config.PageSize thoughts, and one more to know that it
// ended. Where reads are frequent, put a local store in front.
//
// A search names the source, for servers that honour it; those that refuse the field are asked without.
//
// A server that has no "list with filters" is read through "recent"; where that does not show everything, Scan says so
// with an error that wraps errors.ErrUnsupported, rather than return a part. Views are not kept here.
//
// Thoughts without this package's metadata, or under another source, were written by others: they are skipped, and
// counted by Store.Skipped.
package openbrain
