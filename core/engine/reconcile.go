package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/internal/transcript"
	"github.com/contextengine/contextengine/core/message"
)

// reconcile makes the view agree with what the host says happened, and stores what the engine has not seen: turns that failed or
// were announced are never committed, but stand in the transcript. It returns the number of new entries.
//
// Four things can have happened besides growth: the host shows only the newest part (history limits), it was reset, it was rewound or forked,
// or it compacted itself. Each is recognised and none is mixed with another.
//
// Inside a turn (loop) the transcript may also begin with what the engine returned lately.
func (s *session) reconcile(ctx context.Context, t *core.Transcript, loop bool) (int, error) {
	if t.Skipped < 0 {
		return 0, invalid("reconcile", "transcript.skipped", "must be the number of messages that are not repeated, 0 or more")
	}
	if err := validMessages("reconcile", t.Messages); err != nil {
		return 0, err
	}
	// Ledgers speak of what the host has, everything else of what may be stored.
	fps := fingerprintsOf(t.Messages)
	kept := fps
	if len(s.e.redact) > 0 {
		t = &core.Transcript{Skipped: t.Skipped, Digest: t.Digest, Messages: s.e.redact.redacted(t.Messages), Whole: t.Whole}
		kept = fingerprintsOf(t.Messages)
	}
	if n, ok, err := s.reconcileTail(ctx, t, fps, loop); ok || err != nil {
		return n, err
	}
	if t.Skipped > 0 {
		return 0, fmt.Errorf("core: reconcile %q: %d skipped messages do not match: %w", s.id, t.Skipped, core.ErrNeedTranscript)
	}
	return s.reconcileAll(ctx, t, fps, kept, loop)
}

// reconcileTail handles growth: the transcript begins with what was matched before, or with the engine's own last output.
func (s *session) reconcileTail(ctx context.Context, t *core.Transcript, fps []string, loop bool) (int, bool, error) {
	for _, l := range s.ledgers(loop) {
		if l.Len != s.view.Len() || l.Count < t.Skipped || l.Count > t.Skipped+len(fps) || l.Count == 0 && s.view.Len() > 0 && (l == s.view.Host || t.Skipped+len(fps) > 0) {
			continue
		}
		d := t.Digest
		for _, fp := range fps[:l.Count-t.Skipped] {
			d = d.Add(fp)
		}
		if d != l.Digest {
			continue
		}
		fresh, _ := transcript.Spoken(t.Messages[l.Count-t.Skipped:])
		own := l != s.view.Host
		if len(fresh) == 0 {
			return 0, true, nil
		}
		v := s.view.Clone()
		in, err := s.append(ctx, &v, draft{messages: fresh})
		if err != nil {
			return 0, true, err
		}
		if !own {
			v.Apply(edit.Match{Ledger: asOf(extend(l, fps[l.Count-t.Skipped:]), &v)})
		}
		return len(in.entries), true, s.takeUp(ctx, v, in)
	}
	return 0, false, nil
}

// ledgers returns what a transcript may begin with, the longest first. What the engine returned is among it inside a turn alone: a host that has nothing
// else any more at its beginning has deleted the rest.
func (s *session) ledgers(loop bool) []core.Ledger {
	out := []core.Ledger{s.view.Host}
	if loop {
		out = append(out, s.outputs...)
	}
	slices.SortStableFunc(out, func(a, b core.Ledger) int { return b.Count - a.Count })
	return out
}

// reconcileAll compares the whole transcript with the whole path. fps are the fingerprints of the host's messages, kept those of the same as they
// may be stored.
func (s *session) reconcileAll(ctx context.Context, t *core.Transcript, fps, kept []string, loop bool) (int, error) {
	known, err := s.e.reader.pathEntries(ctx, &s.view)
	if err != nil {
		return 0, err
	}
	if len(s.view.Stubs) > 0 {
		if err := s.warmUp(ctx); err != nil { // what they make of entries is the engine's own
			return 0, err
		}
	}
	// What the engine itself put into its output is not part of the conversation, and what it shortened or merged stands for what it shows.
	in := transcript.Read(t, kept, s.ownMessages(), loop)
	if err := s.e.erasures.recognise(ctx, known, in.Rows, t.Messages); err != nil {
		return 0, err
	}
	in.TakeLeaders(&s.view, known)
	if runs := in.Joinable(known); len(runs) > 0 {
		if err := s.e.erasures.readNeighbours(ctx, runs); err != nil {
			return 0, err
		}
		in.Split(known, runs)
	}
	plan := in.Plan(&s.view, known)
	v := s.view.Clone()
	n, err := s.follow(ctx, &v, t, plan)
	if err != nil {
		return 0, err
	}
	v.Apply(edit.Match{Ledger: asOf(extend(core.Ledger{Count: t.Skipped, Digest: t.Digest}, fps), &v)})
	if err := s.takeUp(ctx, v, n); err != nil || len(plan.Leaders) == 0 || !s.warm {
		return len(n.entries), err
	}
	if s.lead, err = s.e.reader.readLead(ctx, &s.view); err != nil {
		s.cool()
	}
	return len(n.entries), err
}

// pathEntries reads what reconciling needs of all entries on a path.
func (r *reader) pathEntries(ctx context.Context, v *core.View) ([]transcript.Known, error) {
	var out []transcript.Known
	for _, sp := range v.Path {
		err := r.scanSpan(ctx, v, sp, func(entry core.Entry) {
			leads := len(out) < v.Lead || entry.Leads()
			out = append(out, transcript.Known{
				Owner: entry.SessionID(), Seq: entry.Seq, Fingerprint: entry.Fingerprint, Erased: entry.Type == core.TypeErased,
				Origin: entry.Meta[erased.MetaOrigin], Soft: entry.Type != core.TypeMessage || leads, Role: entry.Role, ID: entry.ID, Leads: leads,
				Stray: entry.Meta[transcript.MetaStray] != "",
			})
		})
		if err != nil {
			return nil, err
		}
	}
	if len(out) > v.Len() {
		return nil, tiedAt(v, 0, v.Len())
	}
	if len(out) != v.Len() {
		return nil, fmt.Errorf("core: session %q: %d of %d entries are missing in the store: %w",
			v.Session, v.Len()-len(out), v.Len(), core.ErrNotFound)
	}
	return out, nil
}

// scanSpan reads the entries of a span in order.
func (r *reader) scanSpan(ctx context.Context, v *core.View, sp core.Span, visit func(core.Entry)) error {
	owner := v.Session
	if sp.Session != nil {
		owner = *sp.Session
	}
	q := core.ScanQuery{Scope: owner.Scope(), FromSeq: sp.From, ToSeq: sp.To, Limit: core.MaxPage}
	for {
		page, err := r.store.Scan(ctx, q)
		if err != nil {
			return fmt.Errorf("core: read session %q: %w", owner, err)
		}
		for _, entry := range page.Entries {
			if inConversation(entry) {
				visit(entry)
			}
		}
		if page.Next == "" {
			return nil
		}
		q.Cursor = page.Next
	}
}

// readNeighbours reads what neighbours hold: once for each session, and once for each agent of which some are erased.
func (t *erasures) readNeighbours(ctx context.Context, runs [][]transcript.Neighbour) error {
	keys := make(map[string]erased.Prints)
	there := make(map[core.SessionID][]*transcript.Neighbour)
	for _, run := range runs {
		for i := range run {
			n := &run[i]
			if !n.Erased {
				there[n.Owner] = append(there[n.Owner], n)
				continue
			}
			p, known := keys[n.Owner.Agent]
			if !known {
				var err error
				if p, err = t.printsOf(ctx, n.Owner.Agent, false); err != nil {
					return err
				}
				keys[n.Owner.Agent] = p
			}
			n.Prints = p
		}
	}
	for owner, all := range there {
		for some := range slices.Chunk(all, core.MaxPage) {
			ids := make([]string, len(some))
			for i, n := range some {
				ids[i] = n.ID
			}
			got, err := t.store.Get(ctx, owner.Scope(), ids)
			if err != nil {
				return fmt.Errorf("core: reconcile: %w", err)
			}
			for i, n := range some {
				n.Parts = got[i].Message.Parts
			}
		}
	}
	return nil
}

// ownMessages tells the engine's own messages in a transcript from the host's: the value lists the fingerprints of the entries that a
// shortened or merged message shows, with "" where it says something of the engine's own; it is empty for what shows none.
func (s *session) ownMessages() map[string][]string {
	out := make(map[string][]string, len(s.variants)+4)
	front := s.view.Front()
	for _, sum := range append(slices.Clone(s.view.Summaries), front.Summaries...) {
		out[message.Fingerprint(summaryMessage(sum))] = nil
	}
	for _, r := range recallsOf(&s.view) {
		out[message.Fingerprint(recallMessage(r))] = nil
	}
	if front.Left > 0 {
		out[message.Fingerprint(noteMessage(front.Left))] = nil
	}
	for i := range s.items {
		if it := &s.items[i]; !same(&it.entry.Message, &it.msg) {
			out[message.Fingerprint(it.msg)] = []string{it.entry.Fingerprint}
		}
	}
	maps.Copy(out, s.variants)
	return out
}
