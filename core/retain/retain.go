// Package retain holds what a store is asked to keep, for stores that can remove what is old: see Policy.
package retain

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Policy bounds what a store keeps. Zero fields bound nothing, and the zero Policy keeps everything: nothing is ever deleted
// unless somebody asks for it.
type Policy struct {
	// MaxAge removes entries whose time is longer ago.
	MaxAge time.Duration `koanf:"maxAge" json:"maxAge" doc:"remove messages that are older"`
	// MaxEntries and MaxBytes remove the oldest entries beyond that number, and beyond that size of stored content in bytes.
	MaxEntries int64 `koanf:"maxEntries" json:"maxEntries" doc:"largest number of messages of a session; the oldest beyond are removed"`
	MaxBytes   int64 `koanf:"maxBytes" json:"maxBytes" doc:"largest size of a session's stored messages in bytes; the oldest beyond are removed"`
	// PerAgent applies MaxEntries and MaxBytes to all sessions of an agent together, instead of to each session.
	PerAgent bool `koanf:"perAgent" json:"perAgent" doc:"the bounds hold for all sessions of an agent together"`
	// Archive, when not nil, gets what is removed before it is: an export compressed with gzip, which an import reads. Several calls
	// may write to one file, one after the other. If it has a method Sync() error, that is called before anything is removed.
	Archive io.Writer `koanf:"-" json:"-"`
	// Deleted, when not nil, is called after entries were deleted or emptied, for indexes that do not follow a ChangeFeed. Its error ends
	// the call.
	Deleted func(ctx context.Context, scope core.Scope, ids []string) error `koanf:"-" json:"-"`
}

// Validate returns ErrInvalid naming the field that is out of range.
func (p Policy) Validate() error {
	for _, f := range []struct {
		name string
		bad  bool
	}{{"maxAge", p.MaxAge < 0}, {"maxEntries", p.MaxEntries < 0}, {"maxBytes", p.MaxBytes < 0}} {
		if f.bad {
			return fmt.Errorf("core: retain: %s: must not be negative: %w", f.name, core.ErrInvalid)
		}
	}
	return nil
}

// Report says what applying a Policy did, or would do.
type Report struct {
	// Deleted is the number of entries that were deleted, Emptied that of those of which the place stayed. Bytes is the size of
	// the content of both.
	Deleted int64 `json:"deleted"`
	Emptied int64 `json:"emptied"`
	Bytes   int64 `json:"bytes"`
	// Kept is the number of entries beyond a bound that were kept because a view shows them, or has yet to compact them.
	Kept int64 `json:"kept"`
}
