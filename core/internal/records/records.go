// Package records names what the contract and the Engine both have to know of the Engine's own records.
package records

// The sessions of an agent that keep them, as erased entries with metadata: they are never shown nor found.
const (
	// Receipts keeps the receipts of erasures, Secrets the key of the agent's erasures, Outcomes the outcomes of its sessions.
	Receipts = "contextengine-receipts"
	Secrets  = "contextengine-secrets"
	Outcomes = "contextengine-outcomes"
)

// Leads is the key of an entry's metadata that lists, on a system message that replaced those in front, the positions of the messages that stood in front
// from then on.
const Leads = "leads"
