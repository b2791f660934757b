package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/retain"
)

// retainBatch is the number of entries that one transaction of Retain removes.
const retainBatch = 500

// Retain removes what a policy does not keep, oldest first. What the view of any session still shows or has yet to compact stays, beyond
// the bounds or not. An entry that stands on a view's path behind that is emptied: it becomes a core.TypeErased one with its place, key and
// fingerprint, because the engine counts on its being there, and so that a host that shows it again does not bring it back. All others
// are deleted. Erased entries stay: they have no content, and receipts of erasures are among them. Vacuum afterwards makes the file smaller.
//
// When it fails the report says what was removed before; everything that was is in the archive. Another process may append
// meanwhile; what it appends is looked at by the next call.
func (s *Store) Retain(ctx context.Context, p retain.Policy) (retain.Report, error) {
	var report retain.Report
	err := s.eachBeyond(ctx, p, &report, func(of []victims, needed *window) error {
		if err := s.archive(ctx, p.Archive, of); err != nil {
			return err
		}
		for i := range of {
			if err := s.stopped(ctx); err != nil {
				return fmt.Errorf("sqlite: retain: %w", err)
			}
			removed, err := s.retire(ctx, &of[i], needed, &report)
			if err != nil {
				return err
			}
			if p.Deleted != nil && len(removed) > 0 {
				if err := p.Deleted(ctx, of[i].scope, removed); err != nil {
					return fmt.Errorf("sqlite: retain: deleted: %w", err)
				}
			}
		}
		return nil
	})
	return report, err
}

// WouldRetain reports what Retain would do now, and does nothing.
func (s *Store) WouldRetain(ctx context.Context, p retain.Policy) (retain.Report, error) {
	var report retain.Report
	err := s.eachBeyond(ctx, p, &report, func(of []victims, needed *window) error {
		for i := range of {
			for j := range of[i].of {
				c := &of[i].of[j]
				report.Bytes += c.bytes
				if needed.counts(c) {
					report.Emptied++
				} else {
					report.Deleted++
				}
			}
		}
		return nil
	})
	return report, err
}

// eachBeyond calls f for what a policy does not keep, agent by agent.
func (s *Store) eachBeyond(ctx context.Context, p retain.Policy, report *retain.Report, f func(of []victims, needed *window) error) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	if p.MaxAge == 0 && p.MaxEntries == 0 && p.MaxBytes == 0 {
		return nil
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
		return err
	}
	for _, agent := range agents {
		of, err := s.beyond(ctx, agent, p, &needed, report)
		if err == nil {
			err = f(of, &needed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// retire deletes or empties victims in one transaction, and returns the ids of those it did. A view that was published since they were
// chosen is respected.
func (s *Store) retire(ctx context.Context, v *victims, needed *window, report *retain.Report) ([]string, error) {
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
		_, _, e, err := s.lookup(tx.StmtContext(quiet, s.w.rowByID).QueryRowContext(quiet, id), scope)
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
