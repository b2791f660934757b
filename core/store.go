package core

import (
	"context"
	"iter"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// Store keeps entries. It is all that a backend must offer; Searcher, ViewStore and ChangeFeed are optional
// companions found with As.
//
// Implementers: every method is safe for concurrent use, returns soon after ctx ends with ctx's error wrapped, and
// returns ErrClosed after Close. What a call returned belongs to the caller; what it was given is not kept or changed, parts and raw bytes included. Names, keys,
// texts and raw bytes come back byte for byte, NUL and invalid UTF-8 included. Errors never hold keys, or what a message says. Callers: entries are complete
// (see Entry), ids and keys are non-empty, Limit is positive.
type Store interface {
	// Append stores all of the entries, however many they are, or none when it returns an error. It is durable when it returns nil, as far
	// as the backend promises durability at all.
	//
	// It is idempotent by (agent, session, key): an entry whose key is known is not stored again, and the result names the id
	// it has; so is the second of two with one key in one call. The same ID with another key, or in another session of the agent, is ErrConflict, whether that is in
	// the same batch or of an earlier call; a store may refuse it in another agent too. After an error the caller may repeat the same call.
	//
	// A position, (agent, session, Seq), exists once: a new entry at one that another entry holds is ErrConflict, whether that is in the
	// same batch, of an earlier call, or of another process. Entries whose key is known are duplicates whatever their position; a position is
	// free again when its entry was deleted, so an engine that erases leaves a TypeErased entry where a session ends. A store that was written
	// before this rule may hold several entries at a position: they are read as Scan says.
	// A store that cannot keep the rule for several processes says so in its documentation, and how it treats a second one.
	//
	// Callers: an entry that was refused for its position was not stored. Read what is new, and append again under the same ID and Key.
	//
	// Entries become visible in the order given: what is seen of a batch while it is appended is its beginning. Entries of one call may belong to several sessions.
	Append(ctx context.Context, entries []Entry) (AppendResult, error)

	// Get returns the entries with these ids, in the order asked for: one that is named twice comes twice. Ids that the scope does not hold are ErrNotFound, and
	// then nothing is returned.
	Get(ctx context.Context, scope Scope, ids []string) ([]Entry, error)

	// Scan returns one page of a scope. Within a session the order is by Seq and, where older data has several at one, by append; across
	// sessions it is any order that stays the same. Following Next to the end visits every entry that was there when the
	// scan began exactly once; entries appended later may or may not be visited. A page that has a Next may hold fewer than Limit, or none.
	Scan(ctx context.Context, q ScanQuery) (Page, error)

	// Update changes one entry in place and in one step: nobody reads a part of the change. ErrNotFound when the scope does not hold the entry, ErrConflict when
	// another entry of its session has the key; then nothing is changed. It exists for erasure, redaction and repair: the
	// engine's own rules never change what was ingested.
	Update(ctx context.Context, scope Scope, id string, change Change) error

	// Delete erases entries for good and returns how many were there. Unknown ids are no error, and one that is named twice counts once. Ids, keys and positions of
	// what was deleted are free again.
	Delete(ctx context.Context, scope Scope, ids []string) (int, error)

	// Close releases what the store holds. A second call returns nil.
	Close() error
}

// AppendResult says what Append did.
type AppendResult struct {
	// IDs holds, for each entry given, the id under which it is stored.
	IDs []string
	// Duplicates is the number of entries that were there before.
	Duplicates int
}

// ScanQuery asks for one page of a scope.
type ScanQuery struct {
	Scope Scope
	// Cursor is the Next of the page before; empty to begin.
	Cursor Cursor
	// Reverse goes from the newest entry to the oldest; across sessions too it is the order of the other direction turned round.
	Reverse bool
	// Limit is the largest number of entries in the page, 1 to MaxPage.
	Limit int
	// FromSeq skips entries of a smaller Seq and, when ToSeq is positive, those of ToSeq and above. Without a session in Scope they change nothing.
	FromSeq, ToSeq int64
	// Type, when not empty, is the only type that the caller looks at: entries of other types may be left out, and need not be. A store that holds much then
	// reaches the few summaries or empty places of a session without reading all of it. An entry has the type that it has when its page is read.
	Type EntryType
}

// MaxPage is the largest Limit of a ScanQuery.
const MaxPage = 1000

// Cursor marks a place in a scan. It means something only to the store that made it, for the same scope and direction.
type Cursor string

// Page is a part of a scan.
type Page struct {
	Entries []Entry
	// Next continues the scan; empty at the end.
	Next Cursor
}

// Change is what Update sets; nil fields stay as they are.
type Change struct {
	// Message replaces the content; Tokens and Fingerprint are then set to match it.
	Message     *message.Message
	Tokens      int
	Fingerprint string
	// Type and Key replace the entry's when they are not empty. An erased entry becomes a TypeErased one in a single Update, so that
	// nothing derived from its content stays: a key that was made of it is replaced, too.
	Type EntryType
	Key  string
	// Meta replaces all metadata when it is not nil; an empty map removes it.
	Meta map[string]string
}

// Searcher finds entries by their text: stores that search on their side, lexical and vector indexes.
//
// Hits come best first, at most Limit, none outside the scope, none of TypeHeartbeat or TypeErased. The order is a function of the
// stored entries and the query alone; ties go to the more recent entry, then to the smaller id.
//
// A searcher that went on without the slowest of those it asks returns what the others found with an error that wraps ErrPartial. A recall is made of that;
// who searches for himself must look on, because what is missing may be all of it.
type Searcher interface {
	Search(ctx context.Context, q SearchQuery) ([]Hit, error)
}

// LateSearcher is an optional companion of a Searcher that does not wait for the slowest of those it asks. Late reports whether something is there by
// now that the last search for the same had to go without; another search has it. It is false for what was never searched.
type LateSearcher interface {
	Late(q SearchQuery) bool
}

// SearchQuery asks a Searcher.
type SearchQuery struct {
	Scope Scope
	// Text is natural language: a prompt, not an expression in a query language.
	Text string
	// Limit is the largest number of hits, at least 1. It counts what is wanted: what lies outside the scope or the time, or is excluded, takes no place.
	Limit int
	// Exclude, when not nil, reports entry ids that the caller does not want (they are in the window already).
	Exclude func(id string) bool
	// From and To bound the entries' time, half open; zero means unbounded.
	From, To time.Time
}

// Hit is a found entry.
type Hit struct {
	Entry Entry
	// Score orders hits of one search; scores of different searchers cannot be compared.
	Score float64
	// Passage is the part of the entry's text that matched, word for word; empty when it is all of it. Blanks may be others.
	Passage string
}

// ViewStore keeps views. A store that has it commits them with its own durability; an Engine whose store has none
// keeps views in memory and rebuilds them from the entries. What was given is not kept and what is returned belongs to the caller: as far as View.Clone copies it.
// Names, and every other text, come back byte for byte, NUL and what is no UTF-8 included.
type ViewStore interface {
	// LoadView returns the newest view of a session, or ErrNotFound.
	LoadView(ctx context.Context, id SessionID) (View, error)
	// SwapView stores v when the stored version is v.Version-1 (0: none is stored); otherwise it is ErrConflict and
	// nothing changes.
	SwapView(ctx context.Context, v View) error
	// DeleteView removes the view of a session. It is no error when there is none.
	DeleteView(ctx context.Context, id SessionID) error
	// ListViews returns the sessions that have a view, ordered by agent and then session in byte order.
	ListViews(ctx context.Context, q ViewQuery) ([]SessionID, error)
}

// ViewQuery asks for a part of the list of views.
type ViewQuery struct {
	// Agent is empty for all agents.
	Agent string
	// After continues behind a session; the zero value begins.
	After SessionID
	// Limit is the largest number of sessions, 1 to MaxPage. A shorter answer is the last.
	Limit int
}

// Observer is told what happened to a store's entries: an index, or a retriever with a memory of its own. The Engine calls it after
// the store acknowledged, from one goroutine per session, in order. An error is logged and reported by Info, but
// does not undo the change; Observers catch up from the store when they were not there (see Attacher). What an
// Observer is given is its own. A call returns soon after ctx ends, with ctx's error wrapped where the change was not taken note of.
type Observer interface {
	Appended(ctx context.Context, entries []Entry) error
	Updated(ctx context.Context, entry Entry) error
	Deleted(ctx context.Context, scope Scope, ids []string) error
}

// Attacher is an optional companion of an Observer, Retriever or Searcher that wants to read the store it serves. New calls Attach
// once, before any other method.
type Attacher interface {
	Attach(store Store) error
}

// Pinger is an optional companion of any part that talks to something outside. Ping returns nil when that can be used now; "doctor" and health
// checks call it.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Unwrapper is implemented by a Store with another one behind it, in which As looks for what the first has not: the inner store of a decorator, or a side of a
// store that only some servers have. Nil says that there is none.
type Unwrapper interface {
	Unwrap() Store
}

// As finds the companion T of a store, looking through decorators. It is the only way parts look for companions of a Store.
func As[T any](s Store) (T, bool) {
	for s != nil {
		if t, ok := s.(T); ok {
			return t, true
		}
		u, ok := s.(Unwrapper)
		if !ok {
			break
		}
		s = u.Unwrap()
	}
	var zero T
	return zero, false
}

// All walks a scope to its end, oldest first or newest first, page by page. It stops at the first error, which is the last
// thing it yields.
func All(ctx context.Context, s Store, scope Scope, reverse bool) iter.Seq2[Entry, error] {
	return walk(ctx, s, ScanQuery{Scope: scope, Reverse: reverse, Limit: MaxPage})
}

// AllOf is All for the entries of one type, oldest first, whatever the store leaves out of a scan for it.
func AllOf(ctx context.Context, s Store, scope Scope, kind EntryType) iter.Seq2[Entry, error] {
	return walk(ctx, s, ScanQuery{Scope: scope, Type: kind, Limit: MaxPage})
}

// First returns the first entry of a scan, behind as many pages as hold none, and ErrNotFound where there is none. The query's Limit and Cursor are not looked at.
func First(ctx context.Context, s Store, q ScanQuery) (Entry, error) {
	q.Limit = 1
	for entry, err := range walk(ctx, s, q) {
		return entry, err
	}
	return Entry{}, ErrNotFound
}

// walk follows a scan to its end, in pages of the query's Limit.
func walk(ctx context.Context, s Store, q ScanQuery) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		q.Cursor = "" // it may be walked again
		for {
			page, err := s.Scan(ctx, q)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range page.Entries {
				if q.Type != "" && e.Type != q.Type {
					continue
				}
				if !yield(e, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.Cursor = page.Next
		}
	}
}
