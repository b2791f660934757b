package core

import (
	"context"
	"time"
)

// Retriever proposes entries worth recalling. The Engine decides which of them fit.
//
// Implementers: candidates come best first, those of one score in any order that stays the same; none outside Query.Scopes, none that Query.InWindow or
// Entry.Hidden reports, none twice. The call returns when ctx ends, also while another one reads the store; what was found until then may be returned with a nil error. It is safe for concurrent use
// and the same store and query give the same candidates. What is returned belongs to the caller. A retriever that could ask nobody returns the error: nil and
// no candidates say that nothing was found. Callers: Tokens and Limit are positive, InWindow is not nil, and what a Query holds is the retriever's own.
//
// A retriever that has several to ask returns what some of them found together with an error that wraps ErrPartial and names the others: the Engine uses
// the candidates and reports the error, or fails where it was told to be strict.
//
// A retriever that keeps a memory of its own also implements Observer, and Attacher to read what was there before.
type Retriever interface {
	Retrieve(ctx context.Context, q Query) ([]Candidate, error)
}

// LateRetriever is an optional companion of a Retriever that does not wait for the slowest of those it asks. Late reports whether something is there by
// now that the last answer to the same query had to go without, also because a LateSearcher that it asked had to: the Engine then asks again, in the same turn.
type LateRetriever interface {
	Late(q Query) bool
}

// Query is what a Retriever is asked.
type Query struct {
	// Session is the session being assembled. Scope is where to look: this session, or all of the agent's.
	Session SessionID
	Scope   Scope
	// Granted lists further scopes that a spawn grant opened for this session; most often empty.
	Granted []Scope
	// Prompt is the text of the current user turn; it may be empty.
	Prompt string
	// Recent holds the newest entries of the conversation, oldest first, the current turn included.
	Recent []Entry
	// InWindow reports the ids of entries that the window shows already.
	InWindow func(id string) bool
	// Now is the time of the turn, for relative dates and recency: how old an entry is, is counted from it, whatever the machine's clock says.
	Now time.Time
	// Tokens is the allowance for everything recalled, in tokens.
	Tokens int
	// Limit is the largest number of candidates that makes sense.
	Limit int
	// Settings are what the host says about the model run that the prompt is for; most of it may be unknown.
	Settings RuntimeSettings
}

// Scopes returns all scopes q may look into.
func (q Query) Scopes() []Scope {
	return append([]Scope{q.Scope}, q.Granted...)
}

// Candidate is an entry that may be recalled.
type Candidate struct {
	// Entry is as the store holds it: the Engine quotes nothing that it does not find there so, see StoreReader.
	Entry Entry
	// Text is what to quote of it, words of Entry.Text() in their order, with what marks a gap beside or between them, such as an ellipsis; empty for all of it. The Engine quotes the entry itself where Text says anything else.
	Text string
	// Score orders the candidates of one retriever.
	Score float64
	// Source names what found it ("lexical", "store", "recent", ...).
	Source string
}

// Sharer is an optional companion of a Retriever that knows what share of the budget its recall is worth, 0 to 0.5. Without it the
// configured share holds. A retriever that proposes nothing returns 0 and leaves all of the budget to the window. The share does not change from call to call.
type Sharer interface {
	RecallShare() float64
}

// Caveat is an optional companion of a Retriever that can be less than its name says, as it is configured. Caveat returns what a person should know and what
// to do about it, or "" when it is what its name says. "doctor" and "explain" show it, and an evaluation does not report the figures under the name.
type Caveat interface {
	Caveat() string
}

// StoreReader is an optional companion of a Retriever or a Searcher. Of what one without it answers, the Engine reads in the store what it quotes.
type StoreReader interface {
	// ReadsStore reports that each entry of an answer was read in the engine's store during the call, and is as it is there.
	ReadsStore() bool
}

// ReadsStore reports whether a retriever or searcher reads the store itself, as StoreReader says. A store that searches does.
func ReadsStore(part any) bool {
	if r, ok := part.(StoreReader); ok {
		return r.ReadsStore()
	}
	_, ok := part.(Store)
	return ok
}

// ByMeaning is an optional companion of a Searcher, and says whether it compares what texts mean; one without it finds words.
type ByMeaning interface {
	ByMeaning() bool
}
