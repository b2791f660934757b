package core

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/internal/records"
	"github.com/contextengine/contextengine/core/message"
)

// SessionID names a conversation: sessions belong to an agent, and no entry of one agent reaches another.
type SessionID struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
}

func (s SessionID) String() string { return s.Agent + "/" + s.Session }

// Scope returns the scope that holds just this session.
func (s SessionID) Scope() Scope { return Scope(s) }

// Compare orders sessions by agent and then session, in byte order.
func (s SessionID) Compare(o SessionID) int {
	return cmp.Or(strings.Compare(s.Agent, o.Agent), strings.Compare(s.Session, o.Session))
}

// Validate returns ErrInvalid when a part is missing.
func (s SessionID) Validate() error {
	if s.Agent == "" {
		return fmt.Errorf("core: session: agent is empty: name the agent that owns the session: %w", ErrInvalid)
	}
	if s.Session == "" {
		return fmt.Errorf("core: session: session is empty: give the host's session id or key: %w", ErrInvalid)
	}
	if Reserved(s.Session) {
		return fmt.Errorf("core: session: session %q holds the engine's own records: choose another name: %w", s.Session, ErrInvalid)
	}
	return nil
}

// Scope says which entries a call may touch: all of an agent's, or one session's.
type Scope struct {
	// Agent is never empty: there is no scope across agents.
	Agent string `json:"agent"`
	// Session is empty for all sessions of the agent.
	Session string `json:"session,omitempty"`
}

// Contains reports whether an entry of that session lies in s.
func (s Scope) Contains(id SessionID) bool {
	return s.Agent == id.Agent && (s.Session == "" || s.Session == id.Session)
}

// EntryType says what an entry is.
type EntryType string

// The types of entries.
const (
	// TypeMessage is a message of the conversation.
	TypeMessage EntryType = "message"
	// TypeHeartbeat is a message that a timer caused. It is stored, but never shown nor recalled.
	TypeHeartbeat EntryType = "heartbeat"
	// TypeSummary stands for older entries, see Summary.
	TypeSummary EntryType = "summary"
	// TypeSubagent is what a subagent handed back to its parent.
	TypeSubagent EntryType = "subagent"
	// TypeErased is what stays of an erased entry: its place. It has no content, is never shown nor found, and keeps the host's copy of
	// the message from being stored again.
	TypeErased EntryType = "erased"
)

// Entry is a message (or a summary, or a subagent's result) at rest.
//
// The Engine fills every field before Store.Append and never changes an entry afterwards, except through Store.Update.
type Entry struct {
	// ID is made by the Engine, so that no other entry of a store has it; a store sees to it within an agent, see Store.Append. It is letters, digits, "-" and "_" only,
	// at most 64 bytes, and not digits alone, which name a position.
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	Session string `json:"session"`
	// Seq is the position in the session as it was ingested: 0, 1, 2, with gaps only where entries were deleted. At most one entry of a session has it, see
	// Store.Append. Which entries are in force, and in which order, is the View's business (a conversation can be forked or reset).
	Seq int64 `json:"seq"`
	// Turn counts the user turns of the session, from 0 (what came before the first user message): each message of a user begins one, a heartbeat begins none.
	Turn int64        `json:"turn"`
	Role message.Role `json:"role"`
	Type EntryType    `json:"type"`
	// Time is when the message was made: the host's time, or the engine's clock. UTC, millisecond precision at least.
	Time time.Time `json:"time"`
	// Tokens is what the message costs in a prompt, including the overhead per message, counted once at ingest.
	Tokens int `json:"tokens"`
	// Key makes appends idempotent: within a session at most one entry has it. Never empty.
	Key string `json:"key"`
	// Fingerprint is message.Fingerprint of Message.
	Fingerprint string          `json:"fingerprint"`
	Message     message.Message `json:"message"`
	// Meta holds further string values: advancement key of the turn, what a summary covers, experiment arm.
	Meta map[string]string `json:"meta,omitempty"`
}

// SessionID returns the session that e belongs to.
func (e Entry) SessionID() SessionID { return SessionID{Agent: e.Agent, Session: e.Session} }

// Clone returns an entry that shares with e nothing that can be written to.
func (e Entry) Clone() Entry {
	e.Message, e.Meta = e.Message.Clone(), maps.Clone(e.Meta)
	return e
}

// Hidden reports whether an entry is never shown in its place, recalled nor summarised: heartbeats, what was erased, and system messages that came at the
// beginning of a transcript. Those stand in front as long as they are the newest; searching finds them ever after.
func (e Entry) Hidden() bool { return e.Type.Hidden() || e.Leads() }

// Leads reports whether an entry is a system message from the beginning of a transcript.
func (e *Entry) Leads() bool { return e.Role == message.System && e.Meta[records.Leads] != "" }

// Hidden is Entry.Hidden for those who hold many entries and do not want copies of them.
func (t EntryType) Hidden() bool { return t == TypeHeartbeat || t == TypeErased }
