package core

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core/message"
)

// apply checks a compactor's patch against the session as it is now and publishes it: all of it, or nothing.
func (e *Engine) apply(ctx context.Context, t *task, p Patch) error {
	if len(p.Replace) == 0 && len(p.Stubs) == 0 {
		return nil
	}
	// What was paid for is published even when the caller has given up meanwhile.
	ctx = context.WithoutCancel(ctx)
	return e.retry(ctx, t.Session, func(s *session) error {
		v := s.view.Clone()
		var summaries []Entry
		made := maps.Clone(t.refs)
		for _, r := range p.Replace {
			r.Summaries = resolved(r.Summaries, made)
			entry, err := e.replace(ctx, t, &v, r)
			if err != nil {
				return err
			}
			summaries = append(summaries, entry)
			if r.Ref != "" {
				made[r.Ref] = entry.ID
			}
		}
		if err := e.stub(ctx, t, &v, p.Stubs); err != nil {
			return err
		}
		if len(summaries) > 0 {
			if _, err := e.store.Append(ctx, summaries); err != nil {
				return fmt.Errorf("core: compact %q: store summary: %w", s.id, err)
			}
		}
		if err := e.keepPrompt(ctx, t, &v); err != nil {
			return err
		}
		if v.Start == s.view.Start && len(p.Stubs) == 0 && s.view.Start >= 0 {
			before := s.view.front()
			v.Shown = &before
		} else {
			v.Shown = nil
			v.Epoch++
			s.cool()
		}
		if err := e.publish(ctx, s, v); err != nil {
			return err
		}
		t.refs = made
		e.observe(ctx, func(o Observer) error { return o.Appended(ctx, summaries) }, len(summaries))
		return nil
	})
}

// resolved replaces the refs among ids of summaries by the ids they stand for.
func resolved(ids []string, refs map[string]string) []string {
	out := slices.Clone(ids)
	for i, id := range out {
		if to, ok := refs[id]; ok {
			out[i] = to
		}
	}
	return out
}

// keepPrompt pins the newest user message when a patch took it away: what the user asked for stays as long as its turn lasts.
func (e *Engine) keepPrompt(ctx context.Context, t *task, v *View) error {
	first := max(v.Frontier, v.Lead)
	if v.Pinned != "" || first >= v.Len() {
		return nil
	}
	items, err := e.read(ctx, v, first, v.Len())
	if err != nil {
		return err
	}
	for i := range items {
		if isPrompt(items[i].entry) {
			return nil
		}
	}
	for _, entry := range slices.Backward(t.Entries) {
		if isPrompt(entry) {
			v.Pinned = entry.ID
			return nil
		}
	}
	return nil
}

// isPrompt reports whether an entry is a message with which a user begins a turn.
func isPrompt(entry Entry) bool {
	return entry.Role == message.User && entry.Type == TypeMessage && entry.Message.Type == ""
}

// refused returns the error for a patch that breaks a rule; nothing of it is published.
func refused(t *task, rule string) error {
	return fmt.Errorf("core: compact %q: patch refused: %s: %w", t.Session, rule, ErrInvalid)
}

// replace moves the frontier of v behind the entries of a replacement and puts its summary there.
func (e *Engine) replace(ctx context.Context, t *task, v *View, r Replacement) (Entry, error) {
	if r.Text == "" {
		return Entry{}, refused(t, "a replacement needs a text")
	}
	if len(r.Entries) == 0 && len(r.Summaries) == 0 {
		return Entry{}, refused(t, "a replacement stands for nothing")
	}
	first := max(v.Frontier, v.Lead)
	n := len(r.Entries)
	if n > len(t.Entries)-t.Protected {
		return Entry{}, refused(t, "it takes entries that must stay")
	}
	covers, cost := 0, 0
	if n > 0 {
		// One more is read: the cut must not fall into a group.
		items, err := e.read(ctx, v, first, min(first+n+1, v.Len()))
		if err != nil {
			return Entry{}, err
		}
		if len(items) < n {
			return Entry{}, refused(t, "the entries are not live any more")
		}
		for i, id := range r.Entries {
			if items[i].entry.ID != id {
				return Entry{}, refused(t, "the entries are not the oldest live ones, without a gap")
			}
			if items[i].entry.Type != t.Entries[i].Type {
				return Entry{}, refused(t, "an entry was erased meanwhile")
			}
			cost += items[i].cost
		}
		for _, g := range groupsOf(items) {
			if g.From < n && g.To > n {
				return Entry{}, refused(t, "it tears a tool call from its results")
			}
		}
		covers = n
	}
	var of []Span
	for _, sp := range v.Slice(first, first+n) {
		of = append(of, sp.owned(v.Session))
	}
	kept := v.Summaries[:0:0]
	at := -1
	for i, sum := range v.Summaries {
		if !slices.Contains(r.Summaries, sum.ID) {
			kept = append(kept, sum)
			continue
		}
		if at < 0 {
			at = len(kept)
		}
		covers += v.Summaries[i].Covers
		of = append(of, sum.Of...)
		cost += sum.Tokens
	}
	if len(v.Summaries)-len(kept) != len(r.Summaries) {
		return Entry{}, refused(t, "it includes a summary that is not there")
	}
	frontier := v.Frontier
	if n > 0 {
		frontier = first + n
	}
	// A text made from a conversation is no more trusted than the conversation: it must not open anything either.
	r.Text = neutral(r.Text)
	entry := e.summaryEntry(v, r, standing{covers: covers, of: joined(of), frontier: frontier}, t.Now)
	if entry.Tokens >= cost && r.Kind != "note" {
		return Entry{}, refused(t, fmt.Sprintf("%d tokens cannot stand for %d", entry.Tokens, cost))
	}
	sum := summaryOf(entry)
	switch {
	case n > 0:
		kept = append(kept, sum)
	default:
		kept = slices.Insert(kept, max(at, 0), sum)
	}
	if n > 0 {
		e.advance(v, frontier, r.Entries)
	}
	v.Summaries = kept
	v.Next++
	return entry, nil
}

// advance moves frontier and start.
func (e *Engine) advance(v *View, frontier int, gone []string) {
	left := v.Start - v.Frontier
	if left > 0 {
		v.Backlog = v.Backlog * max(v.Start-frontier, 0) / left
	}
	v.Frontier = frontier
	v.Start = max(v.Start, frontier)
	for _, id := range gone {
		if id != v.Pinned {
			delete(v.Stubs, id)
		}
	}
}

// stub takes over the stubs of a patch for entries that the window shows.
func (e *Engine) stub(ctx context.Context, t *task, v *View, stubs map[string]Stub) error {
	if len(stubs) == 0 {
		return nil
	}
	protected := make(map[string]bool)
	for _, entry := range t.Entries[len(t.Entries)-t.Protected:] {
		protected[entry.ID] = true
	}
	for id, st := range stubs {
		if protected[id] {
			return refused(t, "it shortens an entry that must stay as it is")
		}
		entry, err := e.find(ctx, v, id)
		if err != nil {
			return fmt.Errorf("core: compact %q: %w", t.Session, err)
		}
		if entry.Type == TypeErased {
			continue // it was erased meanwhile: there is nothing to shorten any more
		}
		if st.Tokens = e.messageCost(shownAs(entry, &st)); st.Tokens >= entry.Tokens {
			return refused(t, "a stub costs more than what it stands for")
		}
		if v.Stubs == nil {
			v.Stubs = make(map[string]Stub)
		}
		v.Stubs[id] = st
	}
	return nil
}
