// Package sqlite is a store that lasts, in one file and without a server. It keeps
// entries and views, survives crashes, and may be open in several processes at once.
//
// Start with Open:
//
//	cfg := sqlite.DefaultConfig()
//	cfg.Path = "/var/lib/agent/store.db"
//	store, err := sqlite.Open(ctx, cfg)
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//
// # Durability
//
// Append has committed when it returns. With Durability "process", the default, what was acknowledged survives the
// death of the process at any moment; a power failure may take the newest appends, but never leaves the file damaged.
// With "power" it survives that too, at the price of a flush to the disk for each append.
//
// # Several processes
//
// The file is in WAL mode: readers never wait, and one process writes at a time. A writer waits for others until its
// context ends or Config.BusyTimeout has passed without anything written by anyone; then it returns core.ErrUnavailable with the text
// "<file> is being written by another process". All processes must run on one machine: WAL does not work over network
// file systems.
//
// # Damage
//
// Every entry and view carries a checksum. What does not match it, and whatever SQLite itself finds damaged, is
// ErrDamaged with the file's name, never a shorter answer. Config.Check says how much Open looks at; Verify looks at
// everything. A write-ahead log in which intact commits follow a damaged part is refused by Open, see Config.Recover.
// What no check can tell from a crash is a log that lost its end, because that is what a crash leaves.
//
// # Following
//
// Changes tells what happened to an agent's entries since a mark, over all processes and restarts: an index follows it instead of
// reading everything again. A mark of another file, of a Backup's original, or of a file that was put back since is core.ErrNotFound. Beside is a
// folder for what such an index keeps; vectors are kept in the file and go with their entries.
//
// # Erasing
//
// Update and Delete overwrite what an entry said. SQLite may have left a copy of it in a page from which it was moved once; Scrub removes
// these too, by writing the file anew. Retain bounds age, number and size of what is kept, and archives before it removes.
//
// # Copies
//
// Backup makes a copy while the store is in use. Export and Import move entries and views through JSON; vectors and marks are not part
// of it, they are made anew.
//
// # Size
//
// What a message's parts say is not stored again where the message's original bytes say it, larger bodies are compressed, and shorter ones written
// with a table of codes for English and JSON: the file is somewhat smaller than the hosts' JSON, also when all messages are of 60 words. What follows the
// store costs about 100 bytes for each change and deletion, of which Vacuum keeps the newest 100,000.
//
// Search is not in here: strategies/lexical answers over any store.
package sqlite
