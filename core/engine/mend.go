package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/message"
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
		return errors.Join(o.Deleted(ctx, s.id.Scope(), []string{old.ID}), o.Appended(ctx, own([]core.Entry{entry})))
	}, 1)
	return entry, nil
}

// retreat gives the newest messages that summaries stand for back to the window when no message behind the frontier is left to show: all of them were
// erased. The summaries keep what they say.
func (c *call) retreat(ctx context.Context, s *session, v *core.View) error {
	if shows(s.items) {
		return nil
	}
	const page = 64
	floor := max(v.Floor(), v.Lead)
	start := -1
	for to := v.Frontier; to > floor && start < 0; to -= page {
		from := max(to-page, floor)
		items, err := c.e.reader.read(ctx, v, from, to)
		if err != nil {
			return err
		}
		for i, it := range slices.Backward(items) {
			if said(&it.entry) {
				start = from + i
				break
			}
		}
	}
	if start < 0 {
		return nil
	}
	start, err := c.e.reader.groupStart(ctx, v, start, floor)
	if err != nil {
		return err
	}
	v.Apply(edit.Retreat{To: start})
	if v.Pinned == "" {
		prompt, err := c.e.reader.promptBefore(ctx, v, start)
		if err != nil {
			return err
		}
		v.Apply(edit.Pin{ID: prompt})
	}
	c.dirty, c.stepped = true, true
	if err := s.warmWith(ctx, v); err != nil {
		return fmt.Errorf("core: session %q: window behind what was erased: %w", s.id, err)
	}
	return nil
}

// shows reports whether any of the items is a message that a window shows. What a subagent handed back is none: it stands behind the message that asked.
func shows(items []item) bool {
	for i := range slices.Backward(items) {
		if said(&items[i].entry) {
			return true
		}
	}
	return false
}

// said reports whether an entry stands in a window by itself: a result does with its call.
func said(entry *core.Entry) bool {
	return entry.Type == core.TypeMessage && !entry.Leads() && entry.Role != message.Tool
}

// Flaw is something in which a session's view and the entries of the store do not agree.
type Flaw struct {
	Session core.SessionID `json:"session"`
	// Text says what is wrong. It holds no content.
	Text string `json:"text"`
}

func (f Flaw) String() string { return fmt.Sprintf("session %q: %s", f.Session, f.Text) }

// Flaws compares every view of a store with the entries that it names, all of which it reads: each position has to hold one entry, and what is shown has to
// be there. It yields nothing for a store without views. An error is the last thing that it yields.
func Flaws(ctx context.Context, s core.Store) iter.Seq2[Flaw, error] {
	return func(yield func(Flaw, error) bool) {
		views, ok := core.As[core.ViewStore](s)
		if !ok {
			return
		}
		q := core.ViewQuery{Limit: core.MaxPage}
		for {
			ids, err := views.ListViews(ctx, q)
			if err != nil {
				yield(Flaw{}, fmt.Errorf("core: check views: %w", err))
				return
			}
			for _, id := range ids {
				v, err := views.LoadView(ctx, id)
				if errors.Is(err, core.ErrNotFound) {
					continue // it was purged meanwhile
				}
				var found []string
				if err == nil {
					found, err = flawsOf(&v, ctx, s)
				}
				if err != nil {
					yield(Flaw{}, fmt.Errorf("core: check view %q: %w", id, err))
					return
				}
				for _, text := range found {
					if !yield(Flaw{Session: id, Text: text}, nil) {
						return
					}
				}
			}
			if len(ids) < q.Limit {
				return
			}
			q.After = ids[len(ids)-1]
		}
	}
}

// flawsOf compares a view with the entries.
func flawsOf(v *core.View, ctx context.Context, s core.Store) (found []string, err error) {
	missing, tied, twice := 0, 0, 0
	seen := make(map[place]bool)
	for _, sp := range v.Path {
		owner := *sp.Owned(v.Session).Session
		held := make(map[int64]int, sp.Len())
		q := core.ScanQuery{Scope: owner.Scope(), FromSeq: sp.From, ToSeq: sp.To, Limit: core.MaxPage}
		for {
			page, err := s.Scan(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, entry := range page.Entries {
				if inConversation(entry) {
					held[entry.Seq]++
				}
			}
			if page.Next == "" {
				break
			}
			q.Cursor = page.Next
		}
		for seq := sp.From; seq < sp.To; seq++ {
			switch n := held[seq]; {
			case n == 0:
				missing++
			case n > 1:
				tied += n - 1
			}
			if at := (place{owner, seq}); seen[at] {
				twice++
			} else {
				seen[at] = true
			}
		}
	}
	for _, f := range []struct {
		n    int
		text string
	}{
		{missing, "positions of the view hold no entry"}, {tied, "entries share a position with another one"},
		{twice, "positions are in the view twice"},
	} {
		if f.n > 0 {
			found = append(found, fmt.Sprintf("%d %s", f.n, f.text))
		}
	}
	if n := v.Len(); v.Start > n || v.Frontier > n || v.Lead > n {
		found = append(found, fmt.Sprintf("the window begins at %d, behind the end of the %d entries of the view", max(v.Start, v.Frontier, v.Lead), n))
	}
	return found, nil
}

// Mend makes a session's view and entries agree, as far as that loses nothing: entries that share a position get one each, and positions that hold nothing, or
// are in the view twice, leave it. It returns how many entries and positions that were. Sessions that are used mend shared positions by themselves.
func (e *Engine) Mend(ctx context.Context, id core.SessionID) (int, error) {
	n := 0
	err := e.retry(ctx, id, func(s *session) error {
		moved, err := s.mendOwn(ctx)
		if n += moved; err != nil {
			return err
		}
		gone := make(map[int64]bool)
		for _, sp := range s.view.Path {
			for seq := sp.From; sp.Session == nil && seq < sp.To; seq++ {
				gone[seq] = true
			}
		}
		for entry, err := range core.All(ctx, e.store, id.Scope(), false) {
			if err != nil {
				return fmt.Errorf("core: mend %q: %w", id, err)
			}
			if inConversation(entry) {
				delete(gone, entry.Seq)
			}
		}
		v := s.view.Clone()
		v.Apply(edit.Relay{Gone: gone})
		left := s.view.Len() - v.Len()
		v.Apply(edit.Clamp{})
		if left == 0 && v.Start == s.view.Start && v.Frontier == s.view.Frontier && v.Lead == s.view.Lead {
			return nil
		}
		n += max(left, 1)
		s.cool()
		s.outputs = nil
		return s.publish(ctx, v)
	})
	return n, e.failed(ctx, "store", "mend", err)
}
