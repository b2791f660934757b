// Package outbox puts a local durable store in front of a remote one. An append is acknowledged as soon as it is durable
// locally, and delivered to the remote store in the background: the agent goes on working while the remote is slow or down.
//
// Start with Open; the Store owns both stores from then on:
//
//	cfg := outbox.DefaultConfig() // the journal lies beside the local store's file
//	store, err := outbox.Open(ctx, cfg, local, remote)
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//
// # Reads are local
//
// The local store keeps everything that passed through, so Get and Scan answer from it alone: as fast, as current and
// as available as it is, and what still waits is there like all else. Its companions (views, change feed, vectors, files beside it)
// are found through Unwrap. What is written to the local store directly is not delivered, see Requeue.
//
// A remote store that already has history is copied when Config.Hydrate is set: agent by agent as they are first
// used, in the background, resumed after a restart. A read that needs what was not copied yet copies it first, and
// is core.ErrUnavailable when the remote does not answer: never a shorter history. Without Hydrate, history that is only
// remote is not read.
//
// # What waits
//
// The queue is a journal file. Before the local store is changed, the ids of the entries about to change are
// written to it, and nothing else: no content, no keys, no metadata. Delivery makes the remote entry equal to the
// local one as it is then. So an entry that was erased before its delivery is delivered erased or not at all, there are no
// bytes of it in the journal, and a crash between journal and local store leaves at most an id that stands for nothing.
//
// Entries of a session are delivered in order, in batches, each again until the remote store has acknowledged it;
// appends are idempotent by key, so each arrives once. Where the remote has a key under another id, the two ids are
// remembered as one. Failures are tried again with exponential backoff, or when the remote asks for it (an error with a
// method RetryAfter() time.Duration). What the remote refuses for good, as invalid, conflicting or unsupported, is set
// aside after Config.MaxAttempts tries, if the remote is otherwise well: see DeadLetters and Retry. The entries behind it go on.
//
// The backlog is bounded by number, bytes and age. At the bound Append is ErrFull, or waits. Updates and deletes are
// always accepted: an erasure is never refused for want of room.
//
// # Several processes
//
// Several processes may open one local file and one journal. All may append; one delivers, the holder of a lease: a lock of
// the operating system, which ends with its process. A lock with a time limit would let a process that merely slept deliver beside its
// successor. Like the file of the local store, the journal must be on a local disk.
package outbox
