package engine

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/internal/places"
	"github.com/contextengine/contextengine/core/internal/transcript"
	"github.com/contextengine/contextengine/core/internal/words"
	"github.com/contextengine/contextengine/core/message"
)

// session is what the engine keeps in memory of a session: the view as last published, and the entries the window
// shows. Everything in it can be read again from the store.
type session struct {
	e  *Engine
	id core.SessionID
	// sem is held by whoever works on the session.
	sem chan struct{}
	// compacting is held by the compaction that is under way.
	compacting chan struct{}
	// users counts those who hold sem or wait for it, place is where the session stands among those used lately. Engine.mu guards both.
	users int
	place *list.Element
	// size is what the items take in memory, in bytes, as counted for this many of them. Engine.mu guards both.
	size, sized int
	// adopted says that the view shows, or may come to show, entries of another agent: its parent's, or what that one inherited.
	adopted atomic.Bool
	// tended says that a compaction which a turn's end began is under way, doubtful that an erasure failed which may have reached it.
	tended, doubtful atomic.Bool

	loaded bool
	// mark is Tail.View as it was when the session was read, where the store keeps no views; marked says that it was asked for.
	mark   uint64
	marked bool
	// theirs are the entries of other sessions that the window showed when another process was found to have changed something, where the store keeps no views.
	theirs map[place]string
	// holes are positions that appends since the last look left free in front of what it stored, where the store keeps no views: see fill.
	holes []int64
	// others are the marks of other sessions whose entries the view shows.
	others map[core.SessionID]uint64
	// unseen are entries with a host's id that were stored since the mark was asked for.
	unseen []string
	// places are the empty places that were read, nil when there was none; only where the store keeps no views.
	places *emptyPlaces
	// late are summaries that have to be emptied, which the store refused; they are in no view.
	late []core.Entry
	// blank are the places that say nothing any more, of this session and others that it shows; only where several processes use a store that keeps no views.
	blank places.Set
	view  core.View
	// owed is why the store refused to keep the view as it is; nil where it has it.
	owed error
	// ahead says that the store has entries of a call that no view shows yet.
	ahead bool
	// lead are the entries of the leading system messages, items those at the positions from base to the end of the path.
	lead  []item
	items []item
	base  int
	warm  bool
	// most is the set of the first inMost items, once somebody asked for it.
	most   *shownSet
	inMost int
	// pinned is the entry of view.Pinned.
	pinned *item
	// outputs are what Assemble returned lately, the one used last behind; the view's lag behind where nothing else was published.
	outputs []core.Ledger
	// variants maps the fingerprints of messages as they were sent to what they show, where that is not the one entry of that fingerprint: see ownMessages.
	variants map[string][]string
	// trail is what Assemble sent last; reread says that the session was read anew since, so that another process may have sent something later; stale that its view was
	// published since, by whomever: another process may have sent what this one would send now.
	trail         []sentMessage
	reread, stale bool
	// renames are the kinds of names of which the last list that was compared as a whole had others for everything.
	renames transcript.Kinds
	// listed are the names that the newest messages of that list had, by the ids of their entries.
	listed map[string]transcript.Name
	// called is view.Called by entry, with what is not published yet, which is in calls.
	called map[string]core.Called
	calls  []core.Called
	// short is where the store's session ended when that was last found to be in front of view.Next, -1 when it is not.
	short int64
	// purged says that nothing is left of what the session was when it was last read.
	purged bool
	// gone is what was erased from the session, once something came in; goneAt is when, and watched says that an erasure by another process changes that.
	gone    *erased.Messages
	goneAt  erasedAt
	watched bool
	// count is what the last call adds to view.Tally, quote what its answer may have of the recall block; of sessions with an arm.
	count core.Tally
	quote *evidence
	// turn is what the first call of the turn was given.
	turn turnBudget
	// stranger is the provider without known rules that was last named.
	stranger string

	costs map[uint64]int
	// seen is what was seen of blocks that come back; nil until somebody asks, see remind.
	seen *repeats
}

// item is an entry in memory with what the window shows of it.
type item struct {
	entry core.Entry
	msg   message.Message
	cost  int
	// print is the fingerprint of msg, once somebody asked for it.
	print string
	// sketch is of what msg says, once a question was looked for.
	sketch words.Sketch
}

// hidden is Entry.Hidden for those who hold many entries and do not want copies of them.
func (it *item) hidden() bool { return it.entry.Type.Hidden() || it.entry.Leads() }

// open returns the session, locked and loaded, with what other processes did to it. The caller calls done.
func (e *Engine) open(ctx context.Context, id core.SessionID) (s *session, done func(), err error) {
	for n := 0; ; n++ {
		s, done, err = e.enter(ctx, id, true)
		if !errors.Is(err, core.ErrConflict) || n == stuck { // it is one when the session was changed while it was read
			return s, done, err
		}
		if err := pause(ctx, n); err != nil {
			return nil, nil, fmt.Errorf("core: session %q: others keep changing it: %w", id, err)
		}
	}
}

// enter is open. Unless it is to look, a session in memory is taken as it is there: for the later parts of a call that has looked.
func (e *Engine) enter(ctx context.Context, id core.SessionID, look bool) (s *session, done func(), err error) {
	if err := id.Validate(); err != nil {
		return nil, nil, err
	}
	if s, err = e.lookup(id); err != nil {
		return nil, nil, err
	}
	select {
	case s.sem <- struct{}{}:
	case <-ctx.Done():
		s.leave()
		return nil, nil, fmt.Errorf("core: session %q: %w", id, ctx.Err())
	}
	done = func() { s.weigh(); <-s.sem; s.leave() }
	if err := ctx.Err(); err != nil {
		done()
		return nil, nil, fmt.Errorf("core: session %q: %w", id, err)
	}
	if s.doubtful.Swap(false) {
		s.forget()
	}
	if look && len(s.late) > 0 {
		s.emptyRefused(ctx)
	}
	var told *tails
	if look && s.loaded {
		told, err = s.look(ctx)
	}
	if err == nil && !s.loaded {
		err = s.load(ctx, told)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return s, done, nil
}

// lookup finds or makes the session's memory and counts the call as work under way.
func (e *Engine) lookup(id core.SessionID) (*session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fmt.Errorf("core: session %q: engine: %w", id, core.ErrClosed)
	}
	s := e.sessions[id]
	if s == nil {
		if len(e.sessions) >= maxSessions {
			e.evict()
		}
		s = &session{e: e, id: id, sem: make(chan struct{}, 1), compacting: make(chan struct{}, 1), costs: make(map[uint64]int), short: -1}
		s.place = e.lately.PushFront(s)
		e.sessions[id] = s
	}
	e.lately.MoveToFront(s.place)
	s.users++
	e.work.Add(1)
	return s, nil
}

// leave ends what lookup began.
func (s *session) leave() {
	s.e.mu.Lock()
	s.users--
	s.e.mu.Unlock()
	s.e.work.Done()
}

// evict forgets the least recently used session that nobody works on. It reports whether there was one.
func (e *Engine) evict() bool {
	for at := e.lately.Back(); at != nil; at = at.Prev() {
		if s, ok := at.Value.(*session); ok && s.users == 0 {
			e.lately.Remove(at)
			delete(e.sessions, s.id)
			e.held -= s.size
			return true
		}
	}
	return false
}

// weigh finds out what the session takes in memory, and lets go of others when all together take too much. The caller holds the session, so it stays.
func (s *session) weigh() {
	if len(s.items) == s.sized {
		return
	}
	size := 0
	for i := range s.items {
		size += s.items[i].size()
	}
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.held += size - s.size
	s.size, s.sized = size, len(s.items)
	for s.e.held > s.e.cfg.Window.Memory<<20 && s.e.evict() {
	}
}

// size is about what an item takes in memory, in bytes.
func (it *item) size() int {
	n := 1100 + len(it.entry.Message.Raw) + 8*len(it.sketch) // what is beside the content: the structures, ids, metadata and the session's sets
	for i := range it.entry.Message.Parts {
		p := &it.entry.Message.Parts[i]
		n += 150 + len(p.Text) + len(p.Args) + len(p.Raw)
	}
	return n
}

// load reads the view and takes up entries that were stored without it: a crash came between the two, or the store keeps no views. told is what the store said
// of the session's end a moment ago, nil when it was not asked.
func (s *session) load(ctx context.Context, told *tails) error {
	v, err := s.e.views.LoadView(ctx, s.id)
	if errors.Is(err, core.ErrNotFound) {
		v, err = core.View{Session: s.id}, nil
	}
	if err != nil {
		return fmt.Errorf("core: load view %q: %w", s.id, err)
	}
	if v.Session != s.id { // what it shows is not for this one; the entries are there
		s.e.warn(ctx, "store", "load view", fmt.Errorf("of session %q is that of %q: it is made anew", s.id, v.Session))
		v = core.View{Session: s.id, Version: v.Version, Epoch: v.Epoch + 1}
	}
	known := told != nil && !s.e.sharedViews
	if told == nil && !s.e.sharedViews {
		told = &tails{}
		if *told, known, err = s.tails(ctx, &v); err != nil { // before entries are read, so that nothing goes unnoticed
			return err
		}
	}
	stale := known && (!s.marked || s.changed(told))
	if v.Version < s.view.Version || v.Next < s.view.Next && s.owed == nil { // neither falls but by a purge
		s.purge()
	}
	if len(v.Inherited) > len(s.view.Inherited) {
		s.variants, s.trail = nil, nil // see expire
	}
	q := core.ScanQuery{Scope: s.id.Scope(), FromSeq: v.Next, Limit: core.MaxPage}
	var gone *erased.Messages
	changed := false
	if stale && v.Version > 0 {
		if changed, err = s.freshen(ctx, &v); err != nil {
			return err
		}
		q.FromSeq = v.Next
	}
	if known && q.FromSeq == 0 {
		s.blank = places.Set{}
		s.blank.Begin(s.id)
	}
	s.blank.Resume(s.id, q.FromSeq)
	for {
		page, err := s.e.store.Scan(ctx, q)
		if err != nil {
			return fmt.Errorf("core: load session %q: %w", s.id, err)
		}
		for _, entry := range page.Entries {
			if entry.Seq < v.Next {
				continue
			}
			changed = true
			if s.e.sharedViews && erasedSince(&v, &entry) {
				v.Apply(edit.Count{Next: entry.Seq + 1, Turns: v.Turns})
				if _, err := s.emptyLate(ctx, entry); err != nil {
					return err
				}
				continue
			}
			if s.e.sharedViews { // an erasure may have come between what its call knew and this view
				if gone == nil {
					if gone, err = s.forgotten(ctx, &v); err != nil {
						return err
					}
				}
				if entry, err = s.e.emptyErased(ctx, gone, entry); err != nil {
					return err
				}
			} else if entry, err = s.emptyRepeated(ctx, entry); err != nil {
				return err
			}
			if known {
				s.blank.See(s.id, entry.Seq, saysNothing(&entry))
				if entry, err = s.emptyUntold(ctx, entry); err != nil {
					return err
				}
			}
			adopt(&v, entry)
		}
		if page.Next == "" {
			break
		}
		q.Cursor = page.Next
	}
	if s.purged && v.Version == 0 && v.Next < s.view.Next {
		v.Apply(edit.Count{Next: s.view.Next, Turns: v.Turns})
	}
	if s.e.sharedViews && v.Version == 0 && v.Next == 0 {
		first, err := s.e.erasures.begin(ctx, s.id.Agent)
		if err != nil {
			return fmt.Errorf("core: load session %q: %w", s.id, err)
		}
		v.Apply(edit.Count{Next: first, Turns: v.Turns})
		s.short = 0 // as long as nothing is stored, it ends in front of that
	}
	if s.owed != nil { // what was sent last is not what is stored
		v.Apply(edit.Epoch{Known: s.view.Epoch})
		changed = true
	}
	if s.purged && v.Epoch <= s.view.Epoch {
		v.Apply(edit.Epoch{Known: s.view.Epoch}) // also where there is nothing to publish yet
	}
	s.forget()
	s.purged = false
	s.hold(v)
	s.marked, s.watched = true, s.e.sharedViews || known
	if known {
		s.mark, s.others, s.unseen, s.theirs = told.own.View, told.others, nil, nil
	}
	s.outputs = nil
	if v.Output != (core.Ledger{}) {
		s.outputs = append(slices.Clone(v.Outputs), v.Output)
	}
	if changed {
		if err := s.settle(ctx, v); err != nil {
			return err
		}
	}
	s.loaded = true
	return nil
}

// emptyLate empties a summary that was stored after an erasure which did not see it. It leaves a place: a call under way would get the position, and the view is past it.
func (s *session) emptyLate(ctx context.Context, entry core.Entry) (core.Entry, error) {
	empty, err := s.e.erasures.empty(ctx, entry, "")
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		err = fmt.Errorf("core: session %q: summary of before an erasure: %w", s.id, err)
		if !s.e.cfg.doesWithout(ctx, err) {
			return entry, err
		}
		s.e.warn(ctx, "store", "update", err)
		if !slices.ContainsFunc(s.late, func(other core.Entry) bool { return other.ID == entry.ID }) {
			s.late = append(s.late, entry)
		}
	}
	s.e.observe(ctx, func(ctx context.Context, o core.Observer) error {
		return o.Deleted(ctx, entry.SessionID().Scope(), []string{entry.ID})
	}, 1)
	return empty, nil
}

// emptyRefused tries again to empty the summaries that the store refused to. Nobody shows them, so that no call fails for it.
func (s *session) emptyRefused(ctx context.Context) {
	s.late = slices.DeleteFunc(s.late, func(entry core.Entry) bool {
		_, err := s.e.erasures.empty(ctx, entry, "")
		return err == nil || errors.Is(err, core.ErrNotFound)
	})
}

// emptyUntold empties a summary that stands for more empty places than its process knew of: it was stored while another process erased, which did not see it. Where the
// store keeps no views nothing else tells. What it stands for comes in front of it.
func (s *session) emptyUntold(ctx context.Context, entry core.Entry) (core.Entry, error) {
	if entry.Type != core.TypeSummary {
		return entry, nil
	}
	sum := summaryOf(entry)
	if err := s.learn(ctx, sum.Of); err != nil || s.blank.Count(sum.Of) <= sum.Erased {
		return entry, err
	}
	return s.emptyLate(ctx, entry)
}

// learn reads which places say nothing any more in sessions of which that is not known. A fork that was opened anew does not know them by its path.
func (s *session) learn(ctx context.Context, of []core.Span) error {
	for owner, end := range s.blank.Unknown(of) {
		s.blank.Begin(owner)
		for entry, err := range core.All(ctx, s.e.store, owner.Scope(), false) {
			if err != nil {
				delete(s.blank, owner)
				return fmt.Errorf("core: load session %q: what its summary stands for: %w", s.id, err)
			}
			s.blank.See(owner, entry.Seq, saysNothing(&entry))
		}
		s.blank.End(owner, end)
	}
	return nil
}

// saysNothing reports whether an entry of a conversation is an empty place.
func saysNothing(entry *core.Entry) bool {
	return entry.Type == core.TypeErased && inConversation(*entry)
}

// forget drops what can be read again. What was sent stays known.
func (s *session) forget() {
	s.cool()
	s.loaded, s.reread = false, true
	if !s.watched || foreign(&s.view) {
		s.gone = nil
	}
}

// purge is forget for a session that was purged: what is said in it from now on has nothing to do with what was.
func (s *session) purge() {
	s.forget()
	s.outputs, s.variants, s.trail, s.calls, s.called = nil, nil, nil, nil, nil
	s.gone, s.places, s.blank, s.seen, s.quote, s.turn, s.holes = nil, nil, nil, nil, nil, turnBudget{}, nil
	// Positions go on: to a process that has not looked meanwhile, what is new does not look like what it knows.
	s.view, s.purged, s.short = core.View{Session: s.id, Epoch: s.view.Epoch, Next: s.view.Next}, true, -1
}

// Refresher is an engine that keeps sessions in memory, over a store that others may change: those who do tell it.
type Refresher interface {
	// Refresh makes the engine read every session anew before it is used again: from then on each shows what the store holds. What was not changed is shown as before.
	Refresh(ctx context.Context) error
}

// Refresh makes the engine read every session anew before it is used again: somebody else changed the store. It waits for calls under way.
func (e *Engine) Refresh(ctx context.Context) error {
	for _, id := range e.inMemory("") {
		if err := e.reread(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// reread makes the engine read a session anew before it is used again.
func (e *Engine) reread(ctx context.Context, id core.SessionID) error {
	s, done, err := e.open(ctx, id)
	if err != nil {
		return err
	}
	s.forget()
	done()
	return nil
}

// sent records what Assemble returned, or a host handed back: it may do so again, also after a later call.
func (s *session) sent(l core.Ledger) {
	const keep = 8
	s.outputs = slices.DeleteFunc(s.outputs, func(o core.Ledger) bool { return o == l })
	if len(s.outputs) >= keep {
		s.outputs = s.outputs[1:]
	}
	s.outputs = append(s.outputs, l)
}

// lengthened keeps what is known of outputs when something was put behind them that no host shows.
func (s *session) lengthened(from, to int) {
	for i := range s.outputs {
		if s.outputs[i].Len == from {
			s.outputs[i].Len = to
		}
	}
}

// publish stores a changed view and makes it the session's. On ErrConflict somebody else changed it: the session is read again
// by the next call.
func (s *session) publish(ctx context.Context, v core.View) error {
	giveBack := s.e.pending.take(&v)
	err := s.swap(ctx, v)
	if err != nil {
		giveBack()
	}
	return err
}

// swap is publish without what was counted meanwhile.
func (s *session) swap(ctx context.Context, v core.View) error {
	s.next(&v)
	if err := s.e.views.SwapView(ctx, v); err != nil {
		s.forget()
		return fmt.Errorf("core: publish view %q: %w", s.id, err)
	}
	s.hold(v)
	return nil
}

// next makes a view the one that is published next.
func (s *session) next(v *core.View) {
	v.Apply(edit.Publish{Version: s.view.Version + 1}, edit.Sent{Outputs: s.outputs})
	for _, c := range s.calls {
		v.Apply(edit.Call{Called: c})
	}
}

// settle is publish for what came of reading: where the store cannot be written (a full disk, a file without the right to write) the view is kept in memory alone,
// which is reported, and published by the next call that can. A strict engine fails.
func (s *session) settle(ctx context.Context, v core.View) error {
	s.next(&v)
	giveBack := s.e.pending.take(&v)
	err := s.e.views.SwapView(ctx, v)
	if err != nil {
		refusal := fmt.Errorf("core: publish view %q: %w", s.id, err)
		if !s.e.cfg.doesWithout(ctx, err) {
			giveBack()
			s.forget()
			return refusal
		}
		err = refusal
		s.e.warn(ctx, "store", "publish", err)
		v.Apply(edit.Publish{Version: s.view.Version})
	}
	s.hold(v)
	s.owed = err
	return nil
}

// doesWithout reports whether an answer may be given although the store refused to keep what led to it. A conflict is no refusal: somebody else was first.
func (c *Config) doesWithout(ctx context.Context, err error) bool {
	return c.Failure == FailDegrade && ctx.Err() == nil && !errors.Is(err, core.ErrConflict) && !errors.Is(err, core.ErrClosed) && !errors.Is(err, core.ErrInvalid)
}

// hold makes v the session's view.
func (s *session) hold(v core.View) {
	s.view, s.owed, s.stale, s.ahead = v, nil, true, false
	s.calls, s.called = nil, nil
	if len(v.Called) > 0 { // most hosts keep the names that they give
		s.called = make(map[string]core.Called, len(v.Called))
	}
	for _, c := range v.Called {
		s.called[c.Entry] = c
	}
	s.adopted.Store(v.Parent != nil && v.Parent.Agent != s.id.Agent || elsewhere(&v, s.id.Agent))
}

// localViews keeps views of stores that have no room for them. They last as long as the engine and are rebuilt from the entries.
type localViews struct {
	mu sync.Mutex
	m  map[core.SessionID]core.View
}

func newLocalViews() *localViews { return &localViews{m: make(map[core.SessionID]core.View)} }

func (l *localViews) LoadView(_ context.Context, id core.SessionID) (core.View, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.m[id]
	if !ok {
		return core.View{}, core.ErrNotFound
	}
	return v.Clone(), nil
}

func (l *localViews) SwapView(_ context.Context, v core.View) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m[v.Session].Version != v.Version-1 {
		return core.ErrConflict
	}
	l.m[v.Session] = v.Clone()
	return nil
}

func (l *localViews) DeleteView(_ context.Context, id core.SessionID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.m, id)
	return nil
}

func (l *localViews) ListViews(_ context.Context, q core.ViewQuery) ([]core.SessionID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []core.SessionID
	for id := range l.m {
		if (q.Agent == "" || id.Agent == q.Agent) && id.Compare(q.After) > 0 {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, core.SessionID.Compare)
	return out[:min(len(out), q.Limit)], nil
}
