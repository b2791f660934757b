package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
)

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
