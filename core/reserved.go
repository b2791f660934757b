package core

import (
	"github.com/contextengine/contextengine/core/internal/records"
)

// Reserved reports whether a session holds the engine's own records (receipts of erasures and their key, outcomes) and no conversation.
func Reserved(session string) bool {
	return session == records.Receipts || session == records.Outcomes || session == records.Secrets
}

// Shareable returns an entry as it may leave its store: without the key of the agent's erasures, which would let its holder guess what was erased.
// Exports use it.
func Shareable(entry Entry) Entry {
	if entry.Session == records.Secrets {
		entry.Meta = nil
	}
	return entry
}
