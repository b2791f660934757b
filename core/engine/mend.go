package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
)

// tiedError says that a part of a view names positions at which the store holds several entries. Stores refuse that now, and
// did not always: two processes served one session.
type tiedError struct {
	view   core.SessionID
	owners []core.SessionID
}

func (t *tiedError) Error() string {
	return fmt.Sprintf("core: session %q: several entries have one position: mend it with \"verify --fix\"", t.view)
}

// tiedAt returns the error for the positions from <= pos < to.
func tiedAt(v *core.View, from, to int) error {
	t := &tiedError{view: v.Session}
	for _, sp := range v.Slice(from, to) {
		if owner := *sp.Owned(v.Session).Session; !slices.Contains(t.owners, owner) {
			t.owners = append(t.owners, owner)
		}
	}
	return t
}

// mend gives every entry of the sessions a position of its own. The caller holds s.
func (s *session) mend(ctx context.Context, t *tiedError) error {
	for _, owner := range t.owners {
		var err error
		if owner == s.id {
			_, err = s.mendOwn(ctx)
		} else {
			// A fork waits for the session it was forked from, never the other way round.
			err = s.e.retry(ctx, owner, func(s *session) error {
				_, err := s.mendOwn(ctx)
				return err
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mendOwn moves all but the first of the entries at one position to the end of the session, and shows them where they belong: behind the first. What a
// mend that failed halfway did is found again by its keys. It returns how many it moved.
func (s *session) mendOwn(ctx context.Context) (int, error) {
	var extra []core.Entry
	last, next := int64(-1), s.view.Next
	for entry, err := range core.All(ctx, s.e.store, s.id.Scope(), false) {
		if err != nil {
			return 0, fmt.Errorf("core: mend %q: %w", s.id, err)
		}
		next = max(next, entry.Seq+1)
		switch {
		case !inConversation(entry): // it stands on no path, so it is in nobody's way
		case entry.Seq == last:
			extra = append(extra, entry)
		default:
			last = entry.Seq
		}
	}
	if len(extra) == 0 {
		return 0, nil
	}
	v := s.view.Clone()
	moved := make(map[int64][]int64)
	for _, old := range extra {
		entry, err := s.move(ctx, old, next)
		if err != nil {
			s.forget()
			return 0, fmt.Errorf("core: mend %q: %w", s.id, err)
		}
		next = max(next, entry.Seq+1)
		moved[old.Seq] = append(moved[old.Seq], entry.Seq)
		v.Apply(edit.Rename{From: old.ID, To: entry.ID})
	}
	v.Apply(edit.Relay{Moved: moved}, edit.Count{Next: next, Turns: v.Turns})
	s.cool()
	s.outputs = nil
	s.e.log.WarnContext(ctx, "entries that shared a position were given their own", "session", s.id.String(), "entries", len(extra))
	return len(extra), s.publish(ctx, v)
}

// move stores an entry at another position, under another id, and removes it where it was.
func (s *session) move(ctx context.Context, old core.Entry, seq int64) (core.Entry, error) {
	entry := old
	entry.ID, entry.Key, entry.Seq = s.e.newID(), "m:"+old.ID, seq
	res, err := s.e.store.Append(ctx, []core.Entry{entry})
	if err != nil {
		return core.Entry{}, err
	}
	if res.IDs[0] != entry.ID {
		got, err := s.e.store.Get(ctx, s.id.Scope(), res.IDs)
		if err != nil {
			return core.Entry{}, err
		}
		entry = got[0]
	}
	if _, err := s.e.store.Delete(ctx, s.id.Scope(), []string{old.ID}); err != nil {
		return core.Entry{}, err
	}
	s.e.observe(ctx, func(ctx context.Context, o core.Observer) error {
		return errors.Join(o.Deleted(ctx, s.id.Scope(), []string{old.ID}), o.Appended(ctx, []core.Entry{entry}))
	}, 1)
	return entry, nil
}
