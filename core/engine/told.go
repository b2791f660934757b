package engine

import (
	"context"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/internal/transcript"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// moment is where in a turn a transcript comes.
type moment int

const (
	// anytime says nothing about a turn.
	anytime moment = iota
	// before is in front of a prompt that the host appends itself, asked is where the prompt stands at the transcript's end.
	before
	asked
	// inside is a further call of the turn, apart one to whose transcript the host appends all of the turn itself.
	inside
	apart
)

// further reports whether the turn was begun by a call before.
func (m moment) further() bool { return m == inside || m == apart }

func momentOf(req *core.AssembleRequest) moment {
	switch {
	case req.Call == core.CallLoop && req.Prompt != "":
		return apart
	case req.Call == core.CallLoop:
		return inside
	case req.Prompt == "":
		return asked
	}
	return before
}

// tell notes in a view that was matched with a transcript what that shows of the turn. news are the entries that were stored for it. back says that the host took back what
// was accepted last: what is left of that turn may be asked again.
func (s *session) tell(ctx context.Context, at moment, v *core.View, messages []message.Message, news []core.Entry, back bool) error {
	from, untold := v.Len(), v.Told.From >= v.Told.To
	spoken, _ := transcript.Spoken(messages)
	prompts := 0
	for prompts < len(spoken) && spoken[len(spoken)-1-prompts].Role == message.User {
		prompts++
	}
	if at == asked && prompts == 0 {
		at = inside // whether the host says so or not
	}
	var err error
	switch {
	case at == anytime, (at == before || at == apart) && untold: // nothing of a turn before it is told
		return nil
	case at == inside:
		if from = min(v.Told.From, from); untold {
			from, err = s.begun(ctx, v, from, news)
		}
	case at == asked && len(news) == 0 && !untold:
		from = v.Told.From // it asks once more
	case at == asked:
		from, err = s.newest(ctx, v, prompts, news)
		if !back {
			from = max(from, min(v.Told.From, v.Len())) // what was accepted is no part of another turn
		}
	}
	if err == nil {
		v.Apply(edit.Tell{From: from})
	}
	return err
}

// accepted returns where the last of what was accepted is stored; ok is false where nothing was.
func (s *session) accepted() (id core.SessionID, seq int64, ok bool) {
	n := min(s.view.Told.From, s.view.Len())
	if n == 0 {
		return id, 0, false
	}
	id, seq = s.view.At(n - 1)
	return id, seq, true
}

// inTranscripts reports whether a host's transcript shows what an entry holds where that stands: it does not for what a timer caused, what a subagent handed back, and
// system messages of its beginning.
func inTranscripts(entry *core.Entry) bool {
	return (entry.Type == core.TypeMessage || entry.Type == core.TypeErased) && !entry.Leads()
}

// newest returns where on a path the newest n entries that transcripts show begin. What stands behind them, and no transcript shows, is not counted.
func (s *session) newest(ctx context.Context, v *core.View, n int, news []core.Entry) (int, error) {
	from, left := v.Len(), n
	for i := len(news) - 1; i >= 0 && left > 0; i-- {
		if at := v.Position(news[i].SessionID(), news[i].Seq); at >= 0 && inTranscripts(&news[i]) {
			from, left = min(from, at), left-1
		}
	}
	if left == 0 {
		return from, nil
	}
	err := s.eachShown(ctx, v, from, left+8, func(at int, _ *core.Entry) bool {
		from, left = at, left-1
		return left > 0
	})
	return from, err
}

// eachShown visits what transcripts show of a path in front of a position, the newest first, until it is told to stop. What is not in memory it reads, so many positions at
// a time.
func (s *session) eachShown(ctx context.Context, v *core.View, to, many int, visit func(at int, entry *core.Entry) bool) error {
	for to > 0 {
		from := max(to-many, 0)
		if s.warm && s.base < to {
			from = max(from, s.base)
		}
		items, err := s.span(ctx, v, from, to)
		if err != nil {
			return err
		}
		for i := len(items) - 1; i >= 0; i-- {
			if inTranscripts(&items[i].entry) && !visit(from+i, &items[i].entry) {
				return nil
			}
		}
		to = from
	}
	return nil
}

// begun returns where from a position on somebody's words begin a turn: what failed turns left may stand in front of it.
func (s *session) begun(ctx context.Context, v *core.View, from int, news []core.Entry) (int, error) {
	begins := func(entry *core.Entry) bool { return entry.Role == message.User && inTranscripts(entry) }
	first, behind := v.Len(), v.Len()
	for i := range news {
		if at := v.Position(news[i].SessionID(), news[i].Seq); at >= from {
			if behind = min(behind, at); begins(&news[i]) {
				first = min(first, at)
			}
		}
	}
	items, err := s.span(ctx, v, from, behind)
	for i := range items {
		if begins(&items[i].entry) {
			return from + i, nil
		}
	}
	return first, err
}

// span returns the items of the positions from <= pos < to of a view that is about to be published, from memory where they are there.
func (s *session) span(ctx context.Context, v *core.View, from, to int) ([]item, error) {
	if s.warm && from >= s.base && to <= s.view.Len() { // whoever lays a path anew cools the session
		return s.items[from-s.base : max(to, from)-s.base], nil
	}
	return s.e.reader.read(ctx, v, from, to)
}

// goesOnBefore reports whether messages behind an output go on behind an earlier one that was the same: what was stored between the two no prompt shows, such as a call
// whose arguments are no JSON, and they begin with all of that.
func (s *session) goesOnBefore(ctx context.Context, l core.Ledger, messages []message.Message) (bool, error) {
	from := l.Len
	for _, o := range s.outputs {
		if o.Count == l.Count && o.Digest == l.Digest && o.Calls == l.Calls {
			from = min(from, o.Len)
		}
	}
	if from == l.Len || len(messages) == 0 {
		return false, nil
	}
	n, err := s.beginsWith(ctx, from, l.Len, messages)
	return n > 0, err
}

// beginsWith returns how many messages a list begins with that are what transcripts show of the positions from <= pos < to of the path, 0 where it does not begin with all of
// that.
func (s *session) beginsWith(ctx context.Context, from, to int, messages []message.Message) (int, error) {
	items, err := s.span(ctx, &s.view, from, to)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range items {
		entry := &items[i].entry
		if !inTranscripts(entry) {
			continue
		}
		if n == len(messages) || entry.Fingerprint != message.Fingerprint(messages[n]) || s.nameOf(entry).Another(transcript.FullName(&messages[n])) {
			return 0, nil
		}
		n++
	}
	return n, nil
}

// goesOnUnseen reports whether messages begin with what the path ends with, behind lines of the host's perhaps, and some of that no output shows: what was erased, a call
// or a result that lost its other half so, and what says nothing. So a host's own list may begin as an output does and go on with what is stored already.
func (s *session) goesOnUnseen(ctx context.Context, messages []message.Message) (bool, error) {
	some := slices.ContainsFunc(messages, window.SaysNothing)
	lost := s.view.Erased > 0 || foreign(&s.view)
	if len(messages) == 0 || !some && !lost {
		return false, nil // most messages are new, and nothing is read for them
	}
	fps := fingerprintsOf(messages)
	if lost {
		gone, err := s.forgotten(ctx, &s.view)
		if err != nil {
			return false, err
		}
		for i := range messages {
			_, was := gone.Find(&messages[i], fps[i])
			some = some || was
		}
	}
	if !some {
		return false, nil
	}
	if err := s.warmUp(ctx); err != nil {
		return false, err
	}
	first := max(s.view.Len()-2*len(messages), 0) // what timers caused is on the path too, and no host shows it
	items, err := s.e.reader.read(ctx, &s.view, first, s.base)
	if err != nil {
		return false, err
	}
	var end []core.Entry
	for _, it := range append(items, s.items[max(first-s.base, 0):]...) {
		line := it.entry.Meta[transcript.MetaStray] != "" || it.entry.Leads() // it stands in front of whatever the host showed then
		if !line && (it.entry.Type == core.TypeMessage || it.entry.Type == core.TypeErased) {
			end = append(end, it.entry)
		}
	}
	for last := range messages {
		n, says, unseen := 0, false, false
		for ; n <= last && n < len(end); n++ {
			entry, i := &end[len(end)-1-n], last-n
			same, nothing := entry.Fingerprint == fps[i], window.SaysNothing(messages[i])
			if entry.Type == core.TypeErased {
				if same, err = s.wasErased(ctx, entry, &messages[i], fps[i]); err != nil {
					return false, err
				}
				nothing = true
			}
			if !same {
				break
			}
			says, unseen = says || !nothing, unseen || nothing
		}
		if unseen && (n > last || says) { // behind another message what says nothing may be a new one
			return true, nil
		}
	}
	return false, nil
}

// shownOf returns how many messages of a turn a transcript ends with that shows the known ones: at says where those stand among all of the turn.
func shownOf(known map[int]string, at []int) int {
	last := -1
	for i := range known {
		last = max(last, i)
	}
	if at != nil && last >= 0 {
		last = at[last]
	}
	return last + 1
}

// told finds messages of a turn that a transcript showed as such: their host has no names for them, or other ones each time. Behind somebody's words that are not the turn's, an
// answer in the same words is another turn's, which failed; calls and their results are known by themselves.
func (s *session) told(ctx context.Context, turn []message.Message, fps []string) (map[int]string, error) {
	from, to := s.view.Told.From, min(s.view.Told.To, s.view.Len())
	if from >= to {
		return nil, nil
	}
	items, err := s.e.reader.read(ctx, &s.view, from, min(to, s.base))
	if err != nil {
		return nil, err
	}
	items = append(items, s.items[max(from-s.base, 0):max(to-s.base, 0)]...)
	t := toldTurn{
		s: s, turn: turn, items: items, names: make([]transcript.Name, len(items)), saying: make(map[string][]int),
		known: make([]string, len(items)), says: make([]string, len(items)), named: make([]bool, len(items)),
	}
	for n := range items {
		entry := &items[n].entry
		t.names[n], t.erased = s.nameOf(entry).Without(s.renames), t.erased || entry.Type == core.TypeErased
		t.saying[entry.Fingerprint] = append(t.saying[entry.Fingerprint], n)
	}
	for i := range turn {
		t.add(i, fps[i])
	}
	if out, err := t.begun(ctx); out != nil || err != nil {
		return out, err
	}
	if err := t.read(ctx); err != nil {
		return nil, err
	}
	match := transcript.Align(t.known, t.ids)
	first, prompted, err := t.begin(ctx, fps)
	if err != nil {
		return nil, err
	}
	clear(t.says[:first])
	transcript.Fill(match, t.says, t.prints)
	out, sure := make(map[int]string), prompted && first < len(items) || !prompted && turn[0].Role != message.User
	for p, n := range match {
		i := t.pieces[p].of
		if m := &turn[i]; n >= 0 && t.may(t.nameOf(&t.pieces[p].message), n) {
			if out[i] == "" {
				out[i] = items[n].entry.ID
			}
			sure = sure || i == 0 || m.HasCalls() || m.Role == message.Tool
		}
	}
	for p, n := range match { // of what is merged all is known, or it is not
		if n < 0 {
			delete(out, t.pieces[p].of)
		}
	}
	if !sure {
		return nil, nil
	}
	return out, nil
}

// begun returns what is known of a turn that begins, word for word, with all that was shown of it, or with all of that from something a user said on: it is what was shown,
// whatever its host calls it by now.
func (t *toldTurn) begun(ctx context.Context) (map[int]string, error) {
	var shown []*core.Entry
	for n := range t.items {
		if entry := &t.items[n].entry; inTranscripts(entry) {
			shown = append(shown, entry)
		}
	}
	for from, first := range shown {
		if from > 0 && first.Role != message.User {
			continue
		}
		if is, err := t.beginsWith(ctx, shown[from:]); err != nil {
			return nil, err
		} else if !is {
			continue
		}
		out := make(map[int]string)
		for p, entry := range shown[from:] {
			i := t.all[p].of
			if out[i] == "" {
				out[i] = entry.ID
			}
			if err := t.rename(ctx, entry, p); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, nil
}

// rename notes by what the turn knows an entry, where that is another name than its own.
func (t *toldTurn) rename(ctx context.Context, entry *core.Entry, p int) error {
	m := &t.turn[t.all[p].of]
	if entry.Type == core.TypeErased {
		if is, err := t.s.wasErased(ctx, entry, &t.all[p].message, t.all[p].print); is || err != nil {
			return err
		}
		return t.s.erasedNow(ctx, entry.SessionID(), entry.ID, m)
	}
	if transcript.NameOf(m).Another(t.s.nameOf(entry)) {
		t.s.calledNow(entry.ID, m)
	}
	return nil
}

// beginsWith reports whether a turn begins with what all of the entries say. What was erased of them may have another name now where all of them have, that can be compared.
func (t *toldTurn) beginsWith(ctx context.Context, entries []*core.Entry) (bool, error) {
	n := len(entries)
	if n > len(t.all) || n < len(t.all) && t.all[n].of == t.all[n-1].of { // of what is merged all is known, or it is not
		return false, nil
	}
	live, kept, others, untold := false, false, false, false
	for p, entry := range entries {
		same := entry.Fingerprint == t.all[p].print
		if entry.Type == core.TypeErased {
			is, err := t.s.compareErased(ctx, entry, &t.all[p].message, t.all[p].print)
			if err != nil {
				return false, err
			}
			same, untold = is.says, untold || is.says && !is.same
		} else {
			was, is := t.s.nameOf(entry), transcript.FullName(&t.all[p].message)
			live, kept, others = true, kept || was.Same(is), others || was.Another(is)
		}
		if !same {
			return false, nil
		}
	}
	return !untold || !live || others && !kept, nil
}

// toldTurn compares a turn with what transcripts showed of it.
type toldTurn struct {
	s     *session
	turn  []message.Message
	items []item
	// names are those of the items, saying which of them have a fingerprint; erased says that some are.
	names  []transcript.Name
	saying map[string][]int
	erased bool
	// pieces are the messages that may be known by what they say; of results that rules merged each is one. ids are their fingerprints with the ids of their calls, prints
	// without.
	pieces      []piece
	ids, prints []string
	// all are the pieces of all messages of the turn.
	all []piece
	// known and says are the same of the items, "" of one that is named, which is a message of the turn by the host's own name for it.
	known, says []string
	named       []bool
}

// piece is a message of a turn, or one of the results in it.
type piece struct {
	of      int
	message message.Message
	print   string
}

// nameOf returns by what a host knows a message, without what it makes anew each time.
func (t *toldTurn) nameOf(m *message.Message) transcript.Name {
	return transcript.FullName(m).Without(t.s.renames)
}

// may reports whether a message of a name may be an item that says the same: where the host calls the two by different ids, their times or the ids of their calls have to say
// so.
func (t *toldTurn) may(a transcript.Name, n int) bool {
	if t.items[n].entry.Type == core.TypeErased {
		return true // it was compared by what it leaves
	}
	b := t.names[n]
	times := !a.Time.IsZero() && !b.Time.IsZero()
	if a.SameOwn(b) || times && a.Time.Equal(b.Time) || a.Calls != "" && a.Calls == b.Calls {
		return true
	}
	return !times && (a.Key == "" || b.Key == "") && (a.ID == "" || b.ID == "")
}

// add takes a message of the turn up, unless it is an item by the host's own name for it, which is none of the others then.
func (t *toldTurn) add(i int, print string) {
	m, saying := &t.turn[i], t.saying[print]
	pieces := []piece{{i, *m, print}}
	result := func(p message.Part) bool { return p.Kind == message.ToolResult }
	if len(saying) == 0 && m.Role == message.Tool && len(m.Parts) > 1 && slices.ContainsFunc(m.Parts, result) {
		pieces = pieces[:0]
		for _, p := range m.Parts {
			one := *m
			one.Parts = []message.Part{p}
			pieces = append(pieces, piece{i, one, message.Fingerprint(one)})
		}
	}
	t.all = append(t.all, pieces...)
	if a := t.nameOf(m); a.Key+a.ID != "" {
		may := t.erased
		for _, n := range saying {
			if b := &t.names[n]; a.Key != "" && a.Key == b.Key || a.ID != "" && a.ID == b.ID {
				t.named[n] = true
				return
			}
			may = may || t.may(a, n)
		}
		if !may {
			return
		}
	}
	for _, p := range pieces {
		t.pieces, t.prints, t.ids = append(t.pieces, p), append(t.prints, p.print), append(t.ids, p.print+t.nameOf(&p.message).Calls)
	}
}

// read looks at what the items say.
func (t *toldTurn) read(ctx context.Context) error {
	for n := range t.items {
		entry := &t.items[n].entry
		if t.named[n] {
			continue
		}
		if entry.Type == core.TypeMessage {
			t.known[n], t.says[n] = entry.Fingerprint+t.names[n].Calls, entry.Fingerprint
		}
		for p := 0; p < len(t.pieces) && entry.Type == core.TypeErased && t.known[n] == ""; p++ {
			m := t.pieces[p].message
			was, err := t.s.wasErased(ctx, entry, &m, t.prints[p])
			if err != nil {
				return err
			}
			if was {
				t.known[n], t.says[n] = t.ids[p], t.prints[p]
			} else if t.says[n] == "" && t.called() { // the ids of its calls are others now
				if was, err = t.s.wasErased(ctx, entry, transcript.OfCalls.Unnamed(&m), t.prints[p]); err != nil {
					return err
				} else if was {
					t.says[n] = t.prints[p]
				}
			}
		}
	}
	return nil
}

// called reports whether the ids of calls are others now: the turn has calls or results of those that were shown and not erased, but under none of their ids.
func (t *toldTurn) called() bool {
	others := false
	for n := range t.items {
		if entry := &t.items[n].entry; entry.Type != core.TypeMessage || t.names[n].Calls == "" {
			continue
		}
		for p := range t.all {
			of := t.nameOf(&t.all[p].message).Calls
			if of == t.names[n].Calls {
				return false
			}
			others = others || of != "" && t.all[p].print == t.items[n].entry.Fingerprint
		}
	}
	return others
}

// begin returns from which item on words alone say what is the turn's: behind what it begins with, among what was shown as it was asked last. The same calls are the turn's
// there, whatever their ids are now. prompted says that a user's words are among the items.
func (t *toldTurn) begin(ctx context.Context, fps []string) (first int, prompted bool, err error) {
	for n := range t.items {
		entry := &t.items[n].entry
		prompted = prompted || entry.Role == message.User && inTranscripts(entry)
	}
	if !prompted {
		return 0, false, nil
	}
	if first = len(t.items); t.turn[0].Role != message.User {
		return first, true, nil
	}
	times := 0
	for i := range t.turn {
		if fps[i] == fps[0] {
			times++
		}
	}
	for n := len(t.items) - 1; n >= 0 && times > 0; n-- {
		entry := &t.items[n].entry
		begins := entry.Fingerprint == fps[0] && (t.named[n] || t.may(t.nameOf(&t.turn[0]), n))
		if entry.Type == core.TypeErased {
			if begins, err = t.s.wasErased(ctx, entry, &t.turn[0], fps[0]); err != nil {
				return 0, true, err
			}
		}
		if begins {
			first, times = n, times-1
		}
	}
	return first, true, nil
}
