package sqlite

import (
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"io"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Policy bounds what is kept. Zero fields bound nothing, and the zero Policy keeps everything: nothing is ever deleted unless
// somebody asks for it.
type Policy struct {
	// MaxAge deletes entries whose time is longer ago.
	MaxAge time.Duration
	// MaxEntries and MaxBytes delete the oldest entries beyond that number, and beyond that size of stored content in bytes.
	MaxEntries int64
	MaxBytes   int64
	// PerAgent applies MaxEntries and MaxBytes to all sessions of an agent together, instead of to each session.
	PerAgent bool
	// Archive, when not nil, gets what is deleted before it is: an export compressed with gzip, which Import reads. Several calls
	// may write to one file, one after the other. If it has a method Sync() error, that is called before anything is deleted.
	Archive io.Writer
	// Deleted, when not nil, is called after entries were deleted, so that indexes can follow. Its error ends the call.
	Deleted func(ctx context.Context, scope core.Scope, ids []string) error
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
	// Deleted is the number of entries that were deleted, Bytes the size of their content.
	Deleted int64 `json:"deleted"`
	Bytes   int64 `json:"bytes"`
	// Kept is the number of entries beyond a bound that were kept because a view needs them.
	Kept int64 `json:"kept"`
}

// retainBatch is the number of entries that one transaction of Retain deletes.
const retainBatch = 500

// Retain deletes what a policy does not keep, oldest first. What the view of any session still shows or has yet to compact
// stays, beyond the bounds or not. Vacuum afterwards makes the file smaller.
//
// When it fails the report says what was deleted before; everything that was is in the archive. Another process may append
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
	err := s.read(ctx, "retain", "", func(tx *sql.Tx) (err error) {
		agents, err = column(ctx, tx, "SELECT DISTINCT agent FROM scopes ORDER BY agent")
		return err
	})
	if err != nil {
		return report, err
	}
	for _, agent := range agents {
		victims, err := s.beyond(ctx, agent, p, &report)
		if err != nil {
			return report, err
		}
		if err := s.archive(ctx, p.Archive, victims); err != nil {
			return report, err
		}
		for _, v := range victims {
			if err := s.stopped(ctx); err != nil {
				return report, fmt.Errorf("sqlite: retain: %w", err)
			}
			n, err := s.Delete(ctx, v.scope, v.ids)
			if err != nil {
				return report, err
			}
			report.Deleted += int64(n)
			report.Bytes += v.bytes
			if p.Deleted != nil {
				if err := p.Deleted(ctx, v.scope, v.ids); err != nil {
					return report, fmt.Errorf("sqlite: retain: deleted: %w", err)
				}
			}
		}
	}
	return report, nil
}

// victims are entries of one session that are to be deleted.
type victims struct {
	scope core.Scope
	ids   []string
	bytes int64
}

// archive writes entries to w, and has written all of them when it returns nil.
func (s *Store) archive(ctx context.Context, w io.Writer, of []victims) error {
	if w == nil || len(of) == 0 {
		return nil
	}
	z := gzip.NewWriter(w)
	out := newExporter(z, s.now(), nil)
	err := out.begin()
	for i := 0; err == nil && i < len(of); i++ {
		var entries []core.Entry
		if entries, err = s.Get(ctx, of[i].scope, of[i].ids); err != nil {
			return err
		}
		for j := range entries {
			if err = out.entry(&entries[j]); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = out.end()
	}
	if err == nil {
		err = z.Close()
	}
	if f, ok := w.(interface{ Sync() error }); ok && err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("sqlite: retain: archive: %w", err)
	}
	return nil
}

// column returns the first column of a query.
func column(ctx context.Context, tx *sql.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}
