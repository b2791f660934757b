package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/internal/transcript"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// reader reads what a view names from the store.
type reader struct {
	store core.Store
	// tailer, if any, tells what other processes do to a session.
	tailer core.Tailer
	gauge  *gauge
	cfg    *Config
}

// promptBefore returns the user message that the window's first turn began with, when the window begins behind it; "" when a turn begins inside.
func (r *reader) promptBefore(ctx context.Context, v *core.View, start int) (string, error) {
	items, err := r.read(ctx, v, start, v.Len())
	if err != nil {
		return "", err
	}
	for i := range items {
		if asks(items[i].entry) {
			return "", nil
		}
	}
	first := v.Lead
	if len(v.Summaries) == 0 {
		first = max(first, v.Frontier) // what the host compacted is not in force any more
	}
	const page = 64
	for to := start; to > first && start-to < coldEntries*4; to -= page {
		from := max(to-page, first)
		if items, err = r.read(ctx, v, from, to); err != nil {
			return "", err
		}
		for _, it := range slices.Backward(items) {
			if asks(it.entry) {
				return it.entry.ID, nil
			}
		}
	}
	return "", nil
}

// groupStart moves a position back to the beginning of a group: to the assistant message whose results stand there, and over what
// is no message of the conversation, as far as a floor.
func (r *reader) groupStart(ctx context.Context, v *core.View, pos, floor int) (int, error) {
	for back := 0; pos > floor && back < coldEntries; back++ {
		items, err := r.read(ctx, v, pos, pos+1)
		if err != nil {
			return 0, err
		}
		if ent := items[0].entry; ent.Role != message.Tool && ent.Type == core.TypeMessage && !ent.Leads() {
			return pos, nil
		}
		pos--
	}
	return pos, nil
}

// scopesOf returns the scopes of the sessions that a view shows entries of, its own first.
func scopesOf(v *core.View) []core.Scope {
	scopes := []core.Scope{v.Session.Scope()}
	for _, sp := range v.Path {
		if sp.Session != nil && !slices.Contains(scopes, sp.Session.Scope()) {
			scopes = append(scopes, sp.Session.Scope())
		}
	}
	return scopes
}

// shortened returns the stubs of what a window shows: a view may have some of what was taken back, and comes back as it was if that does.
func (r *reader) shortened(ctx context.Context, v *core.View) (map[string]window.Stub, error) {
	ids, out := slices.Sorted(maps.Keys(v.Stubs)), make(map[string]window.Stub)
	held := make(map[string]core.Entry, len(ids))
	for _, scope := range scopesOf(v) {
		for some := range slices.Chunk(ids, core.MaxPage) {
			if err := r.there(ctx, scope, some, held, make(map[string]bool)); err != nil {
				return nil, err
			}
		}
	}
	for id, entry := range held {
		shown := v.Position(entry.SessionID(), entry.Seq) >= max(v.Start, v.Lead) || id == v.Pinned && v.Lean < leanUnpinned
		if shown && entry.Type == core.TypeMessage {
			out[id] = v.Stubs[id]
		}
	}
	return out, nil
}

// find reads an entry of the session, or of one that it shows entries of.
func (r *reader) find(ctx context.Context, v *core.View, id string) (core.Entry, error) {
	var err error
	for _, scope := range scopesOf(v) {
		var got []core.Entry
		if got, err = r.store.Get(ctx, scope, []string{id}); err == nil {
			return got[0], nil
		}
		if !errors.Is(err, core.ErrNotFound) {
			break // that it is not there is not known
		}
	}
	return core.Entry{}, err
}

// held reads what the store holds of entries that a part names, by id. Of those in untold a store that does not show all it holds cannot say.
func (r *reader) held(ctx context.Context, n int, named func(i int) *core.Entry) (held map[string]core.Entry, untold map[string]bool, err error) {
	ids := make(map[core.SessionID][]string)
	for i := range n {
		id := named(i).SessionID()
		ids[id] = append(ids[id], named(i).ID)
	}
	held, untold = make(map[string]core.Entry, n), make(map[string]bool)
	for id, list := range ids {
		for some := range slices.Chunk(list, core.MaxPage) {
			if err := r.there(ctx, id.Scope(), some, held, untold); err != nil {
				return nil, nil, err
			}
		}
	}
	return held, untold, nil
}

// there reads those of a scope's entries that are there.
func (r *reader) there(ctx context.Context, scope core.Scope, ids []string, into map[string]core.Entry, untold map[string]bool) error {
	got, err := r.store.Get(ctx, scope, ids)
	if half := len(ids) / 2; errors.Is(err, core.ErrNotFound) && half > 0 { // of some of them
		if err = r.there(ctx, scope, ids[:half], into, untold); err != nil {
			return err
		}
		return r.there(ctx, scope, ids[half:], into, untold)
	}
	for _, entry := range got {
		into[entry.ID] = entry
	}
	if errors.Is(err, core.ErrNotFound) {
		if errors.Is(err, errors.ErrUnsupported) {
			untold[ids[0]] = true
		}
		return nil
	}
	return err
}

// walkBack returns the position from which the path to its end costs at most tokens, or its beginning if all of it costs at most whole.
func (r *reader) walkBack(ctx context.Context, v *core.View, end, tokens, whole int) (int, error) {
	pos, start, over := end, end, max(whole-tokens, 0)
	spans := v.Slice(max(v.Lead, v.Frontier), end)
	for _, sp := range slices.Backward(spans) {
		owner := v.Session
		if sp.Session != nil {
			owner = *sp.Session
		}
		q := core.ScanQuery{Scope: owner.Scope(), FromSeq: sp.From, ToSeq: sp.To, Reverse: true, Limit: 200}
		for {
			page, err := r.store.Scan(ctx, q)
			if err != nil {
				return 0, fmt.Errorf("core: read session %q: %w", owner, err)
			}
			for _, entry := range page.Entries {
				if !inConversation(entry) {
					continue
				}
				if !entry.Hidden() {
					tokens -= r.cfg.bounded(entry.Tokens, v.Budget)
				}
				if tokens+over < 0 {
					return start, nil
				}
				pos--
				if tokens >= 0 {
					start = pos
				}
			}
			if page.Next == "" {
				break
			}
			q.Cursor = page.Next
		}
	}
	return pos, nil
}

// errMissing says that a view names entries that the store does not have: somebody purged the session since the view was read, or the store lost them.
var errMissing = fmt.Errorf("missing in the store: %w", core.ErrNotFound)

// read returns the items of the positions from <= pos < to.
func (r *reader) read(ctx context.Context, v *core.View, from, to int) ([]item, error) {
	if from >= to {
		return nil, nil
	}
	items := make([]item, 0, to-from)
	err := r.scanSpans(ctx, v, v.Slice(from, to), func(entry core.Entry) {
		items = append(items, r.gauge.item(entry, stubOf(v, entry.ID)))
	})
	if err != nil {
		return nil, err
	}
	if len(items) > to-from {
		return nil, tiedAt(v, from, to)
	}
	if len(items) != to-from {
		return nil, fmt.Errorf("core: session %q: %d of %d entries of the window are %w", v.Session, to-from-len(items), to-from, errMissing)
	}
	return items, nil
}

// readLead returns the items of the system messages in front.
func (r *reader) readLead(ctx context.Context, v *core.View) ([]item, error) {
	if len(v.Head) == 0 {
		return r.read(ctx, v, 0, min(v.Lead, v.Len()))
	}
	var out []item
	err := r.scanSpans(ctx, v, v.Head, func(entry core.Entry) {
		it := r.gauge.item(entry, nil)
		if !entry.Type.Hidden() {
			it.cost = entry.Tokens
		}
		out = append(out, it)
	})
	return out, err
}

// scanSpans reads the entries of several spans.
func (r *reader) scanSpans(ctx context.Context, v *core.View, spans []core.Span, visit func(core.Entry)) error {
	for _, sp := range spans {
		if err := r.scanSpan(ctx, v, sp, visit); err != nil {
			return err
		}
	}
	return nil
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

// pathEntries reads what reconciling needs of all entries on a path.
func (r *reader) pathEntries(ctx context.Context, v *core.View) ([]transcript.Known, error) {
	out := make([]transcript.Known, 0, v.Len())
	for _, sp := range v.Path {
		err := r.scanSpan(ctx, v, sp, func(entry core.Entry) {
			leads := len(out) < v.Lead || entry.Leads() || slices.ContainsFunc(v.Head, func(sp core.Span) bool { return sp.Holds(entry.SessionID(), entry.Seq) })
			out = append(out, transcript.Known{
				Owner: entry.SessionID(), Seq: entry.Seq, Fingerprint: entry.Fingerprint, Erased: entry.Type == core.TypeErased,
				Origin: entry.Meta[erased.MetaOrigin], Soft: entry.Type != core.TypeMessage || leads, Role: entry.Role, ID: entry.ID, Leads: leads,
				Stray: entry.Meta[transcript.MetaStray] != "", Key: entry.Key, Name: transcript.FullName(&entry.Message),
				Calls: transcript.CallIDs(&entry.Message),
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
		return nil, fmt.Errorf("core: session %q: %d of %d entries are %w", v.Session, v.Len()-len(out), v.Len(), errMissing)
	}
	return out, nil
}

// copied returns the answers in a session that say again what it inherited: its host handed over its own copies when the grant was over.
func (r *reader) copied(ctx context.Context, v *core.View) (map[string]bool, error) {
	said := make(map[string]int)
	for _, sp := range v.Inherited {
		if err := r.scanSpan(ctx, v, sp, func(entry core.Entry) {
			if entry.Role == message.Assistant {
				said[entry.Fingerprint]++
			}
		}); err != nil {
			return nil, err
		}
	}
	out := make(map[string]bool)
	if len(said) == 0 {
		return out, nil
	}
	for _, sp := range v.Path { // oldest first: the copies come before what the session itself adds
		if err := r.scanSpan(ctx, v, sp, func(entry core.Entry) {
			if answers(&entry, v.Session) && said[entry.Fingerprint] > 0 {
				said[entry.Fingerprint]--
				out[entry.ID] = true
			}
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// tail asks the store how far a session is, if it can tell.
func (r *reader) tail(ctx context.Context, id core.SessionID) (tail core.Tail, known bool, err error) {
	if r.tailer == nil {
		return tail, false, nil
	}
	tail, err = r.tailer.Tail(ctx, id)
	if errors.Is(err, errors.ErrUnsupported) {
		return core.Tail{}, false, nil
	}
	if err != nil {
		return core.Tail{}, false, fmt.Errorf("core: look at session %q: %w", id, err)
	}
	return tail, true, nil
}

// outOfSight finds which of a host's messages the store holds although it did not show them: the ids of their entries, by index. What stands in front is not
// looked for, it is few. The next position of v comes behind theirs.
func (r *reader) outOfSight(ctx context.Context, id core.SessionID, v *core.View, p transcript.Plan, messages []message.Message) (map[int]string, error) {
	knows, ok := core.As[core.Recogniser](r.store)
	n := len(messages)
	for _, l := range p.Leaders {
		if l.Host >= 0 {
			n--
		}
	}
	if !ok || n == 0 {
		return nil, nil
	}
	found, err := knows.Recognise(ctx, id, messages[:n])
	if err != nil {
		return nil, fmt.Errorf("core: reconcile %q: %w", id, err)
	}
	taken := make(map[string]bool)
	for _, k := range p.Known {
		taken[k.ID] = true
	}
	says := make(map[string][]core.Entry)
	for _, entry := range found {
		if inConversation(entry) && entry.SessionID() == id {
			says[entry.Fingerprint] = append(says[entry.Fingerprint], entry)
		}
	}
	there := make(map[int]string)
	for i, fp := range fingerprintsOf(messages[:n]) {
		for _, entry := range says[fp] {
			if !taken[entry.ID] && transcript.NameOf(&entry.Message).Same(transcript.NameOf(&messages[i])) {
				taken[entry.ID], there[i] = true, entry.ID
				v.Apply(edit.Count{Next: max(v.Next, entry.Seq+1), Turns: v.Turns})
				break
			}
		}
	}
	return there, nil
}

// carryPage is how many entries are read at once to find the messages that a turn may be given of what was before a reset, and carryFar how many at most: calls
// of tools and their results are among them.
const (
	carryPage = 256
	carryFar  = 20_000
)

// before reads the newest summary and the newest messages of what was in force before a reset, in this order, as far as they are still there.
func (r *reader) before(ctx context.Context, id core.SessionID, reset *core.Reset, most int) ([]core.Entry, error) {
	was := core.View{Path: reset.Path}
	var out, messages []core.Entry
	if reset.Summary != "" {
		got, err := r.store.Get(ctx, id.Scope(), []string{reset.Summary})
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return nil, err
		}
		out = append(out, got...)
	}
	for end := was.Len(); end > max(was.Len()-carryFar, 0) && len(messages) < most; end -= carryPage {
		var page []core.Entry
		err := r.scanSpans(ctx, &was, was.Slice(max(end-carryPage, 0), end), func(entry core.Entry) {
			if entry.Type == core.TypeMessage && (entry.Role == message.User || entry.Role == message.Assistant) && !entry.LookedUp() && !window.Blank(entry.Said()) {
				page = append(page, entry)
			}
		})
		if err != nil {
			return nil, err
		}
		slices.Reverse(page)
		messages = append(messages, page...)
	}
	return append(out, messages[:min(most, len(messages))]...), nil
}
