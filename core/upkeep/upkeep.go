// Package upkeep holds what a Store may offer to those who look after it: the commands and the services around an engine. Each interface is an optional companion
// of a core.Store, found with core.As, and implementing one is a promise; what core says of companions holds for these.
package upkeep

import (
	"context"
	"time"
)

// Scrubber removes what is left of erased entries in places that nobody reads: free pages, logs, journals.
type Scrubber interface {
	// Scrub returns when no byte of what was erased before the call is left on the store's own media. Copies and backups are beyond it. What an Update or a newer
	// view replaced is erased, too, by whichever opening of the store. Everything else stays as it is, what is written meanwhile and marks of a ChangeFeed too.
	Scrub(ctx context.Context) error
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
	Stats(ctx context.Context) (Stats, error)
}

// Stats is what a Statter tells. Figures and times that a store does not know are zero.
type Stats struct {
	// Agents and Sessions are those that have entries; those that have nothing but a view may be counted with them.
	Agents, Sessions, Entries int
	// Bytes is what the store takes on its medium; RawBytes the messages as the host gave them: the
	// lengths of Message.Raw, of all entries as they are now.
	Bytes, RawBytes int64
	// Oldest and Newest are the first and the last time of an entry; zero in an empty store. A store may look for them at the ends of its sessions alone.
	Oldest, Newest time.Time
}

// Details is what a store in a file knows of itself besides Stats. Figures that a store does not know are 0.
type Details struct {
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

// Transfer says how far an export or import of a whole store is.
type Transfer struct {
	// Entries and Views are how many of each were written or read so far; Duplicates is how many of an import's entries were there before.
	Entries    int64 `json:"entries"`
	Duplicates int64 `json:"duplicates,omitempty"`
	Views      int64 `json:"views"`
	// KeptViews is the number of an import's views that were left out because the session has one.
	KeptViews int64 `json:"keptViews,omitempty"`
}
