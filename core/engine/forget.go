package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/internal/exact"
	"github.com/contextengine/contextengine/core/internal/records"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
)

// Forgetter erases what was stored, at somebody's explicit wish. It keeps the receipts, and hands them out where it has the method Receipts of Engine. When Forget
// fails, what it did stays done, and the same call again does the rest.
type Forgetter interface {
	Forget(ctx context.Context, req ForgetRequest) (Receipt, error)
}

// ForgetRequest says what to erase for good.
type ForgetRequest struct {
	// Scope is an agent, or one of its sessions.
	Scope core.Scope `json:"scope"`
	// Entries are the ids to erase; empty means all of the scope. Unknown ones are ErrNotFound, the engine's own records ErrInvalid, and then nothing is erased.
	Entries []string `json:"entries,omitempty"`
	// From and To bound the entries' time, half open; zero means unbounded.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Purge removes whole sessions: also the empty places that erased entries leave, and the views. Entries, From and To must be empty then.
	// Without it a host that still has a message in its transcript cannot bring it back; with it, it does.
	Purge bool `json:"purge,omitempty"`
	// Reason is kept with the receipt.
	Reason string `json:"reason,omitempty"`
}

// Receipt says what was erased. It names ids and counts, never contents.
type Receipt struct {
	ID      string        `json:"id"`
	Time    time.Time     `json:"time"`
	Request ForgetRequest `json:"request"`
	// Entries is the number of messages erased, of every type but summaries, with those that the same call emptied before it failed, and what came again
	// meanwhile; Sessions is that of the sessions they were in.
	Entries  int `json:"entries"`
	Sessions int `json:"sessions"`
	// Summaries is the number of summaries erased because they stood for an erased entry.
	Summaries int `json:"summaries"`
	// Views is the number of views from which something was taken.
	Views int `json:"views"`
	// Undelivered is the number of changes that a remote store has not taken yet; they are delivered when it can be reached.
	Undelivered int `json:"undelivered,omitempty"`
	// Left says what could not be reached, part by part; empty when nothing is left.
	Left []string `json:"left,omitempty"`
}

// metaReceipt holds a receipt as JSON.
const metaReceipt = "receipt"

// drainTime bounds how long Forget waits for a remote store.
const drainTime = 10 * time.Second

// Forget erases entries from the store, the indexes, the summaries that stand for them, the views that show them, the vectors, and whatever
// waits for delivery. It leaves a receipt, see Receipts.
//
// When it fails it says what for; everything it did stays done, and the same call again does the rest. Other processes that hold
// a session in memory learn of it with their next call.
func (e *Engine) Forget(ctx context.Context, req ForgetRequest) (_ Receipt, err error) {
	ctx, end := e.begin(ctx, "Forget", core.SessionID{Agent: req.Scope.Agent, Session: req.Scope.Session})
	defer func() { end(err) }()
	if req.Scope.Agent == "" {
		return Receipt{}, invalid("forget", "scope.agent", "name the agent whose entries are to be erased")
	}
	if core.Reserved(req.Scope.Session) {
		return Receipt{}, invalid("forget", "scope.session", "it holds the engine's own records, which go with what they are about")
	}
	if !req.From.IsZero() && !req.To.IsZero() && !req.From.Before(req.To) {
		return Receipt{}, invalid("forget", "to", "must be later than from")
	}
	if req.Purge && (len(req.Entries) > 0 || !req.From.IsZero() || !req.To.IsZero()) {
		return Receipt{}, invalid("forget", "purge", "it removes whole sessions: leave entries, from and to out")
	}
	leave, err := e.join("forget")
	if err != nil {
		return Receipt{}, err
	}
	defer leave()
	er := &erasure{e: e, req: req, ids: make(map[string]bool), spans: make(map[core.SessionID][]core.Entry), ends: make(map[core.SessionID]int64),
		gone: make(map[core.SessionID]*erased.Messages), agents: map[string]bool{req.Scope.Agent: true}, after: make(map[core.SessionID]uint64), seen: make(map[core.SessionID]bool)}
	rec, err := er.run(ctx)
	if err != nil && (len(er.ids) > 0 || req.Purge) {
		e.doubt() // what the store has erased is known to the store alone
	}
	if errors.Is(err, core.ErrNotFound) {
		return Receipt{}, fmt.Errorf("core: forget in %q: %w", req.Scope.Agent, err)
	}
	if err != nil {
		return Receipt{}, e.failed(ctx, "store", "forget", fmt.Errorf("core: forget in %q: %w", req.Scope.Agent, err))
	}
	return rec, nil
}

// doubt has every session read anew before it is used again.
func (e *Engine) doubt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.sessions {
		s.doubtful.Store(true)
	}
}

// Receipts returns the receipts of an agent's erasures, oldest first.
func (e *Engine) Receipts(ctx context.Context, agent string) ([]Receipt, error) {
	leave, err := e.join("receipts")
	if err != nil {
		return nil, err
	}
	defer leave()
	return e.receipts(ctx, agent)
}

func (e *Engine) receipts(ctx context.Context, agent string) ([]Receipt, error) {
	var out []Receipt
	for entry, err := range core.All(ctx, e.store, core.Scope{Agent: agent, Session: records.Receipts}, false) {
		if err != nil {
			return nil, fmt.Errorf("core: receipts of %q: %w", agent, err)
		}
		var r Receipt
		if err := exact.Read(entry.Meta[metaReceipt], &r); err != nil {
			return nil, fmt.Errorf("core: receipts of %q: entry %q: %w", agent, entry.ID, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// erasure is one Forget under way.
type erasure struct {
	e   *Engine
	req ForgetRequest
	// ids are the entries to erase, spans the same by session.
	ids   map[string]bool
	spans map[core.SessionID][]core.Entry
	// summaries are the ids of summaries that have to go, agents those of the views that may hold some.
	summaries map[string]bool
	agents    map[string]bool
	// after is what cleaned views count as erased: summaries that were made later say so. heirs are the forks of other agents that those views named.
	after map[core.SessionID]uint64
	heirs []core.SessionID
	// seen are the sessions whose views were seen to show something.
	seen map[core.SessionID]bool
	// ends are where the sessions ended before anything was emptied: what stands behind came meanwhile.
	ends map[core.SessionID]int64
	// gone is what was erased from the sessions in which something came meanwhile.
	gone map[core.SessionID]*erased.Messages
	// receipts are the ids of the agent's receipts, read when they are needed.
	receipts map[string]bool
	rec      Receipt
}

func (er *erasure) run(ctx context.Context) (Receipt, error) {
	e := er.e
	er.rec = Receipt{ID: e.newID(), Time: e.now(), Request: er.req}
	if err := er.collect(ctx); err != nil {
		return Receipt{}, err
	}
	if len(er.ids) > 0 || er.req.Purge {
		if err := er.collectSummaries(ctx); err != nil {
			return Receipt{}, err
		}
		if _, err := e.erasures.printsOf(ctx, er.req.Scope.Agent, true); err != nil { // it says that something was erased, see everErased
			return Receipt{}, err
		}
		if err := er.empty(ctx); err != nil {
			return Receipt{}, err
		}
		if err := er.cleanViews(ctx); err != nil {
			return Receipt{}, err
		}
		if err := er.emptyReplaced(ctx); err != nil {
			return Receipt{}, err
		}
		if er.req.Purge {
			if err := er.purge(ctx); err != nil {
				return Receipt{}, err
			}
		}
		er.scrub(ctx)
	}
	return er.rec, er.keepReceipt(ctx)
}

// collect finds the entries to erase.
func (er *erasure) collect(ctx context.Context) error {
	if len(er.req.Entries) > 0 {
		got, err := er.e.store.Get(ctx, er.req.Scope, er.req.Entries)
		if err != nil {
			return err
		}
		for _, entry := range got {
			if core.Reserved(entry.Session) {
				return fmt.Errorf("entries: %q is one of the engine's own records, which go with what they are about: %w", entry.ID, core.ErrInvalid)
			}
		}
		for _, entry := range got {
			if err := er.add(ctx, entry); err != nil {
				return err
			}
		}
		for id := range er.spans {
			newest, err := core.First(ctx, er.e.store, core.ScanQuery{Scope: id.Scope(), Reverse: true})
			if errors.Is(err, core.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			er.ends[id] = newest.Seq + 1
		}
		return nil
	}
	for entry, err := range core.All(ctx, er.e.store, er.req.Scope, false) {
		if err != nil {
			return err
		}
		er.ends[entry.SessionID()] = entry.Seq + 1
		if err := er.add(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

func (er *erasure) add(ctx context.Context, entry core.Entry) error {
	switch {
	case core.Reserved(entry.Session) || er.ids[entry.ID]:
		return nil
	case !er.req.From.IsZero() && entry.Time.Before(er.req.From), !er.req.To.IsZero() && !entry.Time.Before(er.req.To):
		return nil
	case entry.Type == core.TypeErased && !er.req.Purge:
		if done, err := er.finished(ctx, entry.Meta[erased.MetaErased]); done || err != nil {
			return err
		}
	}
	// What is to be forgotten is not kept here, but for what the host knows it by.
	entry.Message = erased.Named(&entry.Message)
	er.ids[entry.ID] = true
	er.spans[entry.SessionID()] = append(er.spans[entry.SessionID()], entry)
	return nil
}

// finished reports whether an erasure left its receipt: what one that failed halfway emptied may still be in summaries, views and indexes. Without one it is what
// emptyLate left, which no view ever showed.
func (er *erasure) finished(ctx context.Context, receipt string) (bool, error) {
	if receipt == "" {
		return true, nil
	}
	if er.receipts == nil {
		er.receipts = make(map[string]bool)
		got, err := er.e.receipts(ctx, er.req.Scope.Agent)
		if err != nil {
			return false, err
		}
		for _, r := range got {
			er.receipts[r.ID] = true
		}
	}
	return er.receipts[receipt], nil
}

// collectSummaries finds the summaries that stand for an erased entry. A summary that does not say what it stands for counts when it is
// younger than one of them.
func (er *erasure) collectSummaries(ctx context.Context) error {
	er.summaries = make(map[string]bool)
	if err := er.eachHolder(ctx, make(map[core.SessionID]bool), func(core.View) error { return nil }); err != nil {
		return err
	}
	return er.eachSummary(ctx, func(entry core.Entry) error {
		er.summaries[entry.ID] = true
		if !er.ids[entry.ID] {
			entry.Message = message.Message{}
			er.ids[entry.ID] = true
			er.spans[entry.SessionID()] = append(er.spans[entry.SessionID()], entry)
		}
		return nil
	})
}

// eachSummary visits the stored summaries that have to go and are not known to.
func (er *erasure) eachSummary(ctx context.Context, visit func(core.Entry) error) error {
	for agent := range er.agents {
		for entry, err := range core.AllOf(ctx, er.e.store, core.Scope{Agent: agent}, core.TypeSummary) {
			if err != nil {
				return err
			}
			if entry.Type == core.TypeSummary && !er.summaries[entry.ID] && er.covers(entry) {
				if err := visit(entry); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (er *erasure) covers(sum core.Entry) bool {
	if er.ids[sum.ID] {
		return true
	}
	if of := spansOf(sum); of != nil {
		return er.standsFor(of)
	}
	return slices.ContainsFunc(er.spans[sum.SessionID()], func(entry core.Entry) bool { return entry.Seq < sum.Seq })
}

// called returns by what a session's host knows entries that it called otherwise when they came: its transcript has them under that name.
func (er *erasure) called(ctx context.Context, id core.SessionID) (map[string][]core.Called, error) {
	v, err := er.e.views.LoadView(ctx, id)
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return nil, err
	}
	out := make(map[string][]core.Called, len(v.Called))
	for _, c := range v.Called {
		out[c.Entry] = append(out[c.Entry], c)
	}
	return out, nil
}

// empty turns the entries into empty places. Summaries leave one too: whoever stores something on a view of before would get their position, and what it stored be seen
// by nobody whose view is past it. Indexes and retrievers with a memory are told.
func (er *erasure) empty(ctx context.Context) error {
	for id, entries := range er.spans {
		scope := id.Scope()
		_, atOnce := er.eraser(id)
		var gone, all []string
		called, err := er.called(ctx, id)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			all = append(all, entry.ID)
			if atOnce {
				if entry.Type == core.TypeSummary {
					er.rec.Summaries++
				} else if entry.Type != core.TypeErased {
					er.rec.Entries++
				}
				continue
			}
			summary := entry.Type == core.TypeSummary
			if summary {
				er.rec.Summaries++
			}
			if summary && er.purges(id) {
				gone = append(gone, entry.ID)
				continue
			}
			if entry.Type == core.TypeErased && er.req.Purge {
				continue // its place goes, too
			}
			if _, err := er.e.erasures.empty(ctx, entry, er.rec.ID, called[entry.ID]...); err != nil && !errors.Is(err, core.ErrNotFound) {
				return err
			}
			if !summary {
				er.rec.Entries++
			}
		}
		if len(gone) > 0 {
			if _, err := er.e.store.Delete(ctx, scope, gone); err != nil {
				return err
			}
		}
		er.rec.Sessions++
		er.e.observe(ctx, func(ctx context.Context, o core.Observer) error { return o.Deleted(ctx, scope, slices.Clone(all)) }, len(all))
	}
	return nil
}

// purges reports whether nothing is to be left of a session.
func (er *erasure) purges(id core.SessionID) bool { return er.req.Purge && er.req.Scope.Contains(id) }

// eraser returns the store if it erases the session as a whole, and that is what is asked for.
func (er *erasure) eraser(id core.SessionID) (core.SessionEraser, bool) {
	if !er.purges(id) {
		return nil, false
	}
	return core.As[core.SessionEraser](er.e.store)
}

// purge removes the empty places, and the views.
func (er *erasure) purge(ctx context.Context) error {
	for id, entries := range er.spans {
		if !er.purges(id) {
			continue // its summaries are gone
		}
		ids := make([]string, len(entries))
		for i := range entries {
			ids[i] = entries[i].ID
		}
		if eraser, ok := er.eraser(id); ok {
			if err := eraser.EraseSession(ctx, id); err != nil {
				return err
			}
			ids = nil
			for entry, err := range core.All(ctx, er.e.store, id.Scope(), false) { // what was written in another way
				if err != nil {
					return err
				}
				ids = append(ids, entry.ID)
			}
			if len(ids) == 0 {
				continue
			}
		}
		if _, err := er.e.store.Delete(ctx, id.Scope(), ids); err != nil {
			return err
		}
	}
	var views []core.SessionID
	err := er.eachView(ctx, nil, func(v core.View) error {
		if er.req.Scope.Contains(v.Session) {
			views = append(views, v.Session)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range views {
		if err := er.drop(ctx, id); err != nil {
			return err
		}
	}
	return er.cleanHolders(ctx) // forks that were made of what was left
}

// drop removes the view of a session, in the store and in memory.
func (er *erasure) drop(ctx context.Context, id core.SessionID) error {
	return er.e.retry(ctx, id, func(s *session) error {
		er.heirs = append(er.heirs, s.view.Heirs...)
		s.purge()
		return er.e.views.DeleteView(ctx, id)
	})
}

// scrub asks every part to leave no trace, and a store that delivers elsewhere to do so now.
func (er *erasure) scrub(ctx context.Context) {
	left := func(part string, err error) {
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			er.rec.Left = append(er.rec.Left, part+": "+err.Error())
		}
	}
	if d, ok := core.As[upkeep.Drainer](er.e.store); ok {
		ctx, cancel := context.WithTimeout(ctx, drainTime)
		n, err := d.Drain(ctx)
		cancel()
		er.rec.Undelivered = n
		if n > 0 {
			left("remote store", err)
		}
	}
	if s, ok := core.As[upkeep.Scrubber](er.e.store); ok {
		left("store", s.Scrub(ctx))
	}
	for _, o := range er.e.observers {
		if s, ok := o.(upkeep.Scrubber); ok {
			left(fmt.Sprintf("%T", o), s.Scrub(ctx))
		}
	}
}

func (er *erasure) keepReceipt(ctx context.Context) error {
	body, err := exact.Text(er.rec)
	if err != nil {
		return err
	}
	m := message.New(message.System, "")
	_, err = er.e.record(ctx, core.Entry{
		ID: er.rec.ID, Agent: er.req.Scope.Agent, Session: records.Receipts, Role: m.Role, Type: core.TypeErased, Time: er.rec.Time,
		Key: "r:" + er.rec.ID, Fingerprint: message.Fingerprint(m), Message: m,
		Meta: map[string]string{metaReceipt: body},
	})
	return err
}

// concerned reports whether something was erased from a view's session, or from one that it showed entries of: what comes in is compared with that.
func (er *erasure) concerned(v *core.View) bool {
	return len(er.spans[v.Session]) > 0 || slices.ContainsFunc(v.Inherited, func(sp core.Span) bool { return len(er.spans[*sp.Session]) > 0 })
}

// touched reports whether a view shows something of what is erased.
func (er *erasure) touched(v *core.View) bool {
	for _, r := range recallsOf(v) {
		if slices.ContainsFunc(r.Items, func(it core.RecallItem) bool { return er.ids[it.ID] }) {
			return true
		}
	}
	for id := range v.Stubs {
		if er.ids[id] {
			return true
		}
	}
	for _, sum := range v.Summaries {
		if er.summaries[sum.ID] {
			return true
		}
	}
	if v.Shown != nil && slices.ContainsFunc(v.Shown.Summaries, func(s core.Summary) bool { return er.summaries[s.ID] }) {
		return true
	}
	for _, sp := range v.Path {
		for _, entry := range er.spans[*sp.Owned(v.Session).Session] {
			if entry.Seq >= sp.From && entry.Seq < sp.To {
				return true
			}
		}
	}
	return false
}
