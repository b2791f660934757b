package core

import (
	"context"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// The interfaces of this file are optional companions of a Store, found with As. Implementing one is a promise; a decorator
// whose inner store lacks it answers errors.ErrUnsupported, and the caller then does without.
//
// What Store says of its methods holds for theirs: safe for concurrent use, back soon after ctx ends with ctx's error wrapped, ErrClosed after Close, and what they
// return belongs to the caller.

// ChangeFeed tells what changed in a store since a mark, also by other processes and before this one began. What follows a store, such
// as an index, need not read all of it again.
type ChangeFeed interface {
	// Changes returns what happened to an agent's entries after a mark, oldest first. An empty mark begins before the
	// first entry. A mark that the store cannot continue from (it is of another store, or of one that was restored since) is ErrNotFound: the
	// caller forgets what it knows and begins anew.
	//
	// Every change that was acknowledged before the call is among the answers of following it to the end. An entry that is gone by now
	// may be left out or named as gone, in any case it is named as gone to those who were told of it before. One that changed several times may be named as often.
	Changes(ctx context.Context, q ChangeQuery) (ChangePage, error)
}

// ChangeQuery asks a ChangeFeed.
type ChangeQuery struct {
	// Agent is never empty.
	Agent string
	After Mark
	// Limit is the largest number of changes, 1 to MaxPage.
	Limit int
	// Known, when not nil, reports ids whose content the caller has as it was appended. A store may leave out that they were appended, which spares it
	// reading them; later changes of them are told all the same. It must not use the store.
	Known func(id string) bool
}

// Mark is a place in a ChangeFeed. It means something only to the store that made it, also after a restart.
type Mark string

// ChangePage is a part of a feed.
type ChangePage struct {
	Changes []EntryChange
	// Mark is the place behind the page; it is the query's when nothing changed.
	Mark Mark
	// More says that there is more behind Mark now, which is another place than the query's then.
	More bool
}

// EntryChange is one change: the entry as it is now, whether new or changed, or the id of one that is gone.
type EntryChange struct {
	// ID is the entry's.
	ID string
	// Entry is nil when the entry is gone.
	Entry *Entry
}

// Tailer tells how far a session is, so that an engine learns at its next call what another process did to it: what was ingested, erased, compacted
// or purged. The engine asks once for each call, whatever it holds in memory, and where the store keeps no views once for each session whose entries a fork
// shows. A store that serves one engine alone does without. Engines over one store that has it, and keeps their views, show the same of a session.
type Tailer interface {
	// Tail is one cheap read, which does not depend on how much the session holds. It counts everything that was acknowledged before the call, by
	// whichever process. Sessions whose names are reserved are asked for too.
	Tail(ctx context.Context, id SessionID) (Tail, error)
}

// Tail is where a session ends. The zero Tail is that of a session without entries and view.
type Tail struct {
	// View is the version of the stored view, 0 when there is none. In a store that keeps no views it is a number that is another one
	// after an entry of the session was changed or deleted.
	View uint64
	// Next is the position behind the newest entry, 0 when there is none.
	Next int64
}

// Recogniser finds entries that a store holds and Scan does not show: a server may list its newest ones alone. The engine asks it before it stores what a host's
// transcript has and the session does not seem to have, so that after a restart nothing is stored once more.
type Recogniser interface {
	// Recognise returns entries of a session that say what one of the messages says, in any order; nil where Scan shows all there is.
	Recognise(ctx context.Context, id SessionID, messages []message.Message) ([]Entry, error)
}

// Beside names a folder that belongs to the store, for what is derived from it: the files of an index. What lies there can be deleted at
// any time; whoever put it there makes it again. It is private to this machine.
type Beside interface {
	// Beside returns a folder for this use, made if need be: the same whenever it is asked for, also after a restart, another for each use and each store, and
	// not readable by others. The use is 1 to 64 letters and digits of ASCII, else it is ErrInvalid.
	// Where there is none and none can be made, because nothing can be written, it is errors.ErrUnsupported.
	Beside(use string) (dir string, err error)
}

// Scrubber removes what is left of erased entries in places that nobody reads: free pages, logs, journals.
type Scrubber interface {
	// Scrub returns when no byte of what was erased before the call is left on the store's own media. Copies and backups are beyond it. What an Update or a newer
	// view replaced is erased, too, by whichever opening of the store. Everything else stays as it is, what is written meanwhile and marks of a ChangeFeed too.
	Scrub(ctx context.Context) error
}

// SessionEraser erases all that a store has of a session at once, where erasing entry by entry would take a request each. Purging uses it, and an outbox for what it
// knows to be erased as a whole.
type SessionEraser interface {
	// EraseSession returns when nothing of the session's entries is left, emptied ones and vectors included; a change feed names them as gone. Its view is left to DeleteView. A session that is not there is no error, an id without agent or session is ErrInvalid.
	EraseSession(ctx context.Context, id SessionID) error
}

// Drainer is a store that delivers to another one in the background.
type Drainer interface {
	// Drain delivers what waits, as long as ctx lasts, and returns how many of these changes still wait. The error is why they do; it is nil when none does. It may
	// leave out what is written after the call. Between changes that it delivers one after the other it looks at ctx.
	Drain(ctx context.Context) (left int, err error)
}

// Repairer is a store that can make anew what follows from the rest of it, such as the indexes of a file.
//
// Implementers: Repair copies what it is about to change first and returns where the copy is; "" when nothing had to be changed. No entry is changed or lost: where
// that cannot be had, everything stays as it was, and the error says why. Marks of a ChangeFeed stay good.
type Repairer interface {
	Repair(ctx context.Context) (saved string, err error)
}

// Statter tells how much a store holds.
type Statter interface {
	Stats(ctx context.Context) (StoreStats, error)
}

// StoreStats is what a Statter tells. Figures and times that a store does not know are zero.
type StoreStats struct {
	// Agents and Sessions are those that have entries; those that have nothing but a view may be counted with them.
	Agents, Sessions, Entries int
	// Bytes is what the store takes on its medium; RawBytes the messages as the host gave them: the
	// lengths of Message.Raw, of all entries as they are now.
	Bytes, RawBytes int64
	// Oldest and Newest are the first and the last time of an entry; zero in an empty store. A store may look for them at the ends of its sessions alone.
	Oldest, Newest time.Time
}

// Transfer says how far an export or import of a whole store is.
type Transfer struct {
	// Entries and Views are how many of each were written or read so far; Duplicates is how many of an import's entries were there before.
	Entries    int64 `json:"entries"`
	Duplicates int64 `json:"duplicates,omitempty"`
	Views      int64 `json:"views"`
	// KeptViews is the number of an import's views that were left out because the session has one.
	KeptViews int64 `json:"keptViews,omitempty"`
}

// StoreDetails is what a store in a file knows of itself besides StoreStats. Figures that a store does not know are 0.
type StoreDetails struct {
	// Path is the file.
	Path string `json:"path"`
	// Free is the part of the file that a vacuum would give back, in bytes.
	Free int64 `json:"free"`
	// Erased is the number of entries of which only their place is left; Views counts views, Vectors vectors, and Changes the changes and
	// deletions that those who follow the store can still ask for.
	Erased  int64 `json:"erased"`
	Views   int64 `json:"views"`
	Vectors int64 `json:"vectors"`
	Changes int64 `json:"changes"`
	// Schema is the version of the schema.
	Schema int `json:"schema"`
}

// Backlog is what a Drainer has not delivered yet.
type Backlog struct {
	// Waiting counts the changes that are to be delivered, Bytes the content of the entries among them; Oldest is when the first was made.
	Waiting int       `json:"waiting"`
	Bytes   int64     `json:"bytes"`
	Oldest  time.Time `json:"oldest,omitzero"`
	// SetAside counts the changes that the other store refused for good.
	SetAside int `json:"setAside"`
	// Bare counts the messages that were copied from the other store with their text alone, see MetaTextOnly.
	Bare int `json:"bare,omitempty"`
	// Full is why nothing more is taken now; empty when there is room. LastError is what went wrong last.
	Full      string `json:"full,omitempty"`
	LastError string `json:"lastError,omitempty"`
}

// Backlogger is a Drainer that tells what waits, and whether the other store can be reached now.
type Backlogger interface {
	Backlog(ctx context.Context) (Backlog, error)
	CheckRemote(ctx context.Context) error
}
