// Package history holds the rules that make a conversation fit to be sent to a provider again: what a host calls
// sanitizing, pairing repair, turn validation and history limits. The rules are restated from the observed behaviour
// of the OpenClaw host; texts put in place of something are this package's own.
//
// Start with PolicyFor and Apply:
//
//	policy, err := history.PolicyFor("anthropic")
//	...
//	msgs = history.Apply(msgs, policy)
//
// Every function is pure: no I/O, no clock, no randomness, the input is never written to, and the result may share
// messages and parts with it. Every rule is idempotent, and where it has nothing to do it returns the very slice it
// was given. All functions may be called concurrently.
//
// Provider caches match prefixes, so what a rule makes of a message depends on the message itself, on what stands
// before it, on the results that answer its calls, and on whether it belongs to the newest turn (see NewestTurn);
// never on how far it is from the end. A message therefore changes at most once, when its turn stops being the newest;
// the exceptions are a host's compaction and a moved window start, which give up the cached prefix anyway, and the
// last message, which merging may extend.
package history

import "github.com/contextengine/contextengine/core/message"

// maxPasses bounds Apply. A pass that changes something removes or joins parts, or answers calls for good, so that
// the second pass normally finds nothing left to do.
const maxPasses = 16

// Apply runs all rules that policy asks for until none has anything left to do, so that Apply(Apply(x)) is Apply(x)
// and Check finds nothing in the result: FilterHeartbeats, Sanitize, RepairPairs, ProviderTurns, RewriteCallIDs.
//
// Heartbeats go first, other than in the host: sanitizing takes silent answers out and merging hides prompts in other
// messages, after which a span can no longer be recognised. LimitTurns is separate; call it before Apply, or call
// Apply again after it.
func Apply(msgs []message.Message, policy Policy) []message.Message {
	for range maxPasses {
		next := msgs
		if policy.FilterHeartbeats {
			next = FilterHeartbeats(next)
		}
		next = Sanitize(next, policy)
		next = RepairPairs(next, policy, false)
		next = ProviderTurns(next, policy)
		next = RewriteCallIDs(next, policy)
		if same(next, msgs) {
			return msgs
		}
		msgs = next
	}
	return msgs
}

// NewestTurn returns the index of the message that starts the newest turn: the last ordinary user message that says
// something, or a tool message that carries user text (in formats where results and text share a message). It
// returns 0 when no message starts a turn: then everything belongs to the newest turn.
func NewestTurn(msgs []message.Message) int {
	for i := len(msgs) - 1; i >= 0; i-- {
		if startsTurn(&msgs[i]) {
			return i
		}
	}
	return 0
}

func startsTurn(m *message.Message) bool {
	switch m.Role {
	case message.User:
		return m.Type == "" && hasContent(m.Parts)
	case message.Tool:
		for i := range m.Parts {
			if m.Parts[i].Kind == message.Text && !blank(m.Parts[i].Text) {
				return true
			}
		}
	}
	return false
}
