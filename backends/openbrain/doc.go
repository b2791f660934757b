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
// source and id for everybody, and what restores the entry exactly, compressed and in base64, so that a server that reorders JSON or refuses NUL cannot
// change it. Names that are not clean text are written as "base64:" and their base64.
//
// # Atomic batches without a batch call
//
// The interface stores one thought at a time. The new entries of one Append are therefore sent one after the other and
// share a batch id; the last one ends the batch. Readers hide the entries of a batch that has no end, so a half-sent
// batch shows nothing; a repeated Append sends only what is missing. A delete that would take the end of a batch away first
// passes the end on to a survivor. An Append whose entries belong to several agents is one batch per agent.
// A server that stores several thoughts at once, as that of this project does, is sent the new entries of an agent in one request, and such a batch is stored whole or not at all.
// Thoughts of one key or id that arrived twice (a request that timed out after the server had stored it, two writers at
// once) count as one: readers show the first, updates and deletes erase the others.
//
// A create whose answer is lost is looked for before it is sent again. One that is answered is believed when the server shows the
// entry: servers that remove duplicates answer with a thought they had. The entry is then sent again with a content of
// its own; a server that merges that too is an error that wraps errors.ErrUnsupported, and the batch is none. A thought that a
// server says it does not have, when told to delete it, must be gone from the list as well.
//
// # Several writers of one session
//
// A position in a session exists once. A server that keeps positions, as that of this project does, answers the second thought for one with 409,
// which is core.ErrConflict: the engine reads what is new and goes on behind it. The position travels in the header OpenBrain-Position, which servers that
// keep positions repeat in the answer, see Store.KeepsPositions.
//
// On a server that has only the documented calls a second writer is recognised by the look at the newest thoughts in front of every append, and refused in the
// same way. Two that append in the same moment are both stored: nothing is lost, the thought that was stored first has the position, and an engine
// that reads both gives the other one a position of its own behind it. While a batch of one writer has no end, what others want to store with its keys or at its positions is
// refused, for a minute after its last thought was stored: then its writer is taken for dead, and what it left is taken over.
//
// What others ingest and erase is seen at the next call on a server that counts changes and deletions, as that of this project does, see Store.Tail. On one that has
// only the documented calls, what others ingest is seen when a session is written next, and what they erase when it is read anew: by a process that begins, or
// has not used the session for long. Until then a window may show it.
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
// The body of a search holds the documented keys, query and limit. Where an answer has the header OpenBrain-Search, as that of this project's own
// server has, the searches after it name the source as well.
//
// # Servers that have the documented calls alone
//
// What a server refuses is remembered as long as the process lives: listing with filters, reading one thought, statistics. A server that cannot list
// is read through "recent", whose bound is found out once. Where that does not show everything, a Store knows what it wrote and found itself, and
// the newest thoughts of the rest; Scan returns that, and the log says it once. What a search finds is believed, shown or not.
// An entry that is out of sight is core.ErrNotFound, and errors.ErrUnsupported too. Views are not kept here. What a host still shows of a session after a restart is searched
// for before it is stored, so that it is not stored once more: see Store.Recognise. A message is known again by the host's key, id or time for it.
//
// # What is kept
//
// With KeepAll a thought restores its entry byte for byte. KeepText is for a store with a local one in front of it (package outbox): the content, the
// document's metadata, and the entry's id, position and time; tool calls, images and the hosts' bytes stay in front. Nothing is listed then, and
// each entry is a thought of its own.
//
// metadata.id names the session (long names are hashed), so that one bulk delete erases a session, see Store.EraseSession; the entry's id is in
// metadata.entry. The first version of the metadata had the entry's id there; it is read, changed and erased as before.
//
// Thoughts without this package's metadata, or under another source, were written by others: they are skipped, and
// counted by Store.Skipped.
package openbrain
