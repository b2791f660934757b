package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// errOvertaken says that others changed what a patch is about, so that it cannot be applied any more: it has to be made anew.
var errOvertaken = errors.New("the session was changed meanwhile")

// apply checks a compactor's patch against the session as it is now and publishes it: all of it, or nothing. It is errOvertaken when the session is
// not what the patch was made for any more.
func (t *task) apply(ctx context.Context, p core.Patch) error {
	if len(p.Replace) == 0 && len(p.Stubs) == 0 {
		return nil
	}
	// What was paid for is published even when the caller has given up meanwhile.
	ctx = context.WithoutCancel(ctx)
	a := attempt{made: make(map[int]core.Entry)}
	// Where no views are kept, publishing does not find out what others erased while the patch was made.
	return t.e.repeat(ctx, t.Session, !t.e.sharedViews, func(s *session) error {
		// A part that goes with what others did is published all the same: one behind it may not.
		t.shifted = t.shifted || t.ground != groundOf(&s.view, t.end)
		err := t.attempt(ctx, s, p, &a)
		if (errors.Is(err, core.ErrInvalid) || errors.Is(err, core.ErrNotFound)) && t.shifted {
			err = fmt.Errorf("%w: %w", err, errOvertaken)
		}
		t.overtaken = t.overtaken || errors.Is(err, errOvertaken)
		return err
	})
}

// attempt is what the tries of publishing one patch have in common.
type attempt struct {
	// made are the summaries' entries as they were made first, by the index of the replacement.
	made map[int]core.Entry
	// stored says that an earlier try stored them.
	stored bool
}

func (t *task) attempt(ctx context.Context, s *session, p core.Patch, a *attempt) error {
	v := s.view.Clone()
	var summaries []core.Entry
	made := maps.Clone(t.refs)
	if len(p.Replace) > 0 && !a.stored {
		if err := t.checkGiven(ctx, &v); err != nil {
			return err
		}
	}
	for i, r := range p.Replace {
		r.Summaries = resolved(r.Summaries, made)
		entry := a.made[i]
		if a.stored {
			if !slices.ContainsFunc(v.Summaries, func(sum core.Summary) bool { return sum.ID == entry.ID && sum.Text == entry.Message.Text() }) {
				if err := t.takeBack(ctx, s, a); err != nil {
					return err
				}
				return fmt.Errorf("core: compact %q: its summary is not in force: %w", s.id, errOvertaken)
			}
		} else {
			var err error
			if entry, err = t.replace(ctx, s, &v, r, entry.ID); err != nil {
				return err
			}
			a.made[i] = entry
		}
		summaries = append(summaries, entry)
		if r.Ref != "" {
			made[r.Ref] = entry.ID
		}
	}
	if err := t.stub(ctx, &v, p.Stubs); err != nil {
		return err
	}
	if len(summaries) > 0 && !a.stored {
		if _, err := t.e.store.Append(ctx, summaries); err != nil {
			s.forget()
			return fmt.Errorf("core: compact %q: store summary: %w", s.id, err)
		}
		a.stored = true
	}
	moved := v.Start != s.view.Start
	if moved {
		if err := t.keepPrompt(ctx, &v, s.view.Start < 0); err != nil {
			return err
		}
	}
	if !moved && len(p.Stubs) == 0 && s.view.Start >= 0 {
		before := s.view.Front()
		v.Apply(edit.Show{Front: &before})
	} else {
		v.Apply(edit.Show{}, edit.Unkeep{}, edit.Anew{})
		s.cool()
	}
	if err := s.publish(ctx, v); err != nil {
		return err
	}
	t.refs, t.ground = made, groundOf(&s.view, t.end)
	for i, r := range p.Replace {
		for _, id := range resolved(r.Summaries, made) {
			delete(t.told, id)
		}
		t.told[summaries[i].ID] = summaries[i].Message.Text()
	}
	t.e.observe(ctx, func(ctx context.Context, o core.Observer) error { return o.Appended(ctx, own(summaries)) }, len(summaries))
	return nil
}

// takeBack empties summaries that were stored, but not published, when what they were made of was purged meanwhile.
func (t *task) takeBack(ctx context.Context, s *session, a *attempt) error {
	first := &t.Entries[0]
	if _, err := t.e.store.Get(ctx, first.SessionID().Scope(), []string{first.ID}); !errors.Is(err, core.ErrNotFound) {
		return err
	}
	for _, entry := range a.made {
		if _, err := s.emptyLate(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

// groundOf is what patches are made for, of the path up to a position: two that are the same take the same patches.
func groundOf(v *core.View, end int) string {
	var b strings.Builder
	fmt.Fprint(&b, v.Lead, " ", v.Frontier, " ", v.Erased)
	for _, sum := range v.Summaries {
		b.WriteString(" " + sum.ID)
	}
	for _, sp := range v.Slice(0, end) {
		fmt.Fprintf(&b, " %q %d-%d", sp.Owned(v.Session).Session, sp.From, sp.To)
	}
	return b.String()
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

// keepPrompt pins the newest user message when a patch took it out of the window: what the user asked for stays as long as its turn lasts.
// Where the window is sought, no pin says yet what an earlier patch took out of it.
func (t *task) keepPrompt(ctx context.Context, v *core.View, sought bool) error {
	first := max(v.Frontier, v.Lead)
	if first >= v.Len() {
		return nil
	}
	live := len(t.Entries)
	for _, sp := range v.Slice(first, first+1) {
		if i, ok := t.seq[place{*sp.Owned(v.Session).Session, sp.From}]; ok {
			live = i
		}
	}
	if slices.ContainsFunc(t.Entries[live:], asks) {
		return nil
	}
	items, err := t.e.reader.read(ctx, v, max(first, min(t.end, v.Len())), v.Len())
	if err != nil {
		return err
	}
	for i := range items {
		if asks(items[i].entry) {
			return nil
		}
	}
	for _, entry := range slices.Backward(t.Entries) {
		if asks(entry) {
			v.Apply(edit.Pin{ID: entry.ID}) // also in the place of an older turn's
			return nil
		}
	}
	if !sought {
		return nil
	}
	id, err := t.e.reader.promptBefore(ctx, v, first)
	if err == nil && id != "" {
		v.Apply(edit.Pin{ID: id})
	}
	return err
}

// isPrompt reports whether an entry is a message with which a user begins a turn. What says nothing begins none.
func isPrompt(entry core.Entry) bool {
	return entry.Role == message.User && entry.Type == core.TypeMessage && entry.Message.Type == "" && !window.SaysNothing(entry.Message)
}

// asks reports whether an entry holds what a user asked: a prompt, or what was typed beside the results of tools.
func asks(entry core.Entry) bool {
	if entry.Role != message.Tool || entry.Type != core.TypeMessage || !entry.Message.HasResults() {
		return isPrompt(entry)
	}
	entry.Message, entry.Role, entry.Meta = typed(entry.Message), message.User, nil
	return !window.Blank(entry.Said()) // clients put reminders there, too
}

// typed is what a message that carries results says beside them, as a message of its own.
func typed(m message.Message) message.Message {
	out := message.Message{Role: message.User, Name: m.Name, Time: m.Time}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == message.Text {
			out.Parts = append(out.Parts, message.Part{Kind: message.Text, Text: p.Text})
		}
	}
	return out
}

// refused returns the error for a patch that breaks a rule; nothing of it is published.
func refused(t *task, rule string) error {
	return fmt.Errorf("core: compact %q: patch refused: %s: %w", t.Session, rule, core.ErrInvalid)
}

// replace moves the frontier of v behind the entries of a replacement and puts its summary there, under the id given, if any.
func (t *task) replace(ctx context.Context, s *session, v *core.View, r core.Replacement, id string) (core.Entry, error) {
	if len(r.Entries) == 0 && len(r.Summaries) == 0 {
		return core.Entry{}, refused(t, "a replacement stands for nothing")
	}
	first := max(v.Frontier, v.Lead)
	n := len(r.Entries)
	covers, late, cost, gone := n, 0, 0, 0
	if n > 0 {
		var err error
		if cost, err = t.checkEntries(v, r.Entries, first); err != nil {
			return core.Entry{}, err
		}
		for _, id := range r.Entries {
			if t.Entries[t.at[id]].Type == core.TypeErased {
				gone++
			}
		}
	}
	var of []core.Span
	for _, sp := range v.Slice(first, first+n) {
		of = append(of, sp.Owned(v.Session))
	}
	kept := v.Summaries[:0:0]
	at := -1
	for _, sum := range v.Summaries {
		if !slices.Contains(r.Summaries, sum.ID) {
			kept = append(kept, sum)
			continue
		}
		if at < 0 {
			at = len(kept)
		}
		covers += sum.Covers
		late += sum.Late
		gone += sum.Erased
		of = append(of, sum.Of...)
		cost += sum.Tokens
	}
	if len(v.Summaries)-len(kept) != len(r.Summaries) {
		return core.Entry{}, refused(t, "it includes a summary that is not there")
	}
	of = joined(of)
	if s.blank != nil { // of two summaries of the same places each counts them
		gone = s.blank.Count(of)
	}
	frontier := v.Frontier
	if n > 0 {
		frontier = first + n
	}
	// A text made from a conversation is no more trusted than the conversation: it must not open anything either.
	if r.Text = window.Neutral(r.Text); window.Blank(r.Text) {
		// What says nothing would not be shown, and nobody would know that there was more.
		t.e.warn(ctx, "compactor", "text", errors.New("a replacement says nothing; a note stands in its place"))
		r.Text, r.Kind = window.NotShown(covers), "note"
	}
	entry := t.e.summaryEntry(v, r, standing{covers: covers, late: late, of: of, frontier: frontier, erased: gone}, t.Now)
	if id != "" {
		entry.ID, entry.Key = id, summaryKey+id
	}
	if entry.Tokens >= cost && r.Kind != "note" {
		return core.Entry{}, refused(t, fmt.Sprintf("%d tokens cannot stand for %d", entry.Tokens, cost))
	}
	sum := summaryOf(entry)
	switch {
	case n > 0:
		kept = append(kept, sum)
	default:
		kept = slices.Insert(kept, max(at, 0), sum)
	}
	if n > 0 {
		v.Apply(edit.Advance{Frontier: frontier, Gone: r.Entries})
	}
	v.Apply(edit.Summarise{Summaries: kept}, edit.Count{Next: v.Next + 1, Turns: v.Turns})
	return entry, nil
}

// checkEntries returns what the entries of a replacement cost now. It refuses them when they are not the oldest live ones, from position first on, or the cut
// behind them falls into a group.
func (t *task) checkEntries(v *core.View, ids []string, first int) (int, error) {
	from := t.at[ids[0]] // one that is not there is seen below not to be the oldest
	if from+len(ids) > len(t.Entries)-t.Protected {
		return 0, refused(t, "it takes entries that must stay")
	}
	if first+len(ids) > v.Len() {
		return 0, refused(t, "the entries are not live any more")
	}
	cost, i := 0, from
	for _, sp := range v.Slice(first, first+len(ids)) {
		owner := *sp.Owned(v.Session).Session
		for seq := sp.From; seq < sp.To; seq++ {
			entry := &t.Entries[i]
			if entry.ID != ids[i-from] || entry.Seq != seq || entry.SessionID() != owner {
				return 0, refused(t, "the entries are not the oldest live ones, without a gap")
			}
			if st, ok := v.Stubs[entry.ID]; ok {
				cost += st.Tokens
			} else {
				cost += t.Cost[i]
			}
			i++
		}
	}
	if !t.cut[i] {
		return 0, refused(t, "it tears a tool call from its results")
	}
	return cost, nil
}

// checkGiven refuses what a compactor wrote when something that it was given was erased meanwhile: its texts may hold that, whatever they stand for.
func (t *task) checkGiven(ctx context.Context, v *core.View) error {
	if v.Erased == t.erased {
		return nil
	}
	same := 0
	for i := range v.Summaries {
		if text, ok := t.told[v.Summaries[i].ID]; ok && text == v.Summaries[i].Text {
			same++
		}
	}
	items, err := t.e.reader.read(ctx, v, max(v.Frontier, v.Lead), v.Len())
	if err != nil {
		return err
	}
	if same < len(t.told) || slices.ContainsFunc(items, func(it item) bool {
		i, ok := t.seq[place{it.entry.SessionID(), it.entry.Seq}]
		return ok && it.entry.Type != t.Entries[i].Type
	}) {
		return fmt.Errorf("%w: %w", refused(t, "it was given what was erased meanwhile"), errOvertaken)
	}
	return nil
}

// stub takes over the stubs of a patch for entries that the window shows.
func (t *task) stub(ctx context.Context, v *core.View, stubs map[string]window.Stub) error {
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
		entry, err := t.known(ctx, v, id)
		if errors.Is(err, core.ErrNotFound) {
			return refused(t, "it shortens an entry that is not there")
		}
		if err != nil {
			return fmt.Errorf("core: compact %q: %w", t.Session, err)
		}
		if entry.Type == core.TypeErased {
			continue // it was erased meanwhile: there is nothing to shorten any more
		}
		for i, p := range entry.Message.Parts {
			if _, named := st.Texts[i]; named && p.Kind == message.ToolCall {
				return refused(t, "it puts a text in the place of a tool call, whose result would be left alone")
			}
		}
		before, had := v.Stubs[id]
		if st = ownStub(st); had {
			st = stubOver(st, before)
		}
		if st.Tokens = t.e.gauge.messageCost(shownAs(entry, &st)); st.Tokens >= entry.Tokens {
			return refused(t, "a stub costs more than what it stands for")
		}
		if had && st.Tokens >= before.Tokens {
			continue // a step has shortened it further meanwhile
		}
		v.Apply(edit.Stub{ID: id, Stub: st})
	}
	return nil
}

// known returns an entry of the task. It is read again when something was erased meanwhile.
func (t *task) known(ctx context.Context, v *core.View, id string) (core.Entry, error) {
	if i, ok := t.at[id]; ok && v.Erased == t.erased {
		return t.Entries[i], nil
	}
	return t.e.reader.find(ctx, v, id)
}

// joined returns the same spans, which name their sessions, in order and without repetition.
func joined(spans []core.Span) []core.Span {
	slices.SortFunc(spans, func(a, b core.Span) int { return cmp.Or(a.Session.Compare(*b.Session), cmp.Compare(a.From, b.From)) })
	var out []core.Span
	for _, s := range spans {
		if n := len(out); n > 0 && *out[n-1].Session == *s.Session && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}
