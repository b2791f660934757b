package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/message"
)

// reconcile makes the view agree with what the host says happened, and stores what the engine has not seen: turns that failed or
// were announced are never committed, but stand in the transcript. It returns the number of new entries.
//
// Four things can have happened besides growth: the host shows only the newest part (history limits), it was reset, it was rewound or forked,
// or it compacted itself. Each is recognised and none is mixed with another.
//
// Inside a turn (loop) the transcript may also begin with what the engine returned lately.
func (e *Engine) reconcile(ctx context.Context, s *session, t *core.Transcript, loop bool) (int, error) {
	if t.Skipped < 0 {
		return 0, invalid("reconcile", "transcript.skipped", "must be the number of messages that are not repeated, 0 or more")
	}
	if err := validMessages("reconcile", t.Messages); err != nil {
		return 0, err
	}
	// Ledgers speak of what the host has, everything else of what may be stored.
	fps := fingerprintsOf(t.Messages)
	kept := fps
	if len(e.redact) > 0 {
		t = &core.Transcript{Skipped: t.Skipped, Digest: t.Digest, Messages: e.redacted(t.Messages), Whole: t.Whole}
		kept = fingerprintsOf(t.Messages)
	}
	if n, ok, err := e.reconcileTail(ctx, s, t, fps, loop); ok || err != nil {
		return n, err
	}
	if t.Skipped > 0 {
		return 0, fmt.Errorf("core: reconcile %q: %d skipped messages do not match: %w", s.id, t.Skipped, core.ErrNeedTranscript)
	}
	return e.reconcileAll(ctx, s, t, fps, kept, loop)
}

// reconcileTail handles growth: the transcript begins with what was matched before, or with the engine's own last output.
func (e *Engine) reconcileTail(ctx context.Context, s *session, t *core.Transcript, fps []string, loop bool) (int, bool, error) {
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
		fresh, _ := spoken(t.Messages[l.Count-t.Skipped:])
		own := l != s.view.Host
		if len(fresh) == 0 {
			return 0, true, nil
		}
		v := s.view.Clone()
		in, err := e.append(ctx, s, &v, draft{messages: fresh})
		if err != nil {
			return 0, true, err
		}
		if !own {
			v.Apply(edit.Match{Ledger: asOf(extend(l, fps[l.Count-t.Skipped:]), &v)})
		}
		return len(in.entries), true, e.takeUp(ctx, s, v, in)
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

// row is a message of a host's transcript, or one of those that a message of the engine's own shows.
type row struct {
	index int
	fp    string
	own   bool
	// gap says that a note of the engine's own stands in front of it: what is missing there is not shown, and still in force.
	gap bool
	// fillers are the roles of the host's own lines in front of it.
	fillers []message.Role
}

func fingerprints(rows []row) []string {
	out := make([]string, len(rows))
	for i := range rows {
		out[i] = rows[i].fp
	}
	return out
}

// knownEntry is what reconciling needs of an entry on the path.
type knownEntry struct {
	owner core.SessionID
	seq   int64
	fp    string
	// erased entries are known by what they leave, see package erased; origin is by what the host knew them.
	erased bool
	origin string
	// soft entries are the engine's own or hidden, or stand in front: a host does not show them, and their absence means nothing. An erased entry is one
	// unless the host still has it.
	soft bool
	// leads says that it is a system message that stands in front, or did; stray that it is no anchor, see head.go.
	leads, stray bool
	role         message.Role
	id           string
}

// reconcileAll compares the whole transcript with the whole path. fps are the fingerprints of the host's messages, kept those of the same as they
// may be stored.
func (e *Engine) reconcileAll(ctx context.Context, s *session, t *core.Transcript, fps, kept []string, loop bool) (int, error) {
	known, err := e.pathEntries(ctx, &s.view)
	if err != nil {
		return 0, err
	}
	if len(s.view.Stubs) > 0 {
		if err := e.warmUp(ctx, s); err != nil { // what they make of entries is the engine's own
			return 0, err
		}
	}
	// What the engine itself put into its output is not part of the conversation, and what it shortened or merged stands for what it shows.
	own := e.ownMessages(s)
	var rows []row
	var fillers []message.Role
	gap := false
	for i, fp := range kept {
		shows, ok := own[fp]
		at := slices.Index(shows, fp)
		if t.Messages[i].Type == message.Filler {
			gap, fillers = true, append(fillers, t.Messages[i].Role)
			continue
		}
		if !ok || at >= 0 {
			// It may be the host's or the engine's; if it is the engine's, a rule took out what stood around it.
			rows = append(rows, row{index: i, fp: fp, gap: gap || loop && at > 0, fillers: fillers})
			gap, fillers = loop && at >= 0 && at < len(shows)-1, nil
			continue
		}
		for _, of := range shows {
			if of == "" { // what the engine itself says there
				gap = true
				continue
			}
			rows = append(rows, row{index: i, fp: of, own: true, gap: gap, fillers: fillers})
			gap, fillers = false, nil
		}
		gap = gap || len(shows) == 0
	}
	if err := e.recognise(ctx, known, rows, t.Messages); err != nil {
		return 0, err
	}
	var leaders []leader
	if len(known) > 0 {
		leaders, rows = leading(&s.view, known, rows, t.Messages)
	}
	if rows, err = e.splitJoined(ctx, known, rows, t.Messages); err != nil {
		return 0, err
	}
	rows = withoutEchoes(known, rows, t.Messages)
	hard := make([]int, 0, len(known))
	kf := make([]string, 0, len(known))
	strays := make(map[int]string)
	var l links
	for i, k := range known {
		if k.soft {
			continue
		}
		fp := k.fp
		if k.stray {
			fp, strays[len(kf)] = "", k.fp // no anchor
		}
		hard, kf = append(hard, i), append(kf, fp)
		l.roles, l.strays = append(l.roles, k.role), append(l.strays, k.stray)
	}
	match := align(kf, fingerprints(rows))
	linked := relink(kf, fingerprints(rows), match)
	claimStrays(strays, fingerprints(rows), match, linked)
	// What the engine made of an entry that is not in force is no new message.
	for i, r := range rows {
		if !r.own || linked[i] >= 0 {
			l.host, l.match, l.linked = append(l.host, r.index), append(l.match, match[i]), append(l.linked, linked[i])
			l.own, l.gap, l.fillers = append(l.own, r.own), append(l.gap, r.gap), append(l.fillers, r.fillers)
		}
	}
	l.fillers = append(l.fillers, fillers)
	f := followed{course: compose(l, t), host: l.host, hard: hard, known: known, leaders: leaders}
	if begins := len(kept) > 0 && t.Messages[0].Role == message.System; begins {
		f.keep = s.view.Lead
		if len(leaders) == 0 && commonPrefix(f) == 0 {
			leaders = leadersOfView(&s.view) // the path begins anew behind the same ones
			f.leaders = leaders
		}
	}

	v := s.view.Clone()
	n, err := e.follow(ctx, s, &v, t, f)
	if err != nil {
		return 0, err
	}
	v.Apply(edit.Match{Ledger: asOf(extend(core.Ledger{Count: t.Skipped, Digest: t.Digest}, fps), &v)})
	if err := e.takeUp(ctx, s, v, n); err != nil || len(leaders) == 0 || !s.warm {
		return len(n.entries), err
	}
	if s.lead, err = e.readLead(ctx, &s.view); err != nil {
		s.cool()
	}
	return len(n.entries), err
}

// pathEntries reads what reconciling needs of all entries on a path.
func (e *Engine) pathEntries(ctx context.Context, v *core.View) ([]knownEntry, error) {
	var out []knownEntry
	for _, sp := range v.Path {
		err := e.scanSpan(ctx, v, sp, func(entry core.Entry) {
			leads := len(out) < v.Lead || entry.Leads()
			out = append(out, knownEntry{
				owner: entry.SessionID(), seq: entry.Seq, fp: entry.Fingerprint, erased: entry.Type == core.TypeErased,
				origin: entry.Meta[erased.MetaOrigin], soft: entry.Type != core.TypeMessage || leads, role: entry.Role, id: entry.ID, leads: leads,
				stray: entry.Meta[metaStray] != "",
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
func (e *Engine) scanSpan(ctx context.Context, v *core.View, sp core.Span, visit func(core.Entry)) error {
	owner := v.Session
	if sp.Session != nil {
		owner = *sp.Session
	}
	q := core.ScanQuery{Scope: owner.Scope(), FromSeq: sp.From, ToSeq: sp.To, Limit: core.MaxPage}
	for {
		page, err := e.store.Scan(ctx, q)
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
