package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Policy bounds what is kept. Zero fields bound nothing, and the zero Policy keeps everything: nothing is ever deleted unless
// somebody asks for it.
type Policy struct {
	// MaxAge removes entries whose time is longer ago.
	MaxAge time.Duration `koanf:"maxAge" json:"maxAge" doc:"remove messages that are older"`
	// MaxEntries and MaxBytes remove the oldest entries beyond that number, and beyond that size of stored content in bytes.
	MaxEntries int64 `koanf:"maxEntries" json:"maxEntries" doc:"largest number of messages of a session; the oldest beyond are removed"`
	MaxBytes   int64 `koanf:"maxBytes" json:"maxBytes" doc:"largest size of a session's stored messages in bytes; the oldest beyond are removed"`
	// PerAgent applies MaxEntries and MaxBytes to all sessions of an agent together, instead of to each session.
	PerAgent bool `koanf:"perAgent" json:"perAgent" doc:"the bounds hold for all sessions of an agent together"`
	// Archive, when not nil, gets what is removed before it is: an export compressed with gzip, which Import reads. Several calls
	// may write to one file, one after the other. If it has a method Sync() error, that is called before anything is removed.
	Archive io.Writer `koanf:"-" json:"-"`
	// Deleted, when not nil, is called after entries were deleted or emptied, for indexes that do not follow core.ChangeFeed. Its error ends
	// the call.
	Deleted func(ctx context.Context, scope core.Scope, ids []string) error `koanf:"-" json:"-"`
}

// Validate returns core.ErrInvalid naming the field that is out of range.
func (p Policy) Validate() error {
	for field, bad := range map[string]bool{"maxAge": p.MaxAge < 0, "maxEntries": p.MaxEntries < 0, "maxBytes": p.MaxBytes < 0} {
		if bad {
			return fmt.Errorf("sqlite: retain: %s: must not be negative: %w", field, core.ErrInvalid)
		}
	}
	return nil
}

// RetainReport says what Retain did.
type RetainReport struct {
	// Deleted is the number of entries that were deleted, Emptied that of those of which the place stayed. Bytes is the size of
	// the content of both.
	Deleted int64 `json:"deleted"`
	Emptied int64 `json:"emptied"`
	Bytes   int64 `json:"bytes"`
	// Kept is the number of entries beyond a bound that were kept because a view shows them, or has yet to compact them.
	Kept int64 `json:"kept"`
}

// retainBatch is the number of entries that one transaction of Retain removes.
const retainBatch = 500

// Retain removes what a policy does not keep, oldest first. What the view of any session still shows or has yet to compact stays, beyond
// the bounds or not. An entry that stands on a view's path behind that is emptied: it becomes a core.TypeErased one with its place, key and
// fingerprint, because the engine counts on its being there, and so that a host that shows it again does not bring it back. All others
// are deleted. Erased entries stay: they have no content, and receipts of erasures are among them. Vacuum afterwards makes the file smaller.
//
// When it fails the report says what was removed before; everything that was is in the archive. Another process may append
// meanwhile; what it appends is looked at by the next call.
func (s *Store) Retain(ctx context.Context, p Policy) (RetainReport, error) {
	var report RetainReport
	if err := p.Validate(); err != nil {
		return report, err
	}
	if p.MaxAge == 0 && p.MaxEntries == 0 && p.MaxBytes == 0 {
		return report, nil
	}
	var agents []string
	var needed window
	err := s.read(ctx, "retain", "", func(tx *sql.Tx) (err error) {
		if agents, err = column(ctx, tx, "SELECT DISTINCT agent FROM scopes ORDER BY agent"); err == nil {
			needed, err = s.needed(ctx, tx)
		}
		return err
	})
	if err != nil {
		return report, err
	}
	for _, agent := range agents {
		victims, err := s.beyond(ctx, agent, p, &needed, &report)
		if err != nil {
			return report, err
		}
		if err := s.archive(ctx, p.Archive, victims); err != nil {
			return report, err
		}
		for i := range victims {
			if err := s.stopped(ctx); err != nil {
				return report, fmt.Errorf("sqlite: retain: %w", err)
			}
			removed, err := s.retire(ctx, &victims[i], &needed, &report)
			if err != nil {
				return report, err
			}
			if p.Deleted != nil && len(removed) > 0 {
				if err := p.Deleted(ctx, victims[i].scope, removed); err != nil {
					return report, fmt.Errorf("sqlite: retain: deleted: %w", err)
				}
			}
		}
	}
	return report, nil
}

// retire deletes or empties victims in one transaction, and returns the ids of those it did. A view that was published since they were
// chosen is respected.
func (s *Store) retire(ctx context.Context, v *victims, needed *window, report *RetainReport) ([]string, error) {
	var gone, emptied []string
	var bytes, kept int64
	err := s.write(ctx, "retain", "", func(tx *sql.Tx) error {
		quiet := context.WithoutCancel(ctx)
		if err := s.refresh(quiet, tx, needed); err != nil {
			return err
		}
		for i := range v.of {
			switch c := &v.of[i]; {
			case needed.shows(c):
				kept++
			case needed.counts(c):
				emptied = append(emptied, c.id)
				bytes += c.bytes
			default:
				gone = append(gone, c.id)
				bytes += c.bytes
			}
		}
		if _, err := s.remove(ctx, tx, v.scope, gone); err != nil {
			return err
		}
		return s.empty(ctx, tx, v.scope, emptied)
	})
	if err != nil {
		return nil, err
	}
	s.forget(ctx)
	report.Deleted += int64(len(gone))
	report.Emptied += int64(len(emptied))
	report.Bytes += bytes
	report.Kept += kept
	return append(gone, emptied...), nil
}

// empty takes the content out of entries and leaves their places.
func (s *Store) empty(ctx context.Context, tx *sql.Tx, scope core.Scope, ids []string) error {
	quiet := context.WithoutCancel(ctx)
	next, err := s.nextNumber(quiet, tx)
	if err != nil {
		return err
	}
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, _, e, err := s.lookup(quiet, tx.StmtContext(quiet, s.w.rowByID), scope, id)
		if errors.Is(err, core.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		m := message.Message{Role: e.Message.Role}
		change := core.Change{Message: &m, Type: core.TypeErased, Fingerprint: e.Fingerprint, Meta: map[string]string{"retained": "place"}}
		if err := s.change(quiet, tx, scope, id, change, next+int64(i)); err != nil {
			return err
		}
	}
	return nil
}
