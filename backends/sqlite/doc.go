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
// The file is in WAL mode: readers never wait, and one process writes at a time. A writer waits for another one until
// its context ends or Config.BusyTimeout has passed; then it returns core.ErrUnavailable with the text
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
// # Size
//
// What a message's parts say is not stored again where the message's original bytes say it, and larger bodies are
// compressed: the file is about as large as the hosts' JSON, and 1.6 times that when all messages are of 60 words.
//
// Search is not in here: strategies/lexical answers over any store.
package sqlite
