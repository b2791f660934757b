package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/internal/transcript"
	"github.com/contextengine/contextengine/core/message"
)

// maxCommits is how many advancement keys a view remembers; older ones are found by the keys of their entries.
const maxCommits = 64

// Bootstrap loads a session and takes up what the host's transcript has and the store has not.
func (e *Engine) Bootstrap(ctx context.Context, req core.BootstrapRequest) (_ core.BootstrapResult, err error) {
	ctx, end := e.begin(ctx, "Bootstrap", req.Session)
	defer func() { end(err) }()
	if err := e.quarantined(req.Session); err != nil {
		return core.BootstrapResult{}, err
	}
	if p, ok := core.As[core.Pinger](e.store); ok {
		if err := p.Ping(ctx); err != nil {
			return core.BootstrapResult{}, e.failedIn(ctx, req.Session, "store", "bootstrap", fmt.Errorf("core: bootstrap %q: %w", req.Session, err))
		}
	}
	e.health.begin(req.Session)
	var res core.BootstrapResult
	err = e.retry(ctx, req.Session, func(s *session) error {
		res = core.BootstrapResult{Bootstrapped: true}
		if req.Transcript == nil {
			res.Known = s.view.Len()
			return nil
		}
		n, err := s.reconcile(ctx, req.Transcript, anytime, req.Settings)
		res.Imported, res.Known = n, s.view.Len()
		return err
	})
	if err := e.failedIn(ctx, req.Session, "store", "bootstrap", err); err != nil {
		return core.BootstrapResult{}, err
	}
	return res, nil
}

// Ingest stores one message and puts it at the end of the conversation.
func (e *Engine) Ingest(ctx context.Context, req core.IngestRequest) (core.IngestResult, error) {
	return e.IngestBatch(ctx, core.IngestBatchRequest{
		Session: req.Session, Messages: []message.Message{req.Message}, Heartbeat: req.Heartbeat, IdempotencyKey: req.IdempotencyKey,
	})
}

// IngestBatch stores messages atomically, in order.
func (e *Engine) IngestBatch(ctx context.Context, req core.IngestBatchRequest) (_ core.IngestResult, err error) {
	ctx, end := e.begin(ctx, "IngestBatch", req.Session)
	defer func() { end(err) }()
	var res core.IngestResult
	if len(req.Messages) == 0 {
		return res, nil
	}
	if err := validMessages("ingest", req.Messages); err != nil {
		return res, err
	}
	if len(req.IdempotencyKey) > maxCallKey {
		return res, invalid("ingest", "idempotencyKey", fmt.Sprintf("must be at most %d bytes", maxCallKey))
	}
	if err := e.quarantined(req.Session); err != nil {
		return res, err
	}
	messages, at := transcript.Spoken(e.redact.redacted(req.Messages))
	tries := make(tries)
	err = e.retry(ctx, req.Session, func(s *session) error {
		v := s.view.Clone()
		in, err := s.append(ctx, &v, draft{messages: messages, heartbeat: req.Heartbeat, call: req.IdempotencyKey, tries: tries})
		if err != nil {
			return err
		}
		res = core.IngestResult{IDs: transcript.Placed(in.ids, at, len(req.Messages)), Duplicates: in.duplicates, Ingested: len(in.ids) - in.duplicates}
		return s.adopt(ctx, v, in)
	})
	if err := e.failedIn(ctx, req.Session, "store", "ingest", err); err != nil {
		return core.IngestResult{}, err
	}
	return res, nil
}

// CommitTurn stores an accepted turn, once for each advancement key: a second call with the same key changes nothing and says Duplicate.
func (e *Engine) CommitTurn(ctx context.Context, req core.CommitTurnRequest) (_ core.CommitTurnResult, err error) {
	ctx, end := e.begin(ctx, "CommitTurn", req.Session)
	defer func() { end(err) }()
	if req.AdvancementKey == "" {
		return core.CommitTurnResult{}, invalid("commit turn", "advancementKey", "give the key that identifies the turn")
	}
	if err := validMessages("commit turn", req.Messages); err != nil {
		return core.CommitTurnResult{}, err
	}
	if err := e.quarantined(req.Session); err != nil {
		return core.CommitTurnResult{}, err
	}
	messages, at := transcript.Spoken(e.redact.redacted(req.Messages))
	tries := make(tries)
	var res core.CommitTurnResult
	err = e.retry(ctx, req.Session, func(s *session) error {
		if slices.Contains(s.view.Commits, req.AdvancementKey) {
			res = core.CommitTurnResult{Status: core.Duplicate}
			return nil
		}
		v := s.view.Clone()
		known, err := s.overlap(ctx, messages, req.Heartbeat)
		if err != nil {
			return err
		}
		in, err := s.append(ctx, &v, draft{
			messages: messages, heartbeat: req.Heartbeat, turn: req.AdvancementKey, known: known, tries: tries,
		})
		if err != nil {
			return err
		}
		res = core.CommitTurnResult{Status: core.Committed, IDs: transcript.Placed(in.ids, at, len(req.Messages))}
		// What earlier calls of the turn brought stands at the end. A turn that stands further up was committed, by a key that is not remembered any more.
		atEnd := len(known) > 0 && s.endsWith(known[len(messages)-1])
		if in.duplicates == len(in.ids) && !atEnd && len(in.ids) > 0 && v.Len() == s.view.Len() {
			res.Status = core.Duplicate
		}
		v.Apply(edit.Commit{Key: req.AdvancementKey, Most: maxCommits})
		if !req.Heartbeat { // the turn will be in the host's transcript too
			if s.view.Host.Len == s.view.Len() {
				v.Apply(edit.Match{Ledger: s.grown(v.Host, fingerprintsOf(req.Messages[shownOf(known, at):]), &v)})
			}
			v.Apply(edit.Tell{From: v.Len()})
		}
		s.turn = turnBudget{}
		return s.adopt(ctx, v, in)
	})
	if err := e.failedIn(ctx, req.Session, "store", "commit turn", err); err != nil {
		return core.CommitTurnResult{}, err
	}
	return res, nil
}

// AfterTurn takes up a turn from hosts that do not commit turns. What was ingested before is recognised by the key, the id or the time that the host gave it; a
// message that has none of them is another one each time it is handed over, unless a transcript showed it as one of this turn.
func (e *Engine) AfterTurn(ctx context.Context, req core.AfterTurnRequest) (err error) {
	ctx, end := e.begin(ctx, "AfterTurn", req.Session)
	defer func() { end(err) }()
	if req.PrePrompt < 0 || req.PrePrompt > len(req.Messages) {
		return invalid("after turn", "prePromptMessageCount", "must be 0 to the number of messages")
	}
	if err := validMessages("after turn", req.Messages); err != nil {
		return err
	}
	if err := e.quarantined(req.Session); err != nil {
		return err
	}
	turn, _ := transcript.Spoken(e.redact.redacted(req.Messages[req.PrePrompt:]))
	tries := make(tries)
	err = e.retry(ctx, req.Session, func(s *session) error {
		v := s.view.Clone()
		known, err := s.overlap(ctx, turn, req.Heartbeat)
		if err != nil {
			return err
		}
		in, err := s.append(ctx, &v, draft{messages: turn, heartbeat: req.Heartbeat, known: known, tries: tries})
		if err != nil {
			return err
		}
		s.turn = turnBudget{}
		if !req.Heartbeat {
			v.Apply(edit.Tell{From: v.Len()})
		}
		if err := s.adopt(ctx, v, in); err != nil {
			return err
		}
		s.tend(ctx, req)
		return nil
	})
	return e.failedIn(ctx, req.Session, "store", "after turn", err)
}

// tend begins a compaction that is due, where the host has no maintenance for it. It goes on when the call is over; Dispose waits for it.
func (s *session) tend(ctx context.Context, turn core.AfterTurnRequest) {
	if !s.e.cfg.Compaction.Proactive || !s.e.compactor.OwnsCompaction() || slices.Contains(s.e.host.Capabilities(), capability.Maintain) || !s.e.cfg.due(&s.view) {
		return
	}
	if !s.tended.CompareAndSwap(false, true) {
		return
	}
	req := core.CompactRequest{
		Session: s.id, Budget: s.view.Budget, Target: core.TargetThreshold, Trigger: "after-turn", Settings: turn.Settings, TranscriptScope: turn.TranscriptScope,
	}
	ctx = context.WithoutCancel(ctx)
	s.e.work.Go(func() {
		defer s.tended.Store(false)
		if _, err := s.e.Compact(ctx, req); err != nil && !errors.Is(err, core.ErrClosed) {
			s.e.warn(ctx, "compactor", "compact after turn", err)
		}
	})
}

// draft is what append makes entries of.
type draft struct {
	messages  []message.Message
	heartbeat bool
	kind      core.EntryType
	// turn is the advancement key of a committed turn, call the idempotency key of an ingest.
	turn, call string
	// known maps indices of messages to the ids of entries that hold them already.
	known map[int]string
	meta  map[string]string
	// marks are further values of some of the messages' entries, by index.
	marks map[int]transcript.Mark
	// tries, when not nil, is of the call that the draft belongs to.
	tries tries
	// taken, when not nil, are the keys of the entries that stay on the path: a transcript lists what is new beside those, whatever its host calls it.
	taken map[string]bool
}

// unlike returns a key for what has one that is taken, and takes it. It is the same one whenever the host says the same.
func unlike(key string, taken map[string]bool) string {
	free := key
	for n := 2; taken[free]; n++ {
		free = strconv.Itoa(n) + ":" + key // no other key begins with a digit
	}
	taken[free] = true
	return free
}

// intake is what append did.
type intake struct {
	ids     []string
	entries []core.Entry // new ones, in order
	// before are entries that an earlier try of the call stored.
	before     []core.Entry
	duplicates int
}

// append stores the messages of a draft and extends the path of v by them. It changes no entries in memory: adopt does, once
// v is published. ErrConflict says that another process was faster: the session is then read again.
func (s *session) append(ctx context.Context, v *core.View, d draft) (intake, error) {
	in := intake{ids: make([]string, len(d.messages))}
	var fresh []core.Entry
	var at []int
	there := make(map[int]string) // what is stored already
	gone, err := s.forgotten(ctx, v)
	if err != nil {
		return intake{}, err
	}
	if err := s.remind(ctx, v); err != nil {
		return intake{}, err
	}
	seen := s.seen
	s.seen = nil // until what is noted there is stored
	again := make(map[string]bool)
	before := v.Len()
	next, turns := v.Next, v.Turns
	for i, m := range d.messages {
		if first := d.tries[i]; first.stored != "" {
			in.ids[i] = first.stored
			there[i] = first.stored
			if again[first.ID] = true; first.stored != first.ID {
				in.duplicates++
			}
			continue
		}
		if id, ok := d.known[i]; ok {
			in.ids[i] = id
			in.duplicates++
			continue
		}
		if err := s.e.counted(ctx, &m); err != nil {
			return intake{}, err
		}
		entry := s.e.entry(s.id, m, next, d)
		entry.Key = keyOf(m, next, i, &d, entry.Fingerprint)
		if entry, err = s.e.erasures.stayErased(ctx, gone, entry, s.renames); err != nil {
			return intake{}, err
		}
		if d.taken != nil {
			entry.Key = unlike(entry.Key, d.taken)
		}
		if k, ok := d.marks[i]; ok {
			entry.Meta = withMeta(entry.Meta, k.Key, k.Value)
		}
		if entry.Type == core.TypeMessage && m.Role == message.User && entry.Meta[transcript.MetaStray] == "" {
			turns++
		}
		entry.Turn = turns
		if v.Arm != "" && (i == 0 || m.Role == message.User) {
			entry.Meta = armed(entry.Meta, v.Arm)
		}
		if d.tries != nil && strings.HasPrefix(entry.Key, "s:") {
			entry.Key += ":" + s.e.nonce // what two processes say at one place are two messages, also when they say the same
		}
		if d.tries.same(i, &entry) {
			again[entry.ID] = true
		}
		s.e.markInjected(&entry, seen)
		fresh, at = append(fresh, entry), append(at, i)
		next++
	}
	made := make(map[int]core.Entry, len(fresh)) // what is new, by the index of its message
	if len(fresh) > 0 {
		if s.owed != nil { // what the session gave up is not to be found in front of what is new
			if err := s.swap(ctx, s.view); err != nil {
				return intake{}, err
			}
		}
		res, err := s.e.store.Append(ctx, fresh)
		if err != nil {
			s.forget() // whether it was stored is known to the store alone
			return intake{}, fmt.Errorf("core: append to %q: %w", s.id, err)
		}
		s.ahead = true
		for n, entry := range fresh {
			i, id := at[n], res.IDs[n]
			in.ids[i] = id
			d.tries.note(i, id)
			switch {
			case id != entry.ID:
				in.duplicates++
				there[i] = id
			case again[id] && res.Duplicates > 0:
				there[i] = id // perhaps it was stored by an earlier try, at another position
			default:
				made[i] = entry
			}
		}
	}
	if s.watched && !s.e.sharedViews {
		s.holes = append(s.holes, holesOf(fresh, at, made)...)
	}
	known, err := s.stored(ctx, there, d.tries)
	if err != nil {
		return intake{}, err
	}
	if d.taken != nil {
		if err := s.reworded(ctx, &in, fresh, at, next, made, known); err != nil {
			return intake{}, err
		}
	}
	for i := range d.messages { // in the host's order, what is new and what is not
		if old, ok := known[i]; ok {
			if again[old.ID] {
				in.before = append(in.before, old)
			}
			if err := s.relink(v, old); err != nil {
				return intake{}, err
			}
		}
		entry, ok := made[i]
		if !ok {
			continue
		}
		v.Apply(edit.Count{Next: max(v.Next, entry.Seq+1), Turns: max(v.Turns, entry.Turn)})
		in.entries = append(in.entries, entry)
		extendPath(v, entry)
		if s.watched && !s.e.sharedViews && entry.Message.ID != "" {
			s.unseen = append(s.unseen, entry.ID)
		}
	}
	if len(in.entries) == len(fresh) {
		if len(fresh) > 0 {
			seen.noted(v)
		}
		s.seen = seen
	}
	if d.heartbeat || d.kind != "" { // no host shows it: what was matched or returned is so still
		v.Apply(edit.Lengthen{From: before})
		s.lengthened(before, v.Len())
	}
	return in, nil
}

// holesOf are the positions in front of something new that would have been those of messages which the store had.
func holesOf(fresh []core.Entry, at []int, made map[int]core.Entry) (holes []int64) {
	n := len(fresh)
	for n > 0 && made[at[n-1]].ID == "" {
		n--
	}
	for i, entry := range fresh[:n] {
		if made[at[i]].ID == "" {
			holes = append(holes, entry.Seq)
		}
	}
	return holes
}

// reworded stores what a host's transcript calls by the key of a message that said something else: a transcript has what it says, whatever it is called.
func (s *session) reworded(ctx context.Context, in *intake, fresh []core.Entry, at []int, next int64, made, known map[int]core.Entry) error {
	var anew []core.Entry
	var of []int
	for n, entry := range fresh {
		old, ok := known[at[n]]
		if !ok || old.Fingerprint == entry.Fingerprint || entry.Message.Key == "" {
			continue
		}
		if was, err := s.wasErased(ctx, &old, &entry.Message, entry.Fingerprint); was || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		entry.Seq, entry.Key = next, entry.Key+":"+entry.Fingerprint
		next++
		anew, of = append(anew, entry), append(of, at[n])
	}
	if len(anew) == 0 {
		return nil
	}
	res, err := s.e.store.Append(ctx, anew)
	if err != nil {
		s.forget()
		return fmt.Errorf("core: append to %q: %w", s.id, err)
	}
	there := make(map[int]string)
	for n, i := range of {
		in.ids[i] = res.IDs[n]
		if delete(known, i); in.ids[i] != anew[n].ID {
			there[i] = in.ids[i]
			continue
		}
		made[i] = anew[n]
		in.duplicates--
	}
	again, err := s.stored(ctx, there, nil)
	maps.Copy(known, again)
	return err
}

// stored reads what the store had already of the messages of a call, by their index: there names the entries.
func (s *session) stored(ctx context.Context, there map[int]string, t tries) (map[int]core.Entry, error) {
	at := slices.Sorted(maps.Keys(there))
	ids := make([]string, len(at))
	for n, i := range at {
		ids[n] = there[i]
	}
	if len(ids) == 0 {
		return nil, nil
	}
	got, err := s.e.store.Get(ctx, s.id.Scope(), ids)
	if errors.Is(err, core.ErrNotFound) {
		for i := range t {
			t.note(i, "")
		}
		s.forget()
		return nil, fmt.Errorf("core: append to %q: an entry was purged meanwhile: %w", s.id, core.ErrConflict)
	}
	if err != nil {
		return nil, fmt.Errorf("core: append to %q: read duplicates: %w", s.id, err)
	}
	out := make(map[int]core.Entry, len(got))
	for i, entry := range got {
		out[at[i]] = entry
	}
	return out, nil
}

// relink brings an entry that the store knew, but the path does not show, back into force.
func (s *session) relink(v *core.View, entry core.Entry) error {
	if onPath(v, s.id, entry.Seq) || !inConversation(entry) {
		return nil
	}
	if entry.Seq >= s.view.Next {
		s.forget()
		return fmt.Errorf("core: append to %q: another process stored more: %w", s.id, core.ErrConflict)
	}
	extendPath(v, entry)
	s.warm = false
	return nil
}

// takeUp is adopt for a host's transcript: one in which nothing is new is only read.
func (s *session) takeUp(ctx context.Context, v core.View, in intake) error {
	if len(in.entries) == 0 {
		return s.settle(ctx, v)
	}
	return s.adopt(ctx, v, in)
}

// adopt publishes v and takes the new entries into memory, then tells the observers.
func (s *session) adopt(ctx context.Context, v core.View, in intake) error {
	if v.Lead != s.view.Lead {
		s.cool() // what leads is no item
	}
	used := v.Arm != "" && s.quote != nil && !s.quote.used && s.quote.by(in.entries)
	if used {
		v.Tally.Used++
	}
	first := s.view.Version == 0
	if err := s.publish(ctx, v); err != nil {
		return err
	}
	if first {
		if err := s.begins(ctx, in.entries); err != nil {
			return err
		}
	}
	if used {
		s.quote.used = true
	}
	if s.warm {
		for _, entry := range in.entries {
			if inConversation(entry) {
				s.items = append(s.items, s.e.gauge.item(entry, nil))
			}
		}
	}
	told := slices.Concat(in.before, in.entries)
	for i := range told {
		if saysNothing(&told[i]) {
			s.blank.Add(s.id, told[i].Seq)
		}
	}
	s.e.observe(ctx, func(ctx context.Context, o core.Observer) error { return o.Appended(ctx, own(told)) }, len(told))
	return nil
}

// begins takes a session's first view back when what it shows was purged before it was there: a purge leaves none of whose version another one could not be.
func (s *session) begins(ctx context.Context, entries []core.Entry) error {
	if !s.e.sharedViews || len(entries) == 0 {
		return nil
	}
	first, err := core.First(ctx, s.e.store, core.ScanQuery{Scope: s.id.Scope(), FromSeq: entries[0].Seq})
	if err != nil && !errors.Is(err, core.ErrNotFound) || err == nil && first.ID == entries[0].ID {
		return nil //nolint:nilerr // what cannot be read now is found out when it is
	}
	s.purge()
	if err := s.e.views.DeleteView(ctx, s.id); err != nil {
		return fmt.Errorf("core: session %q: it was purged: %w", s.id, err)
	}
	return fmt.Errorf("core: append to %q: an entry was purged meanwhile: %w", s.id, core.ErrConflict)
}

// observe tells every observer; what fails is recorded, not returned.
func (e *Engine) observe(ctx context.Context, tell func(context.Context, core.Observer) error, n int) {
	if n == 0 {
		return
	}
	for _, o := range e.observers {
		if err := e.guarded(ctx, "observer", func(ctx context.Context) error { return tell(ctx, o) }); err != nil {
			e.warn(ctx, fmt.Sprintf("observer %T", o), "observe", err)
		}
	}
}

func (e *Engine) entry(id core.SessionID, m message.Message, seq int64, d draft) core.Entry {
	entry := core.Entry{
		ID: e.newID(), Agent: id.Agent, Session: id.Session, Seq: seq, Role: m.Role, Type: core.TypeMessage,
		Time: m.Time, Fingerprint: message.Fingerprint(m), Message: m.Clone(), Meta: d.meta,
	}
	if entry.Time.IsZero() {
		entry.Time = e.now()
	}
	entry.Time = entry.Time.UTC().Truncate(time.Millisecond)
	if d.heartbeat {
		entry.Type = core.TypeHeartbeat
	}
	if d.kind != "" {
		entry.Type = d.kind
	}
	entry.Message.Entry = ""
	entry.Tokens = e.gauge.messageCost(m)
	if d.turn != "" {
		entry.Meta = map[string]string{"advancement": d.turn}
	}
	return entry
}

// maxCallKey bounds the idempotency key of a call, in bytes.
const maxCallKey = 256

// keyOf returns the idempotency key of a message: the host's own, whatever call it comes in; else the turn's and the place in it, the call's and the place in
// it, or the place in the session. What a timer caused is none of what the host's transcript has, and known by its turn alone.
func keyOf(m message.Message, seq int64, i int, d *draft, fingerprint string) string {
	switch {
	case d.turn != "" && (d.heartbeat || m.Key == "" && m.ID == ""):
		return "t:" + d.turn + ":" + strconv.Itoa(i)
	case m.Key != "":
		return "k:" + m.Key
	case m.ID != "":
		return "i:" + m.ID + ":" + fingerprint
	case d.call != "":
		// The content too: another call that was given the same key by mistake is not taken for this one.
		return "r:" + d.call + ":" + strconv.Itoa(i) + ":" + fingerprint
	}
	return "s:" + strconv.FormatInt(seq, 10) + ":" + fingerprint
}

// overlap finds messages of a turn that are on the path already, because an earlier call brought them: the turn's beginning at the end of the path, or
// the whole turn further up, what no transcript shows aside. Only what the host itself identifies (key, id or time) counts as the same: two users' "ok" do not, unless a transcript showed it
// inside this turn. What stands in front of the window is read only where the window begins inside the turn. A transcript shows nothing of what a timer caused.
func (s *session) overlap(ctx context.Context, turn []message.Message, heartbeat bool) (map[int]string, error) {
	if s.view.Len() == 0 || len(turn) == 0 {
		return nil, nil
	}
	if err := s.warmUp(ctx); err != nil {
		return nil, err
	}
	fps := fingerprintsOf(turn)
	is := func(old *core.Entry, n int) (bool, error) {
		if old.Type == core.TypeErased {
			return s.wasErased(ctx, old, &turn[n], fps[n])
		}
		return old.Fingerprint == fps[n] && s.nameOf(old).SameOwn(transcript.NameOf(&turn[n])), nil
	}
	// known returns the ids of entries that are the turn's messages from the one at first on, and how many are; false where one is not. What no transcript shows may
	// stand among them.
	known := func(entries []item, first int) (map[int]string, int, bool, error) {
		out, n := make(map[int]string), first
		for i := range entries {
			if n == len(turn) {
				break
			}
			old := &entries[i].entry
			same, err := is(old, n)
			switch {
			case err != nil:
				return nil, 0, false, err
			case same:
				out[n] = old.ID
				n++
			case inTranscripts(old):
				return nil, 0, false, nil
			}
		}
		return out, n - first, true, nil
	}
	const far = 256
	for p := len(s.items) - 1; p >= max(len(s.items)-len(turn)-far, 0); p-- {
		if ids, n, ok, err := known(s.items[p:], 0); ok && n > 0 || err != nil {
			return ids, err
		}
	}
	for first := 1; first < min(len(turn), s.base+1); first++ {
		ids, n, ok, err := known(s.items, first)
		if err != nil {
			return nil, err
		}
		if !ok || n == 0 {
			continue
		}
		const others = 8 // that no transcript shows
		gone, err := s.e.reader.read(ctx, &s.view, max(s.base-first-others, 0), s.base)
		if err != nil {
			return nil, err
		}
		for p := len(gone) - first; p >= 0; p-- {
			before, n, ok, err := known(gone[p:], 0)
			if err != nil {
				return nil, err
			}
			if ok && n == first {
				maps.Copy(ids, before)
				return ids, nil
			}
		}
	}
	if heartbeat {
		return nil, nil
	}
	return s.told(ctx, turn, fps)
}

// endsWith reports whether an entry is the last one that transcripts show.
func (s *session) endsWith(id string) bool {
	for i := len(s.items) - 1; i >= 0; i-- {
		if entry := &s.items[i].entry; entry.ID == id || inTranscripts(entry) {
			return entry.ID == id
		}
	}
	return false
}

func validMessages(op string, messages []message.Message) error {
	for i, m := range messages {
		if !m.Role.Valid() {
			return invalid(op, "messages["+strconv.Itoa(i)+"].role", fmt.Sprintf("%q is not system, user, assistant or tool", m.Role))
		}
	}
	return nil
}

// extendPath puts a stored entry at the end of the path, if it is one that conversations are made of.
func extendPath(v *core.View, entry core.Entry) {
	if !inConversation(entry) {
		return
	}
	leads := v.Len() == v.Lead && entry.Role == message.System && entry.Type == core.TypeMessage && !entry.Leads()
	v.Apply(edit.Extend{Session: entry.SessionID(), Seq: entry.Seq, Leads: leads})
}

// summaryKey begins the keys of summaries, and of no other entry.
const summaryKey = "c:"

// inConversation reports whether an entry belongs on a path; summaries, and what is left of them, stand beside it.
func inConversation(entry core.Entry) bool {
	return entry.Type != core.TypeSummary && (entry.Type != core.TypeErased || !strings.HasPrefix(entry.Key, summaryKey))
}

// adopt takes an entry that the view does not know into it.
func adopt(v *core.View, entry core.Entry) {
	v.Apply(edit.Count{Next: entry.Seq + 1, Turns: max(v.Turns, entry.Turn)})
	if v.Arm == "" {
		v.Apply(edit.Enlist{Arm: entry.Meta[metaArm]}) // a store without room for views remembers it all the same
	}
	if entry.Type == core.TypeSummary {
		adoptSummary(v, entry)
		return
	}
	if entry.Type == core.TypeErased {
		v.Apply(edit.Erased{Count: v.Erased + 1})
	}
	before := v.Len()
	if !adoptBefore(v, entry) {
		extendPath(v, entry)
	}
	if entry.Type != core.TypeMessage { // no host shows it: what was matched is so still
		v.Apply(edit.Lengthen{From: before})
	}
	if entry.Leads() {
		v.Apply(edit.Lead{Head: leadersOf(entry)})
	}
}

func onPath(v *core.View, id core.SessionID, seq int64) bool { return v.Position(id, seq) >= 0 }

// grown returns the ledger of a transcript that grew by messages with these fingerprints, matched with the view as it is then.
func (s *session) grown(l core.Ledger, fps []string, then *core.View) core.Ledger {
	for _, fp := range fps {
		l.Digest = l.Digest.Add(fp)
	}
	l.Count, l.Len = l.Count+len(fps), then.Len()
	l.Whole = l.Whole || s.view.Len() == 0
	return l
}

func fingerprintsOf(messages []message.Message) []string {
	out := make([]string, len(messages))
	for i := range messages {
		out[i] = message.Fingerprint(messages[i])
	}
	return out
}
