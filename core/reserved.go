package core

// The sessions of an agent that keep the engine's own records, as erased entries with metadata: they are never shown nor found.
const (
	// SessionReceipts keeps the receipts of erasures, SessionSecrets the key of the agent's erasures, SessionOutcomes the outcomes of its sessions.
	SessionReceipts = "contextengine-receipts"
	SessionSecrets  = "contextengine-secrets"
	SessionOutcomes = "contextengine-outcomes"
)

// Reserved reports whether a session holds the engine's own records (receipts of erasures and their key, outcomes) and no conversation.
func Reserved(session string) bool {
	return session == SessionReceipts || session == SessionOutcomes || session == SessionSecrets
}

// Shareable returns an entry as it may leave its store: without the key of the agent's erasures, which would let its holder guess what was erased.
// Exports use it.
func Shareable(entry Entry) Entry {
	if entry.Session == SessionSecrets {
		entry.Meta = nil
	}
	return entry
}
