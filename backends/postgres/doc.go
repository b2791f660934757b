// Package postgres is the store for many machines: entries, views, text search and, where the server has the extension
// "vector", embedding vectors in PostgreSQL 13 or newer. It needs no superuser and runs on managed servers.
//
// Start with Open:
//
//	cfg := postgres.DefaultConfig().WithEnv(os.Getenv) // CONTEXTENGINE_POSTGRES_DSN
//	store, err := postgres.Open(ctx, cfg)
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//
// # Durability and order
//
// Append has committed when it returns, in one round trip. Writes to one agent's entries wait for each other, on the row of the agent; those
// of different agents do not. That is what makes the order of appends, and the feed of changes, the same for all who read.
// A connection that is lost while a commit is under way leaves open whether it happened: the call is then repeated, as keys make
// that harmless, but AppendResult.Duplicates may count the call's own entries.
//
// # Isolation
//
// Every statement about entries names the agent. An id is unique within its agent, which is a constraint of the table; that no other
// agent has it is looked up by Append, but not enforced against two that are appended at the same moment.
//
// # Search
//
// Search is PostgreSQL's own text search over the stored words, with every word of the query optional, ranked by how rare a word is and
// how long a message. See Search for what it can do with languages that are written without spaces.
//
// # Vectors
//
// When the server has the extension "vector", As finds vector.Store and core.VectorSearcher in the store; otherwise not. See Config.Vectors.
//
// # Errors
//
// Errors never hold the DSN, the password, names of hosts, or contents: what the server said is reduced to its SQLSTATE.
package postgres
