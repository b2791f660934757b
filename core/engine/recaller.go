package engine

import (
	"context"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Recaller is the way back: it answers what an agent, or a person, asks about history that the window does not show. Everything that is stored can be
// reached, byte for byte, whatever was compacted.
//
// A session reaches what recall reaches: itself, the agent's other sessions where recall goes across sessions, and what a grant opens. What was reset or
// forked away is not found, unless the engine is configured to recall it, erased and hidden entries neither. Results are bounded in tokens and paged; texts for a
// model are quoted like recalled ones, with "#" and the id of the entry, or its position in the session, as the citation.
type Recaller interface {
	Search(ctx context.Context, req SearchRequest) (SearchResult, error)
	// Expand shows an entry, or what a summary stands for. An id that the session does not reach is core.ErrNotFound.
	Expand(ctx context.Context, req ExpandRequest) (ExpandResult, error)
	Describe(ctx context.Context, req DescribeRequest) (DescribeResult, error)
}

// The limits of a Recaller's answers.
const (
	DefaultFound  = 8
	MaxFound      = 50
	DefaultAnswer = 2000 // tokens
	MaxAnswer     = 16000
)

// SearchRequest looks for entries.
type SearchRequest struct {
	Session core.SessionID `json:"session"`
	// Query is natural language, or an exact string: an identifier, a path, an error code. Entries that hold all of it as it stands, byte for byte, come first, then
	// those that hold it in another case. Where it is several words, what the window does not show comes before what it shows.
	Query string `json:"query"`
	// Limit is the number of entries of a page, 1 to MaxFound; DefaultFound when 0.
	Limit int `json:"limit,omitempty"`
	// Offset is Next of the page before.
	Offset int `json:"offset,omitempty"`
	// Tokens bounds Text, up to MaxAnswer; DefaultAnswer when 0.
	Tokens int `json:"tokens,omitempty"`
	// From and To bound the entries' time, half open; zero means unbounded.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// SearchResult is a page of what was found, best first.
type SearchResult struct {
	Found []Found `json:"found"`
	// Next is the Offset of the next page; 0 when there is none.
	Next int `json:"next,omitempty"`
	// Text is the page for a model, Tokens what it costs.
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
}

// Found is an entry that was found, or that an answer shows.
type Found struct {
	ID      string         `json:"id"`
	Session string         `json:"session"`
	Turn    int64          `json:"turn"`
	Seq     int64          `json:"seq"`
	Role    message.Role   `json:"role"`
	Type    core.EntryType `json:"type"`
	Time    time.Time      `json:"time"`
	// Tokens is what all of the entry costs.
	Tokens int `json:"tokens"`
	// Excerpt is what is shown of it; Whole says that this is all. Expand shows the rest.
	Excerpt string  `json:"excerpt"`
	Whole   bool    `json:"whole,omitempty"`
	Score   float64 `json:"score,omitempty"`
}

// ExpandRequest asks for an entry in full, its calls with their arguments and its results, or for what a summary stands for.
type ExpandRequest struct {
	Session core.SessionID `json:"session"`
	// ID is an entry's, or a summary's, as citations and markers name it: its id, or its position in the session; a "#" in front is allowed.
	ID string `json:"id"`
	// Before and After add neighbours of the entry in the conversation, up to MaxFound each. A summary is none, nor is what was reset or forked away.
	Before int `json:"before,omitempty"`
	After  int `json:"after,omitempty"`
	// Offset is Next of the page before: bytes of the entry's text, or entries of a summary or of a neighbourhood.
	Offset int `json:"offset,omitempty"`
	// Tokens bounds Text, up to MaxAnswer; DefaultAnswer when 0.
	Tokens int `json:"tokens,omitempty"`
}

// ExpandResult is a page of an entry or of entries, oldest first.
type ExpandResult struct {
	Found []Found `json:"found"`
	// Next is the Offset of the next page; 0 when this was the last.
	Next int `json:"next,omitempty"`
	// Total is the length of all: bytes of an entry's text, or a number of entries.
	Total  int    `json:"total"`
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
}

// DescribeRequest asks what there is of a session.
type DescribeRequest struct {
	Session core.SessionID `json:"session"`
}

// DescribeResult says what a session's window is made of and what lies behind it.
type DescribeResult struct {
	Session core.SessionID `json:"session"`
	// Entries is the number of entries in force, Turns that of the user turns.
	Entries int   `json:"entries"`
	Turns   int64 `json:"turns"`
	// First and Last are the times of the oldest and the newest entry.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Shown is the number of entries that the window shows, Left of those that neither it nor a summary shows.
	Shown int `json:"shown"`
	Left  int `json:"left"`
	// Shortened is the number of shown entries whose content is clipped or masked.
	Shortened int `json:"shortened"`
	// Summaries stand for older entries, oldest first.
	Summaries []SummaryInfo `json:"summaries,omitempty"`
	Epoch     uint64        `json:"epoch"`
	Budget    int           `json:"budget,omitempty"`
	Arm       string        `json:"arm,omitempty"`
	// Text says the same for a model, Tokens what it costs.
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
}

// SummaryInfo describes a summary.
type SummaryInfo struct {
	ID     string      `json:"id"`
	Kind   string      `json:"kind"`
	Covers int         `json:"covers"`
	Tokens int         `json:"tokens"`
	Time   time.Time   `json:"time"`
	Of     []core.Span `json:"of,omitempty"`
	// Head is the beginning of its text.
	Head string `json:"head"`
}
