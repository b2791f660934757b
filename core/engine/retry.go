package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/internal/places"
)

// stuck is how often in a row a call is tried again although nothing changed between two tries.
const stuck = 12

// The pauses between two tries of a call.
const (
	minRetryPause = time.Millisecond
	maxRetryPause = 100 * time.Millisecond
)

// retry runs op, and again as long as others change the session meanwhile: whoever changed it got ahead, so somebody always does. It ends with ctx, or when
// op conflicts with something that does not change. op makes the same entries each time, see tries.
func (e *Engine) retry(ctx context.Context, id core.SessionID, op func(s *session) error) error {
	return e.repeat(ctx, id, true, op)
}

// resume is retry for the later parts of a call: it does not ask the store what others did, which publishing finds out anyway.
func (e *Engine) resume(ctx context.Context, id core.SessionID, op func(s *session) error) error {
	return e.repeat(ctx, id, false, op)
}

func (e *Engine) repeat(ctx context.Context, id core.SessionID, look bool, op func(s *session) error) error {
	version, next, same := uint64(math.MaxUint64), int64(-1), 0 // no view is like that
	for n := 0; ; n++ {
		s, done, err := e.enter(ctx, id, look)
		again := errors.Is(err, core.ErrConflict) // it was changed while it was read
		if err == nil {
			if v := &s.view; v.Version == version && v.Next == next {
				same++
			} else {
				version, next, same = v.Version, v.Next, 0
			}
			if err = s.guarded(op, done); err != nil && s.ahead {
				s.forget()
			}
			if tied, ok := errors.AsType[*tiedError](err); ok {
				err = s.mend(ctx, tied)
				s.forget()
				if err == nil {
					err = fmt.Errorf("core: session %q: it was mended: %w", id, core.ErrConflict)
				}
			}
			again = errors.Is(err, core.ErrConflict) && !s.loaded
			if n == 0 && errors.Is(err, errMissing) { // where the store does not say what others did, this is how a purge is noticed
				s.forget()
				again = true
			}
			if again && n > 0 && s.owed != nil {
				// It was read anew and could not be kept: what is in the way is not what others wrote, but what this engine did and the store did not acknowledge.
				again, err = false, s.owed
			}
			done()
		} else if again {
			same++
		}
		if !again {
			return err
		}
		if same >= stuck {
			return fmt.Errorf("core: session %q: tried %d times: %w", id, n+1, err)
		}
		if err := pause(ctx, n); err != nil {
			return fmt.Errorf("core: session %q: others keep changing it: %w", id, err)
		}
	}
}

// tries holds the entries that a call made at its first try, by the index of the message: a try after that makes what is not stored yet anew with the same
// id, key and time.
type tries map[int]try

// try is an entry as it was made first.
type try struct {
	core.Entry
	// stored is the id under which an earlier try stored it, or found it stored. A later one goes by that: an erasure meanwhile changes the key.
	stored string
}

// same gives an entry what it had at the first try, and reports whether there was one.
func (t tries) same(i int, entry *core.Entry) bool {
	if t == nil {
		return false
	}
	first, again := t[i]
	if again {
		entry.ID, entry.Time = first.ID, first.Time
		entry.Key = strings.ReplaceAll(first.Key, first.Fingerprint, entry.Fingerprint) // it was erased meanwhile, or is what it was
		return true
	}
	t[i] = try{Entry: *entry}
	return false
}

// note says under which id the store has an entry; "" that it is not there any more.
func (t tries) note(i int, id string) {
	if one, ok := t[i]; ok {
		one.stored = id
		t[i] = one
	}
}

// pause waits before try n+1, not at all before the first. Some chance in it keeps two processes from meeting at every try.
func pause(ctx context.Context, n int) error {
	if n == 0 {
		return ctx.Err()
	}
	limit := min(minRetryPause<<min(n, 16), maxRetryPause)
	timer := time.NewTimer(limit/2 + rand.N(limit/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tails is where a session ends, and the marks of the others whose entries it shows, as the store says.
type tails struct {
	own    core.Tail
	others map[core.SessionID]uint64
}

// tails asks the store how far the session is. Where it keeps the views, whoever erases something changes those of all who show it; where it does not, it is asked
// about the other sessions that v shows, too.
func (s *session) tails(ctx context.Context, v *core.View) (t tails, known bool, err error) {
	t.own, known, err = s.e.reader.tail(ctx, s.id)
	if err != nil || !known || s.e.sharedViews {
		return t, known, err
	}
	t.others = make(map[core.SessionID]uint64)
	for owner := range ownersOf(v) {
		if owner == s.id {
			continue
		}
		tail, _, err := s.e.reader.tail(ctx, owner)
		if err != nil {
			return t, false, err
		}
		t.others[owner] = tail.View
	}
	return t, true, nil
}

// changed reports whether entries of the session, or others that it shows, were changed or deleted since it was read, in a store that keeps no views.
func (s *session) changed(t *tails) bool {
	for owner, now := range t.others {
		if was, ok := s.others[owner]; !ok || was != now {
			return true
		}
	}
	return t.own.View != s.mark
}

// ownersOf are the sessions whose entries a view shows, and its own, and behind which position it shows none of each.
func ownersOf(v *core.View) map[core.SessionID]int64 {
	owners := map[core.SessionID]int64{v.Session: v.Next}
	for _, sp := range v.Path {
		owner := *sp.Owned(v.Session).Session
		owners[owner] = max(owners[owner], sp.To)
	}
	return owners
}

// look drops what is in memory of a session that another process changed, and returns what the store said. Where the store cannot tell, that is nil, and what is
// in memory holds.
func (s *session) look(ctx context.Context) (*tails, error) {
	t, known, err := s.tails(ctx, &s.view)
	if err != nil {
		if ctx.Err() != nil || s.e.cfg.Failure == FailStrict {
			return nil, err
		}
		s.e.warn(ctx, "store", "tail", err)
		return nil, nil
	}
	if !known {
		s.unseen = nil
		return nil, nil
	}
	changed := s.changed(&t)
	if s.e.sharedViews {
		changed = t.own.View != s.view.Version
	}
	// Where it ends sooner than before a summary was erased, or it was purged and its view may have the same version again: load tells.
	sooner := t.own.Next < s.view.Next && t.own.Next != s.short
	if sooner {
		s.short = t.own.Next
	} else if t.own.Next >= s.view.Next {
		s.short = -1
	}
	if !changed {
		s.unseen = nil // whoever erases something from now on sees them
	}
	if len(s.holes) > 0 {
		if err := s.fill(ctx); err != nil {
			if ctx.Err() != nil || s.e.cfg.Failure == FailStrict {
				return nil, err
			}
			s.e.warn(ctx, "store", "scan", err) // the next call looks again
		}
	}
	if sooner || changed || t.own.Next > s.view.Next {
		if changed && !s.e.sharedViews && foreign(&s.view) {
			s.theirs = s.foreignIDs()
		}
		s.forget()
	}
	return &t, nil
}

// fill looks once whether another process, which had looked before, stored something at a position in front of what is known, and puts it where it belongs. Nothing else
// shows that in a store that keeps no views.
func (s *session) fill(ctx context.Context) error {
	v, filled := s.view.Clone(), false
	between := core.Span{From: s.holes[0], To: s.holes[len(s.holes)-1] + 1}
	err := s.e.reader.scanSpan(ctx, &v, between, func(entry core.Entry) {
		if !slices.Contains(s.holes, entry.Seq) || !inConversation(entry) || onPath(&v, s.id, entry.Seq) {
			return
		}
		for seq := entry.Seq + 1; seq < v.Next; seq++ {
			if pos := v.Position(s.id, seq); pos >= 0 {
				v.Apply(edit.Insert{At: pos, Session: s.id, Seq: entry.Seq, Noted: true}, edit.Count{Next: v.Next, Turns: max(v.Turns, entry.Turn)})
				filled = true
				return
			}
		}
	})
	if err != nil {
		return fmt.Errorf("core: look at session %q: %w", s.id, err)
	}
	s.holes = nil
	if !filled {
		return nil
	}
	v.Apply(edit.Match{}) // what was matched before says nothing of the path
	s.cool()
	s.outputs = nil
	return s.publish(ctx, v)
}

// record puts an entry of the engine's own at the end of one of its reserved sessions, whoever else does so at the same time.
func (e *Engine) record(ctx context.Context, entry core.Entry) (core.AppendResult, error) {
	last, same := int64(-1), 0
	for n := 0; ; n++ {
		newest, err := core.First(ctx, e.store, core.ScanQuery{Scope: entry.SessionID().Scope(), Reverse: true})
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return core.AppendResult{}, err
		}
		entry.Seq = 0
		if err == nil {
			entry.Seq = newest.Seq + 1
		}
		if same++; entry.Seq != last {
			last, same = entry.Seq, 0
		}
		res, err := e.store.Append(ctx, []core.Entry{entry})
		if !errors.Is(err, core.ErrConflict) || same >= stuck {
			return res, err
		}
		if err := pause(ctx, n); err != nil {
			return core.AppendResult{}, fmt.Errorf("core: session %q: others keep writing: %w", entry.Session, err)
		}
	}
}

// guarded does what is to be done with a session. A part that panics leaves it to others, who read it anew.
func (s *session) guarded(op func(s *session) error, done func()) error {
	over := false
	defer func() {
		if !over {
			s.forget()
			done()
		}
	}()
	err := op(s)
	over = true
	return err
}

// freshen takes out of a view that this process keeps itself what another one erased or purged; where the store keeps the views, whoever erases does that. It reports
// whether v is to be published.
func (s *session) freshen(ctx context.Context, v *core.View) (publish bool, err error) {
	if err := s.emptyUnseen(ctx); err != nil {
		return false, err
	}
	was := s.blank
	defer func() {
		if err != nil {
			s.blank = was // the next try must find that something was erased, too
		}
	}()
	gone := make(map[int64]bool)
	for _, sp := range v.Path {
		for seq := sp.From; sp.Session == nil && seq < sp.To; seq++ {
			gone[seq] = true
		}
	}
	found := make(map[place]bool)         // of other sessions
	anew := make(map[core.SessionID]bool) // others that were purged, and in which something was said since
	all := len(gone)
	there := make(map[string]bool) // what says something
	var empty []int64              // the session's own erased places
	var summaries []core.Entry     // they may be shown, also those of others
	next := int64(0)
	s.places, s.blank = nil, places.Set{}
	for owner, end := range ownersOf(v) {
		s.blank.Begin(owner)
		for entry, err := range core.All(ctx, s.e.store, owner.Scope(), false) {
			if err != nil {
				return false, fmt.Errorf("core: load session %q: %w", s.id, err)
			}
			if owner == s.id {
				if entry, err = s.emptyRepeated(ctx, entry); err != nil {
					return false, err
				}
				next = max(next, entry.Seq+1)
				if inConversation(entry) {
					delete(gone, entry.Seq)
				}
				if saysNothing(&entry) {
					empty = append(empty, entry.Seq)
				}
			}
			if owner != s.id && inConversation(entry) {
				if id, ok := s.theirs[place{owner, entry.Seq}]; ok && id != entry.ID {
					anew[owner] = true
				}
				found[place{owner, entry.Seq}] = true
			}
			s.blank.See(owner, entry.Seq, saysNothing(&entry))
			if there[entry.ID] = entry.Type != core.TypeErased; entry.Type == core.TypeSummary {
				summaries = append(summaries, entry)
			}
		}
		s.blank.End(owner, end)
	}
	if next == 0 || v.Parent == nil && (all > 0 && len(gone) == all || begunAnew(v, there, empty)) {
		known := v.Epoch
		s.purge()
		*v = core.View{Session: s.id}
		v.Apply(edit.Epoch{Known: known})
		if err := s.e.views.DeleteView(ctx, s.id); err != nil {
			return false, fmt.Errorf("core: load session %q: it was purged: %w", s.id, err)
		}
		return false, nil
	}
	for _, entry := range summaries {
		if entry.SessionID() == s.id || hasSummary(v, entry.ID) {
			now, err := s.emptyUntold(ctx, entry)
			if err != nil {
				return false, err
			}
			there[entry.ID] = now.Type != core.TypeErased
		}
	}
	er := &erasure{e: s.e, summaries: make(map[string]bool)}
	for i := range v.Summaries {
		er.summaries[v.Summaries[i].ID] = !there[v.Summaries[i].ID] && v.Summaries[i].Kind != erasedKind
	}
	theirs := lost(v, found, anew)
	touched := len(gone) > 0 || len(theirs) > 0 || s.blank.Changed(was)
	for i := range v.Summaries {
		touched = touched || er.summaries[v.Summaries[i].ID]
	}
	shown := er.blanked(v.Summaries)
	for i := range shown {
		shown[i].Erased = s.blank.Count(shown[i].Of)
	}
	v.Apply(edit.Summarise{Summaries: shown})
	for id := range v.Stubs {
		if !there[id] {
			v.Apply(edit.Unstub{IDs: []string{id}})
			touched = true
		}
	}
	recalls := v.Recall != nil || len(v.Kept) > 0                                 // they may quote any session
	v.Apply(edit.Unrecall{}, edit.Count{Next: min(v.Next, next), Turns: v.Turns}) // positions are given anew after a purge
	if !touched {
		return recalls, nil
	}
	v.Apply(edit.Relay{Gone: gone, Lost: theirs})
	if !there[v.Pinned] {
		v.Apply(edit.Pin{})
	}
	v.Apply(edit.Show{}, edit.Seek{}, edit.Erased{Count: v.Erased + 1}, edit.Anew{})
	return true, nil
}

// emptyUnseen empties what was stored when it was erased already: the call that stored it had looked before, and no view told it. What has no id may have been
// said before another message was erased that says the same.
func (s *session) emptyUnseen(ctx context.Context) error {
	if len(s.unseen) == 0 {
		return nil
	}
	gone, err := erased.Read(ctx, s.e.store, s.id)
	if err != nil || gone == nil {
		return err
	}
	for _, id := range s.unseen {
		got, err := s.e.store.Get(ctx, s.id.Scope(), []string{id})
		if errors.Is(err, core.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := s.e.emptyErased(ctx, gone, got[0]); err != nil {
			return err
		}
	}
	return nil
}

// foreignIDs are the entries of other sessions that the window shows, by their place: a session that was purged gives its positions anew.
func (s *session) foreignIDs() map[place]string {
	out := make(map[place]string)
	for i := range s.items {
		if entry := &s.items[i].entry; entry.SessionID() != s.id {
			out[place{entry.SessionID(), entry.Seq}] = entry.ID
		}
	}
	return out
}

// lost are the places of other sessions on a path that are not among those found, and all of a session that gave its positions anew.
func lost(v *core.View, found map[place]bool, anew map[core.SessionID]bool) (out []core.Span) {
	for _, sp := range v.Path {
		for seq := sp.From; sp.Session != nil && seq < sp.To; seq++ {
			if anew[*sp.Session] || !found[place{*sp.Session, seq}] {
				out = append(out, core.Span{Session: sp.Session, From: seq, To: seq + 1})
			}
		}
	}
	return joined(out)
}

// begunAnew reports whether a session was purged and something else was said in it since: a summary went, and nothing of what it stood for is an empty place.
func begunAnew(v *core.View, there map[string]bool, empty []int64) bool {
	return slices.ContainsFunc(v.Summaries, func(sum core.Summary) bool {
		return !there[sum.ID] && sum.Kind != erasedKind && !slices.ContainsFunc(empty, func(seq int64) bool {
			return sum.MadeOf(v.Session, seq)
		})
	})
}

// hasSummary reports whether a view has a summary.
func hasSummary(v *core.View, id string) bool {
	return slices.ContainsFunc(v.Summaries, func(sum core.Summary) bool { return sum.ID == id })
}
