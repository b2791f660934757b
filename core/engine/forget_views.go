package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/erased"
)

// erasedText stands in a window where a summary was erased.
const erasedText = "[A summary of earlier messages was erased; what else it stood for is stored but not shown.]"

const erasedKind = "erased"

// eachView visits every view of the agent whose entries are erased, but those that were seen before, where seen says which.
func (er *erasure) eachView(ctx context.Context, seen map[core.SessionID]bool, visit func(core.View) error) error {
	q := core.ViewQuery{Agent: er.req.Scope.Agent, Limit: core.MaxPage}
	var unread error // the others are cleaned all the same
	for {
		ids, err := er.e.views.ListViews(ctx, q)
		if err != nil {
			return fmt.Errorf("list views: %w", err)
		}
		for _, id := range ids {
			if seen[id] {
				continue
			}
			v, err := er.e.views.LoadView(ctx, id)
			if errors.Is(err, core.ErrNotFound) {
				continue // it was dropped meanwhile
			}
			if err != nil {
				unread = errors.Join(unread, fmt.Errorf("load view %q: %w", id, err))
				continue
			}
			if err := visit(v); err != nil {
				return err
			}
		}
		if len(ids) < q.Limit {
			return unread
		}
		q.After = ids[len(ids)-1]
	}
}

// eachHolder visits every view that may show an entry of the agent: its own, and those of forks that belong to others. Those that were seen before it leaves out. What
// shows nothing when it is seen may become a fork, and is seen again.
func (er *erasure) eachHolder(ctx context.Context, seen map[core.SessionID]bool, visit func(core.View) error) error {
	var heirs []core.SessionID
	see := func(v core.View) error {
		if v.Len() > 0 {
			seen[v.Session] = true
		}
		er.agents[v.Session.Agent] = true
		heirs = append(heirs, v.Heirs...)
		return visit(v)
	}
	unread := er.eachView(ctx, seen, see)
	heirs = append(heirs, er.heirs...)
	for asked := make(map[core.SessionID]bool); len(heirs) > 0; {
		id := heirs[0]
		if heirs = heirs[1:]; seen[id] || asked[id] {
			continue
		}
		asked[id] = true
		v, err := er.e.views.LoadView(ctx, id)
		if errors.Is(err, core.ErrNotFound) {
			continue // it was dropped meanwhile
		}
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("load view %q: %w", id, err))
			continue
		}
		if err := see(v); err != nil {
			return err
		}
	}
	return unread
}

// cleanViews takes what is erased out of every view that shows it: sessions in memory first, whatever they are about to publish, then all others, and then forks that
// were made of any of them meanwhile. One made later sees that its parent's view was cleaned, see unerased.
func (er *erasure) cleanViews(ctx context.Context) error {
	for _, id := range er.e.inMemory(er.req.Scope.Agent) {
		if err := er.cleanView(ctx, id, false); err != nil {
			return err
		}
	}
	if err := er.cleanHolders(ctx); err != nil {
		return err
	}
	if !er.e.sharedViews {
		return nil
	}
	for id := range er.spans { // somebody may be about to publish the first view of a session
		if _, done := er.after[id]; !done {
			if err := er.cleanView(ctx, id, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// cleanHolders cleans the views of others that were not seen yet, until no more of them show what is erased.
func (er *erasure) cleanHolders(ctx context.Context) error {
	for cleaned := -1; len(er.after) > cleaned; {
		cleaned = len(er.after)
		if err := er.eachHolder(ctx, er.seen, func(v core.View) error {
			_, done := er.after[v.Session]
			touched := er.touched(&v)
			again := touched && er.req.Purge && !er.purges(v.Session) // what a purge left empty may have become a fork once more
			if done && !again || !touched && !er.concerned(&v) {
				return nil
			}
			return er.cleanView(ctx, v.Session, true)
		}); err != nil {
			return err
		}
	}
	return nil
}

// inMemory lists the sessions that the engine holds in memory and that may show entries of an agent; all when it is empty.
func (e *Engine) inMemory(agent string) []core.SessionID {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]core.SessionID, 0, len(e.sessions))
	for id, s := range e.sessions {
		if agent == "" || id.Agent == agent || s.adopted.Load() {
			out = append(out, id)
		}
	}
	return out
}

// cleanView publishes a session's view without what is erased. Stored says that the view was seen in the store, and that it is to be cleaned there.
func (er *erasure) cleanView(ctx context.Context, id core.SessionID, stored bool) error {
	return er.e.retry(ctx, id, func(s *session) error {
		if err := er.emptyAgain(ctx, s); err != nil {
			return err
		}
		touched := er.touched(&s.view)
		if !touched && !er.concerned(&s.view) && (!stored || s.owed == nil) { // what is not published yet does not say what the store has
			return nil
		}
		v := s.view.Clone()
		called, err := er.inherited(ctx, &v)
		if err != nil {
			return err
		}
		v.Apply(edit.Erased{Count: v.Erased + 1}, edit.Uncall{Entries: er.ids})
		for _, c := range called {
			v.Apply(edit.Call{Called: c})
		}
		er.after[id] = v.Erased
		er.heirs = append(er.heirs, v.Heirs...)
		if !touched {
			s.gone = nil
			return s.publish(ctx, v)
		}
		own := s.ownMessages() // a host may still hand them back
		for i := range v.Summaries {
			if err := er.late(ctx, id, &v.Summaries[i]); err != nil {
				return err
			}
		}
		v.Apply(edit.Summarise{Summaries: er.blanked(v.Summaries)})
		for sid := range v.Stubs {
			if er.ids[sid] {
				v.Apply(edit.Unstub{IDs: []string{sid}})
			}
		}
		if er.ids[v.Pinned] {
			v.Apply(edit.Pin{})
		}
		if er.req.Purge && slices.ContainsFunc(v.Path, func(sp core.Span) bool { return sp.Session != nil && er.req.Scope.Contains(*sp.Session) }) {
			v.Apply(edit.Disown{})
		}
		// What was too much before may fit now, and something must be shown.
		v.Apply(edit.Show{}, edit.Unrecall{}, edit.Seek{}, edit.Anew{})
		s.forget()
		if err := s.publish(ctx, v); err != nil {
			return err
		}
		if v.Len() == 0 {
			delete(er.seen, id)
		}
		s.loaded, s.variants = true, own
		er.rec.Views++
		return nil
	})
}

// inherited returns by what a view's host knows what is erased of other sessions, as it may be kept: of the session's own the empty places say it.
func (er *erasure) inherited(ctx context.Context, v *core.View) ([]core.Called, error) {
	var out []core.Called
	for _, c := range v.Called {
		if !er.ids[c.Entry] || er.req.Purge {
			continue
		}
		for id, entries := range er.spans {
			if id == v.Session || !slices.ContainsFunc(entries, func(entry core.Entry) bool { return entry.ID == c.Entry }) {
				continue
			}
			p, err := er.e.erasures.printsOf(ctx, id.Agent, true)
			if err != nil {
				return nil, err
			}
			if c.Origin == "" {
				c = core.Called{Entry: c.Entry, Origin: p.Origin(id, c.Message())}
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// emptyAgain empties what came again while it was emptied: its key was free, and no view said yet that it was erased. What a call under way stores later is emptied
// when the session is read with the view that says so. Whoever loses the race to publish goes on where it was, and not from the start: others may say it again all
// the time.
func (er *erasure) emptyAgain(ctx context.Context, s *session) error {
	end, ok := er.ends[s.id]
	if !ok || end >= s.view.Next || er.req.Purge {
		return nil
	}
	gone := er.gone[s.id]
	if gone == nil {
		var err error
		if gone, err = erased.Read(ctx, er.e.store, s.id); err != nil {
			return err
		}
		er.gone[s.id] = gone
	}
	q := core.ScanQuery{Scope: s.id.Scope(), FromSeq: end, Limit: core.MaxPage}
	for {
		page, err := er.e.store.Scan(ctx, q)
		if err != nil {
			return err
		}
		for _, entry := range page.Entries {
			place, err := er.e.emptyErased(ctx, gone, entry)
			if err != nil {
				return err
			}
			if place.Type != entry.Type {
				er.ids[place.ID] = true
				er.spans[s.id] = append(er.spans[s.id], place)
				er.rec.Entries++
			}
			er.ends[s.id] = entry.Seq + 1
		}
		if page.Next == "" {
			return nil
		}
		q.Cursor = page.Next
	}
}

// late finds a summary of erased entries that a compaction published while the erasure was under way. A fork shows those of its parent's session, too.
func (er *erasure) late(ctx context.Context, id core.SessionID, sum *core.Summary) error {
	if er.summaries[sum.ID] || sum.Kind == erasedKind || !er.standsFor(sum.Of) {
		return nil
	}
	er.summaries[sum.ID] = true
	er.agents[id.Agent] = true
	for agent := range er.agents {
		got, err := er.e.store.Get(ctx, core.Scope{Agent: agent}, []string{sum.ID})
		if errors.Is(err, core.ErrNotFound) {
			continue
		}
		if err == nil {
			err = er.emptySummary(ctx, got[0])
		}
		return err
	}
	return nil
}

// emptyReplaced empties the summaries that compactions stored while the erasure was under way, and that no view holds any more, because others replaced them. What was made
// of a cleaned view holds nothing of what was erased.
func (er *erasure) emptyReplaced(ctx context.Context) error {
	return er.eachSummary(ctx, func(entry core.Entry) error {
		after, cleaned := er.after[entry.SessionID()]
		if cleaned && erasuresBefore(&entry) >= after || !cleaned && er.e.sharedViews {
			return nil
		}
		er.summaries[entry.ID] = true
		return er.emptySummary(ctx, entry)
	})
}

// emptySummary empties a summary that came while the erasure was under way. It leaves a place, see empty.
func (er *erasure) emptySummary(ctx context.Context, entry core.Entry) error {
	place, err := er.e.erasures.empty(ctx, entry, er.rec.ID)
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return err
	}
	id := entry.SessionID()
	er.ids[place.ID] = true
	er.spans[id] = append(er.spans[id], place)
	er.rec.Summaries++
	er.e.observe(ctx, func(ctx context.Context, o core.Observer) error {
		return o.Deleted(ctx, id.Scope(), []string{entry.ID})
	}, 1)
	return nil
}

// standsFor reports whether spans hold an erased entry.
func (er *erasure) standsFor(of []core.Span) bool {
	for id, entries := range er.spans {
		for _, entry := range entries {
			if slices.ContainsFunc(of, func(sp core.Span) bool { return sp.Holds(id, entry.Seq) }) {
				return true
			}
		}
	}
	return false
}

// within is how many messages in these spans the erasure empties that were not empty before.
func (er *erasure) within(of []core.Span) int {
	n := 0
	for id, entries := range er.spans {
		for _, entry := range entries {
			if entry.Type != core.TypeErased && slices.ContainsFunc(of, func(sp core.Span) bool { return sp.Holds(id, entry.Seq) }) {
				n++
			}
		}
	}
	return n
}

// blanked returns summaries, those empty that stand for something erased. They keep their place: what they cover stays out of the window.
func (er *erasure) blanked(summaries []core.Summary) []core.Summary {
	out := slices.Clone(summaries)
	for i := range out {
		if sum := &out[i]; er.summaries[sum.ID] {
			if sum.Kind != erasedKind {
				sum.Erased += er.within(sum.Of)
			}
			sum.Text, sum.Kind = erasedText, erasedKind
			sum.Tokens = er.e.gauge.messageCost(summaryMessage(*sum))
		}
	}
	return out
}
