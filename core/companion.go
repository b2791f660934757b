package core

import (
	"context"

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

// SessionEraser erases all that a store has of a session at once, where erasing entry by entry would take a request each. Purging uses it, and an outbox for what it
// knows to be erased as a whole.
type SessionEraser interface {
	// EraseSession returns when nothing of the session's entries is left, emptied ones and vectors included; a change feed names them as gone. Its view is left to DeleteView. A session that is not there is no error, an id without agent or session is ErrInvalid.
	EraseSession(ctx context.Context, id SessionID) error
}
