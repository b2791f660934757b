package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/internal/records"
	"github.com/contextengine/contextengine/core/internal/transcript"
	"github.com/contextengine/contextengine/core/message"
)

// reconcile makes the view agree with what the host says happened, and stores what the engine has not seen: turns that failed or
// were announced are never committed, but stand in the transcript. It returns the number of new entries.
//
// Four things can have happened besides growth: the host shows only the newest part (history limits), it was reset, it was rewound or forked,
// or it compacted itself. Each is recognised and none is mixed with another.
//
// Inside a turn the transcript may also begin with what the engine returned lately. Its settings say whose rules that was made with.
func (s *session) reconcile(ctx context.Context, t *core.Transcript, at moment, settings core.RuntimeSettings) (int, error) {
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
	if at.further() && s.unsure() {
		if err := s.recollect(ctx, settings); err != nil {
			return 0, err
		}
	}
	grown, ok, err := s.reconcileTail(ctx, t, fps, kept, at)
	if ok || err != nil {
		return grown, err
	}
	if at.further() && s.stale { // another process may have sent what this one would now
		if err := s.recollect(ctx, settings); err != nil {
			return 0, err
		}
		n, ok, err := s.reconcileTail(ctx, t, fps, kept, at)
		if grown += n; ok || err != nil {
			return grown, err
		}
	}
	if t.Skipped > 0 {
		return 0, fmt.Errorf("core: reconcile %q: %d skipped messages do not match: %w", s.id, t.Skipped, core.ErrNeedTranscript)
	}
	if s.view.Output != (core.Ledger{}) && s.unsure() {
		if err := s.recollect(ctx, settings); err != nil {
			return 0, err
		}
	}
	n, err := s.reconcileAll(ctx, t, fps, kept, at)
	return grown + n, err
}

// reconcileTail handles growth: the transcript begins with what was matched before, or with the engine's own last output. It reports whether that was all: where
// the store has something of it already, what is stored is put in order by who compares the whole.
func (s *session) reconcileTail(ctx context.Context, t *core.Transcript, fps, kept []string, at moment) (int, bool, error) {
	longer := 0 // of the outputs that the list begins with, the longest when the path was another
	begins := func(l core.Ledger, own bool) bool {
		d := t.Digest
		for _, fp := range fps[:l.Count-t.Skipped] {
			d = d.Add(fp)
		}
		return d == l.Digest && (!own || t.Skipped > 0 || l.Calls == "" || callsOf(t.Messages[:l.Count]) == l.Calls) // else it is alike
	}
	for _, l := range s.ledgers(at.further()) {
		if t.Whole && !l.Whole && l.Len > 0 && sameList(l, s.view.Host) {
			continue // what it left out was taken for not shown
		}
		if l.Count < t.Skipped || l.Count > t.Skipped+len(fps) || l.Count == 0 && s.view.Len() > 0 && (sameList(l, s.view.Host) || t.Skipped+len(fps) > 0) {
			continue
		}
		own, count := !sameList(l, s.view.Host), l.Count
		if l.Len != s.view.Len() {
			if !own || l.Count <= longer || !begins(l, own) {
				continue
			}
			// The call may be a repetition, whose transcript cannot be compared as a whole.
			n, err := 0, error(nil)
			if t.Skipped > 0 {
				n, err = s.beginsWith(ctx, l.Len, s.view.Len(), t.Messages[l.Count-t.Skipped:])
			}
			if err != nil {
				return 0, false, err
			}
			if n == 0 {
				longer = l.Count
				continue
			}
			count += n
		} else if !begins(l, own) {
			continue
		}
		if own && l.Count < longer {
			return 0, false, nil // what follows in that one is no news
		}
		if !own && l.Count > t.Skipped {
			if slid, err := s.slid(ctx, t.Messages[:l.Count-t.Skipped], kept, t.Skipped == 0); slid || err != nil {
				return 0, false, err
			}
		}
		fresh, _ := transcript.Spoken(t.Messages[count-t.Skipped:])
		if own {
			again, err := s.goesOnBefore(ctx, l, fresh)
			if !again && err == nil {
				again, err = s.goesOnUnseen(ctx, fresh)
			}
			if again || err != nil {
				return 0, false, err
			}
			s.sent(l)
		}
		v := s.view.Clone()
		if len(fresh) == 0 {
			if err := s.tell(ctx, at, &v, t.Messages, nil, false); err != nil || v.Told == s.view.Told && len(s.calls) == 0 {
				return 0, true, err
			}
			return 0, true, s.settle(ctx, v)
		}
		in, err := s.append(ctx, &v, draft{messages: fresh, taken: make(map[string]bool)})
		if err != nil {
			return 0, true, err
		}
		if in.duplicates > 0 {
			return len(in.entries), false, s.takeUp(ctx, v, in)
		}
		if !own {
			v.Apply(edit.Match{Ledger: s.grown(l, fps[l.Count-t.Skipped:], &v)})
		}
		if err := s.tell(ctx, at, &v, t.Messages, in.entries, false); err != nil {
			return 0, true, err
		}
		return len(in.entries), true, s.takeUp(ctx, v, in)
	}
	return 0, false, nil
}

// slid reports whether the host calls the newest message that has a name, of a list that says what its last one did, otherwise than what it knew then: where much says the
// same, a list that was cut further on is as it was before. One time alone does not tell, since some hosts write it anew; names of kinds that the host makes anew with
// every list do not either. kept are the fingerprints of the messages as they are stored,
// all says that the list leaves out nothing, and can be compared as a whole where it turns out that a kind of name is not made anew any more.
func (s *session) slid(ctx context.Context, list []message.Message, kept []string, all bool) (bool, error) {
	const most = 16 // messages are looked at
	nameOf := func(m *message.Message) transcript.Name { return transcript.FullName(m).Without(s.renames) }
	first := max(len(list)-most, 0)
	if !slices.ContainsFunc(list[first:], func(m message.Message) bool { return transcript.FullName(&m) != (transcript.Name{}) }) {
		return false, nil
	}
	if err := s.warmUp(ctx); err != nil {
		return false, err
	}
	another, i := false, len(list)-1
	type call struct {
		entry string
		as    *message.Message
	}
	var called []call
	var failed error
	err := s.eachShown(ctx, &s.view, s.view.Len(), most, func(_ int, entry *core.Entry) bool {
		for i >= first && list[i].Type == message.Filler {
			i--
		}
		if i < first {
			return false
		}
		name := nameOf(&list[i])
		if entry.Type == core.TypeErased {
			var is likeness
			if is, failed = s.compareErased(ctx, entry, &list[i], kept[i]); failed != nil || is.called {
				another = false
				return false
			}
			i--
			another = another || !is.same
			return !another
		}
		if entry.Fingerprint != kept[i] {
			return false // something stands between the two that the host does not show, or a line of the host's
		}
		i--
		known := s.nameOf(entry)
		if full := transcript.FullName(&list[i+1]); all && full.Tells(known)&s.renames != 0 && full.Same(known) {
			another, s.renames = true, 0 // it does not make all of them anew any more
			return false
		}
		known = known.Without(s.renames)
		if name.Same(known) {
			another = false
			return false
		}
		if name.Another(known) {
			another, called = true, append(called, call{entry.ID, &list[i+1]})
		}
		name.Time = time.Time{}
		return !name.Another(known)
	})
	for _, c := range slices.Backward(called) {
		if !another { // a time alone may be another one
			s.calledNow(c.entry, c.as)
		}
	}
	return another, cmp.Or(err, failed)
}

// nameOf returns by what the host knows an entry: by what it called it last.
func (s *session) nameOf(entry *core.Entry) transcript.Name {
	name := transcript.FullName(&entry.Message)
	if entry.Type != core.TypeErased {
		s.rename(entry.ID, &name)
	}
	return name
}

// rename makes the name that an entry came with the one that the host has for it now.
func (s *session) rename(id string, name *transcript.Name) {
	if c, ok := s.called[id]; ok {
		*name = transcript.FullName(c.Message())
	}
}

// renameAll makes the names of what is known those that the host has now. calls says that the ids of some calls are other ones than they came with. As many names may be noted
// as a view holds: from is where the first of them stands then, since names in front of it would take the place of newer ones.
func (s *session) renameAll(known []transcript.Known) (from int, calls bool) {
	full, noted := len(s.called) >= edit.MaxCalled, false
	for i := range known {
		k := &known[i]
		_, is := s.called[k.ID]
		if is && full && !noted {
			from = i
		}
		noted = noted || is
		switch {
		case k.Erased:
			k.Origin = s.originOf(k.ID, k.Origin)
		case is:
			was := k.Name.Calls
			s.rename(k.ID, &k.Name)
			calls = calls || was != k.Name.Calls
		}
	}
	return from, calls
}

// originOf is by what the host knew an erased entry, with what it calls it now.
func (s *session) originOf(id, origin string) string {
	return strings.TrimSpace(origin + " " + s.called[id].Origin)
}

// calledNow notes that the host has another name for an entry now: the next view that is published holds it.
func (s *session) calledNow(id string, m *message.Message) {
	s.note(core.Called{Entry: id, Key: m.Key, ID: m.ID, Time: m.Time, Calls: transcript.CallIDs(m)})
}

// erasedNow is calledNow of an erased entry.
func (s *session) erasedNow(ctx context.Context, owner core.SessionID, id string, m *message.Message) error {
	p, err := s.e.erasures.printsOf(ctx, owner.Agent, false)
	if err == nil && len(p) > 0 {
		s.note(core.Called{Entry: id, Origin: p.Origin(owner, m)})
	}
	return err
}

func (s *session) note(c core.Called) {
	if s.called == nil {
		s.called = make(map[string]core.Called)
	}
	s.called[c.Entry], s.calls = c, append(s.calls, c)
}

// callsOf returns what a ledger holds of the ids of calls.
func callsOf(messages []message.Message) string {
	var c transcript.Calls
	for i := range messages {
		c = c.Add(&messages[i])
	}
	return c.String()
}

// sameList reports whether two ledgers are of one list, and of one path.
func sameList(a, b core.Ledger) bool {
	a.Whole = b.Whole
	return a == b
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

// handedBack returns what Assemble returned lately and a list begins with: the longest such, and when it was returned several times, as it was when the path was longest.
// Some hosts write the ids of calls anew, where a provider wants it; where all are known the list is the host's own, and alike.
func (s *session) handedBack(messages []message.Message, fps []string, known []transcript.Known) core.Ledger {
	var d message.Digest
	var calls transcript.Calls
	var found, alike core.Ledger
	for i, fp := range fps {
		d, calls = d.Add(fp), calls.Add(&messages[i])
		for _, l := range s.outputs {
			if l.Count != i+1 || l.Digest != d {
				continue
			}
			to := &found
			if l.Calls != "" && l.Calls != calls.String() {
				to = &alike
			}
			if l.Count > to.Count || l.Len > to.Len {
				*to = l
			}
		}
	}
	if alike.Count > found.Count && (found.Count == 0 || s.renames.Calls()) {
		there := map[string]bool{"": true}
		for k := range known {
			there[known[k].Name.Calls] = true
		}
		if slices.ContainsFunc(messages[:alike.Count], func(m message.Message) bool { return !there[transcript.FullName(&m).Calls] }) {
			found = alike
		}
	}
	if found.Count > 0 {
		s.sent(found)
	}
	return found
}

// reconcileAll compares the whole transcript with the whole path. fps are the fingerprints of the host's messages, kept those of the same as they
// may be stored.
func (s *session) reconcileAll(ctx context.Context, t *core.Transcript, fps, kept []string, at moment) (int, error) {
	known, err := s.e.reader.pathEntries(ctx, &s.view)
	if err != nil {
		return 0, err
	}
	named, renamed := s.renameAll(known)
	if len(s.view.Stubs) > 0 {
		if err := s.warmUp(ctx); err != nil { // what they make of entries is the engine's own
			return 0, err
		}
	}
	// What the engine itself put into its output is not part of the conversation, and what it shortened or merged stands for what it shows.
	in := transcript.Read(t, kept, s.ownMessages(), at.further())
	if err := s.recognise(ctx, known, in, t.Messages, renamed); err != nil {
		return 0, err
	}
	if runs := in.Joinable(known); len(runs) > 0 {
		if err := s.e.erasures.readNeighbours(ctx, runs); err != nil {
			return 0, err
		}
		in.Split(known, runs)
	}
	back := s.handedBack(t.Messages, fps, known)
	in.Disown(back.Count, back.Len, known)
	if at.further() {
		in.BuildsOn(back.Count, back.Len)
		nothing := func(l core.Ledger) bool { return l.Count == 0 }
		if slices.ContainsFunc(s.outputs, nothing) {
			in.FollowNothing(known, slices.ContainsFunc(s.outputs, func(l core.Ledger) bool { return nothing(l) && l.Len == s.view.Len() }))
		}
	}
	in.TakeLeaders(&s.view, known)
	plan := in.Plan(&s.view, known)
	s.renames = s.renames&^plan.Compared | plan.Renames
	s.listed = make(map[string]transcript.Name, len(plan.Listed))
	for k, i := range plan.Listed {
		s.listed[known[k].ID] = transcript.FullName(&t.Messages[i])
	}
	for _, k := range slices.Sorted(maps.Keys(plan.Called)) {
		m := &t.Messages[plan.Called[k]]
		if k < named {
			continue
		}
		if !known[k].Erased {
			s.calledNow(known[k].ID, m)
		} else if err := s.erasedNow(ctx, known[k].Owner, known[k].ID, m); err != nil {
			return 0, err
		}
	}
	v := s.view.Clone()
	id, seq, accepted := s.accepted()
	n, err := s.follow(ctx, &v, t, plan)
	if err != nil {
		return 0, err
	}
	v.Apply(edit.Match{Ledger: s.grown(core.Ledger{Count: t.Skipped, Digest: t.Digest, Whole: t.Whole}, fps, &v)})
	if err := s.tell(ctx, at, &v, t.Messages, n.entries, accepted && v.Position(id, seq) < 0); err != nil {
		return 0, err
	}
	if err := s.takeUp(ctx, v, n); err != nil || len(plan.Leaders) == 0 || !s.warm {
		return len(n.entries), err
	}
	if s.lead, err = s.e.reader.readLead(ctx, &s.view); err != nil {
		s.cool()
	}
	return len(n.entries), err
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
	if n := len(front.Summaries); n > 0 && front.Left > 0 {
		if all, ok := growNote(front.Summaries[n-1], front.Left); ok {
			out[message.Fingerprint(summaryMessage(all))] = nil
		}
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

// follow rebuilds the path of v in the order found, storing what is new.
func (s *session) follow(ctx context.Context, v *core.View, t *core.Transcript, p transcript.Plan) (intake, error) {
	common := p.CommonPrefix()
	before := v.Len()
	messages, _ := p.News(s.id, v.Next, t)
	there, err := s.e.reader.outOfSight(ctx, s.id, v, p, messages)
	if err != nil {
		return intake{}, err
	}
	_, marks := p.News(s.id, v.Next-int64(len(there)), t)
	// What is given up for good is published before anything new is stored: should the rest fail, new entries are found behind the cut, not behind what
	// is no longer in force. Entries that only move stay where they are until all is stored.
	if common < before && !p.Moves(common) {
		if s.e.cfg.Recall.ResetMessages > 0 && v.Lead < before && p.Anew(v.Lead) {
			v.Apply(edit.Reset{})
		}
		v.Apply(edit.Cut{To: common}, edit.Match{}) // should the rest fail, what was matched before says nothing of the path
		s.cool()
		s.outputs = nil // they show what is not in force any more
		if err := s.publish(ctx, *v); err != nil {
			return intake{}, err
		}
		*v = s.view.Clone()
	}
	if gone := p.GivenUp(s.id); len(gone) > 0 && p.Moves(common) {
		v.Apply(edit.Relay{Gone: gone}, edit.Match{})
		s.cool()
		s.outputs = nil
		if err := s.publish(ctx, *v); err != nil {
			return intake{}, err
		}
		*v = s.view.Clone()
	}
	scratch := v.Clone()
	in, err := s.append(ctx, &scratch, draft{messages: messages, marks: marks, known: there, taken: p.Keys(s.id)})
	if err != nil {
		return intake{}, err
	}
	entries, err := s.bySequence(ctx, in)
	if err != nil {
		return intake{}, err
	}
	v.Apply(edit.Count{Next: scratch.Next, Turns: scratch.Turns})
	if len(there) > 0 {
		s.cool() // adopt takes what is new into memory, and nothing else
	}
	if v.Len() > common {
		v.Apply(edit.Cut{To: common})
		s.cool()
		s.outputs = nil
	}
	lay := layer{v: v, keep: common, n: common}
	if len(p.Order) > 0 && p.Order[0].Known == 0 {
		lay.n = p.Hard[0] // what is soft in front of everything stays too
	}
	soft := p.SoftAfter()
	placed := 0
	next := len(p.Strays)
	for i, st := range p.Order {
		if st.Known >= 0 {
			k := p.Known[p.Hard[st.Known]]
			lay.put(k.Owner, k.Seq)
			for _, so := range soft[st.Known] {
				if !so.Leads || lay.n < common || !onPath(v, so.Owner, so.Seq) { // what stands in front was kept
					lay.put(so.Owner, so.Seq)
				}
			}
		} else {
			extendPath(v, entries[next]) // behind all that stays
			next++
		}
		if i+1 == p.Front {
			placed = lay.at()
		}
	}
	if p.Front >= 0 && s.compacts(v, &p, placed) {
		s.cool()
		v.Apply(edit.Unrecall{}, edit.Restart{At: placed}) // what is quoted may be among what is shown now
	}
	// A host's line in front of a list that was cut waits for the next step, and so does what a note that is there would count: neither is worth a window that is billed
	// anew. Messages older than all the others are.
	spoke := v.Front().Left > 0
	owner, oldest := v.At(v.Floor())
	epoch := v.Epoch
	for i, entry := range entries[:len(p.Strays)] {
		k := p.Known[p.Hard[p.At[i]]] // what stood in front of it may stand elsewhere now
		v.Apply(edit.Insert{At: v.Position(k.Owner, k.Seq), Session: entry.SessionID(), Seq: entry.Seq, Noted: !spoke && k.Owner == owner && k.Seq == oldest})
		s.cool()
	}
	if v.Epoch != epoch { // what is quoted may be among what is shown now
		v.Apply(edit.Unrecall{})
	}
	for i := range p.Leaders {
		l, marked := &p.Leaders[i], true
		if l.Host >= 0 {
			entry := entries[next]
			l.Owner, l.Seq, marked = entry.SessionID(), entry.Seq, entry.Leads()
			next++
		}
		switch {
		case onPath(v, l.Owner, l.Seq):
		case marked:
			v.Apply(edit.Extend{Session: l.Owner, Seq: l.Seq})
		default: // it was said before, as one that is shown where it stands
			v.Apply(edit.Insert{At: v.Lead, Session: l.Owner, Seq: l.Seq, Leads: true})
			s.cool()
		}
	}
	leadWith(v, p.Leaders)
	return in, nil
}

// compacts reports whether something in front of a position is in force that a host shows: it compacted that. What no host shows is hidden where it stands.
func (s *session) compacts(v *core.View, p *transcript.Plan, to int) bool {
	n := to - v.Frontier
	for i := range p.Known {
		if k := &p.Known[i]; n > 0 && k.Soft {
			if at := v.Position(k.Owner, k.Seq); at >= v.Frontier && at < to {
				n--
			}
		}
	}
	return n > 0
}

// layer lays a path, skipping the entries that stay where they are.
type layer struct {
	v    *core.View
	keep int
	n    int
}

// at is the position behind what is laid.
func (l *layer) at() int {
	if l.n > l.keep {
		return l.v.Len()
	}
	return l.n
}

func (l *layer) put(owner core.SessionID, seq int64) {
	if l.n >= l.keep {
		l.v.Apply(edit.Extend{Session: owner, Seq: seq})
	}
	l.n++
}

// bySequence returns the entries of an intake in the order of its messages, known ones read from the store.
func (s *session) bySequence(ctx context.Context, in intake) ([]core.Entry, error) {
	fresh := make(map[string]core.Entry, len(in.entries))
	for _, entry := range in.entries {
		fresh[entry.ID] = entry
	}
	out := make([]core.Entry, len(in.ids))
	for i, id := range in.ids {
		entry, ok := fresh[id]
		if !ok {
			got, err := s.e.store.Get(ctx, s.id.Scope(), []string{id})
			if err != nil {
				return nil, fmt.Errorf("core: reconcile %q: %w", s.id, err)
			}
			entry = got[0]
		}
		out[i] = entry
	}
	return out, nil
}

// leadWith puts leaders in front. Their entries are stored by now.
func leadWith(v *core.View, leaders []transcript.Leader) {
	if len(leaders) == 0 {
		return
	}
	head := make([]core.Span, len(leaders))
	for i := range leaders {
		l := &leaders[i]
		head[i] = core.Span{Session: &l.Owner, From: l.Seq, To: l.Seq + 1}
	}
	v.Apply(edit.Lead{Head: head})
}

// leadersOf returns what stood in front since an entry came.
func leadersOf(entry core.Entry) []core.Span {
	id := entry.SessionID()
	var out []core.Span
	for text := range strings.SplitSeq(entry.Meta[records.Leads], ",") {
		if seq, err := strconv.ParseInt(text, 10, 64); err == nil {
			out = append(out, core.Span{Session: &id, From: seq, To: seq + 1})
		}
	}
	return out
}

// adoptBefore puts an entry that was stored in front of another one where it belongs. It reports false for all others, and when that one is not on the path
// any more.
func adoptBefore(v *core.View, entry core.Entry) bool {
	at := cmp.Or(entry.Meta[transcript.MetaStray], entry.Meta[transcript.MetaBefore])
	if at == "" {
		return false
	}
	pos := 0
	for _, sp := range v.Path {
		sp = sp.Owned(v.Session)
		for seq := sp.From; seq < sp.To; seq++ {
			if transcript.PlaceName(*sp.Session, seq) == at {
				v.Apply(edit.Insert{At: pos, Session: entry.SessionID(), Seq: entry.Seq, Noted: true})
				return true
			}
			pos++
		}
	}
	return false
}
