package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/internal/records"
	"github.com/contextengine/contextengine/core/internal/transcript"
	"github.com/contextengine/contextengine/core/message"
)

// erasedAt tells states of a session apart between which something was erased: by what its view counts, by what the store does where that keeps no views,
// and by whether other sessions count too.
type erasedAt struct {
	view, store uint64
	foreign     bool
}

// foreign reports whether a view shows, or showed, entries of other sessions.
func foreign(v *core.View) bool {
	return len(v.Inherited) > 0 || slices.ContainsFunc(v.Path, func(sp core.Span) bool { return sp.Session != nil })
}

// forgotten returns what was erased from a session, and from those whose entries it shows or showed. It is read once as long as nothing is erased, where
// views say that there is any: whoever shares a session with others reads it anew all the time, and would read all of it each time.
func (s *session) forgotten(ctx context.Context, v *core.View) (*erased.Messages, error) {
	at := erasedAt{v.Erased, s.mark, foreign(v)}
	if s.gone != nil && s.goneAt == at {
		return s.gone, nil
	}
	f := &erased.Messages{}
	if v.Erased > 0 {
		if err := f.Add(ctx, s.e.store, s.id); err != nil {
			return nil, err
		}
	}
	seen := make(map[core.SessionID]bool)
	for _, spans := range [][]core.Span{v.Path, v.Inherited} {
		for _, sp := range spans {
			if sp.Session == nil || seen[*sp.Session] {
				continue
			}
			seen[*sp.Session] = true
			from, err := s.e.views.LoadView(ctx, *sp.Session)
			if errors.Is(err, core.ErrNotFound) || err == nil && from.Erased == 0 {
				continue
			}
			if err == nil {
				err = f.AddCopied(ctx, s.e.store, *sp.Session)
			}
			if err != nil {
				return nil, fmt.Errorf("core: what was erased from %q: %w", *sp.Session, err)
			}
		}
	}
	s.gone, s.goneAt = f, at
	return f, nil
}

// erasures knows what was erased, of every agent. It is safe for concurrent use.
type erasures struct {
	store  core.Store
	reader *reader
	newID  func() string
	now    func() time.Time

	mu sync.Mutex
	// prints are by agent, see printsOf.
	prints map[string]erased.Prints
}

// stayErased turns an entry about to be stored into an empty place when its message was erased before. Of names that the host makes anew, renames, the ids of calls tell more.
func (t *erasures) stayErased(ctx context.Context, f *erased.Messages, entry core.Entry, renames transcript.Kinds) (core.Entry, error) {
	m := &entry.Message
	if renames != 0 && !renames.Calls() && transcript.FullName(m).Calls != "" {
		m = renames.Unnamed(m)
	}
	receipt, ok := f.Find(m, entry.Fingerprint)
	if !ok {
		return entry, nil
	}
	return t.emptied(ctx, entry, receipt)
}

// emptied returns what is left of an entry, which the host called by other names since. Where its key holds its fingerprint, that goes too.
func (t *erasures) emptied(ctx context.Context, entry core.Entry, receipt string, called ...core.Called) (core.Entry, error) {
	p, err := t.printsOf(ctx, entry.Agent, true)
	if err != nil {
		return entry, err
	}
	id := entry.SessionID()
	origin := p.Origin(id, &entry.Message)
	for _, c := range called {
		origin = strings.TrimSpace(origin + " " + p.Origin(id, c.Message()))
	}
	entry.Meta = placeMeta(&entry, receipt, origin)
	print := p.Of(id, entry.Fingerprint)
	entry.Key = strings.ReplaceAll(entry.Key, entry.Fingerprint, print)
	entry.Type, entry.Fingerprint, entry.Tokens, entry.Message = core.TypeErased, print, 0, message.New(entry.Role, "")
	return entry, nil
}

// placeMeta is the metadata of what is left of an entry. What led when it was erased still leads, and is not taken for something that was said where it stands.
func placeMeta(entry *core.Entry, receipt, origin string) map[string]string {
	meta := erased.Meta(receipt, origin)
	if entry.Leads() {
		meta[records.Leads] = entry.Meta[records.Leads]
	}
	return meta
}

// empty turns a stored entry into an empty place, which it returns. One that is empty already says of another receipt.
func (t *erasures) empty(ctx context.Context, entry core.Entry, receipt string, called ...core.Called) (core.Entry, error) {
	var c core.Change
	if entry.Type == core.TypeErased {
		origin := entry.Meta[erased.MetaOrigin]
		for _, c := range called {
			origin = strings.TrimSpace(origin + " " + c.Origin)
		}
		entry.Meta = placeMeta(&entry, receipt, origin)
	} else {
		was := entry.Key
		var err error
		if entry, err = t.emptied(ctx, entry, receipt, called...); err != nil {
			return entry, err
		}
		c = core.Change{Message: &entry.Message, Type: entry.Type, Fingerprint: entry.Fingerprint}
		if entry.Key != was {
			c.Key = entry.Key
		}
	}
	c.Meta = entry.Meta
	scope := entry.SessionID().Scope()
	err := t.store.Update(ctx, scope, entry.ID, c)
	if errors.Is(err, core.ErrConflict) && c.Key != "" { // the message came again meanwhile and has an empty place already
		entry.Key = "x:" + entry.ID
		c.Key = entry.Key
		err = t.store.Update(ctx, scope, entry.ID, c)
	}
	return entry, err
}

// emptyErased turns a stored entry into an empty place when its message was erased before it was stored.
func (e *Engine) emptyErased(ctx context.Context, gone *erased.Messages, entry core.Entry) (core.Entry, error) {
	if entry.Type == core.TypeErased || !inConversation(entry) {
		return entry, nil
	}
	receipt, ok := gone.Find(&entry.Message, entry.Fingerprint)
	if !ok {
		return entry, nil
	}
	return e.emptyStored(ctx, entry, receipt)
}

// emptyStored turns a stored entry into an empty place, and tells the observers.
func (e *Engine) emptyStored(ctx context.Context, entry core.Entry, receipt string) (core.Entry, error) {
	entry, err := e.erasures.empty(ctx, entry, receipt)
	if err != nil {
		return entry, fmt.Errorf("core: session %q: what was erased came again: %w", entry.Session, err)
	}
	e.observe(ctx, func(ctx context.Context, o core.Observer) error {
		return o.Deleted(ctx, entry.SessionID().Scope(), []string{entry.ID})
	}, 1)
	return entry, nil
}

// emptyPlaces are the empty places of a session, by the keys that they have now, with the receipts of their erasures.
type emptyPlaces struct {
	prints   erased.Prints
	receipts map[string]string
}

// emptyRepeated notes empty places, of entries that come in their order, and turns one into such a place that has the key which an earlier one had before it was
// erased. The store gives a key once, so it was stored after that: its call is a repetition, and looked before the erasure. By what it says alone it cannot be told
// from a message that was said before another one was erased.
func (s *session) emptyRepeated(ctx context.Context, entry core.Entry) (core.Entry, error) {
	if entry.Type == core.TypeErased && strings.HasPrefix(entry.Fingerprint, erased.Mark) {
		if s.places == nil {
			p, err := s.e.erasures.printsOf(ctx, s.id.Agent, false)
			if err != nil {
				return entry, err
			}
			s.places = &emptyPlaces{prints: p, receipts: make(map[string]string)}
		}
		s.places.receipts[entry.Key] = entry.Meta[erased.MetaErased]
		return entry, nil
	}
	if s.places == nil || entry.Type == core.TypeErased || !inConversation(entry) {
		return entry, nil
	}
	for _, key := range s.places.prints.Keys(s.id, entry.Key, entry.Fingerprint) {
		if receipt, ok := s.places.receipts[key]; ok {
			return s.e.emptyStored(ctx, entry, receipt)
		}
	}
	return entry, nil
}

// printsOf returns what makes the prints of an agent's erased entries, with a key if asked for one.
func (t *erasures) printsOf(ctx context.Context, agent string, with bool) (erased.Prints, error) {
	t.mu.Lock()
	p := t.prints[agent]
	t.mu.Unlock()
	if len(p) > 0 {
		return p, nil
	}
	var err error
	if with {
		p, err = erased.MakePrints(ctx, t.store, agent, t.newID(), t.now())
	} else {
		p, err = erased.ReadPrints(ctx, t.store, agent)
	}
	if err == nil && len(p) > 0 {
		t.mu.Lock()
		t.prints[agent] = p
		t.mu.Unlock()
	}
	return p, err
}

// recognise gives erased entries on a path the fingerprints of the host's messages that they were, so that these are not taken for new ones. What says the same under another
// name is alike. renamed says that the host has other ids for some calls than they came with.
func (s *session) recognise(ctx context.Context, known []transcript.Known, in *transcript.Reading, messages []message.Message, renamed bool) error {
	owners := make(map[core.SessionID]map[string][]int)
	for i, k := range known {
		if !k.Erased || !strings.HasPrefix(k.Fingerprint, erased.Mark) {
			continue
		}
		if owners[k.Owner] == nil {
			owners[k.Owner] = make(map[string][]int)
		}
		owners[k.Owner][k.Fingerprint] = append(owners[k.Owner][k.Fingerprint], i)
	}
	if len(owners) == 0 {
		return nil
	}
	keeps, anew := in.Anew(known, s.listed, s.renames)
	live := make(map[string]bool)
	for i := range known {
		if k := &known[i]; !k.Erased {
			live[k.Fingerprint] = true
		}
	}
	alone := !slices.ContainsFunc(in.Rows, func(r transcript.Row) bool { return live[r.Fingerprint] })
	calls := idsOfCalls(known)
	renamed = renamed || calls.anew(known, in.Rows, messages)
	for owner, places := range owners {
		p, err := s.e.erasures.printsOf(ctx, owner.Agent, false)
		if err != nil {
			return err
		}
		for _, r := range in.Rows {
			m := &messages[r.Index]
			as := rowNames{row: r, name: transcript.FullName(m), keeps: keeps[m.Role] != 0, untold: anew[m.Role], alone: alone}
			if renamed && !calls[as.name.Calls] {
				as.untold |= transcript.OfCalls
			}
			for _, print := range p.All(owner, r.Fingerprint) {
				for _, i := range places[print] {
					if as.compare(&known[i], p, m, s.listed[known[i].ID]) {
						in.TellApart(r.Index)
					}
				}
			}
		}
	}
	for i := range known {
		if k := &known[i]; !strings.HasPrefix(k.Fingerprint, erased.Mark) {
			k.Alike = nil // it is there under its own name
		}
	}
	return nil
}

// rowNames are a row of a list and its name, and what the list says of such names: whether the host was seen to keep one, whether there is nothing in it that is known and was not erased, and
// the kinds that tell nothing.
type rowNames struct {
	row    transcript.Row
	name   transcript.Name
	keeps  bool
	alone  bool
	untold transcript.Kinds
}

// compare notes of an erased entry that a message says the same: it is that, or alike. It reports whether the host tells the two apart. was is the name that the last list had for the entry. Where a
// host was not seen to keep names, one id of a call tells more than another name.
func (a rowNames) compare(k *transcript.Known, p erased.Prints, m *message.Message, was transcript.Name) (apart bool) {
	of := p.Called(k.Owner, k.Origin, m)
	switch {
	case a.row.Own || !p.Another(k.Owner, k.Origin, m) || of.Parts != nil && !a.keeps:
		k.Fingerprint, k.Soft = a.row.Fingerprint, k.Leads
	case was.SameOwn(a.name): // the last list called it so
		k.Fingerprint, k.Soft, k.Name, k.Learnt = a.row.Fingerprint, k.Leads, a.name, true
		return false
	default:
		k.Alike = append(k.Alike, a.row.Index)
		if p.Another(k.Owner, k.Origin, a.untold.Unnamed(m)) {
			apart = a.keeps || a.alone && transcript.NameOf(m) != (transcript.Name{})
		} else {
			k.Anew |= a.untold
		}
	}
	if name := transcript.FullName(&of); !a.row.Own && name != (transcript.Name{}) {
		k.Name = name
	}
	return apart
}

// callIDs are the ids of calls, as names hold them.
type callIDs map[string]bool

// idsOfCalls returns those of what is known and was not erased: what they came with, and what the host has now.
func idsOfCalls(known []transcript.Known) callIDs {
	out := make(callIDs)
	for i := range known {
		if k := &known[i]; len(k.Calls) > 0 {
			out[k.Name.Calls], out[transcript.FullName(core.Called{Calls: k.Calls}.Message()).Calls] = true, true
		}
	}
	delete(out, "")
	return out
}

// anew reports whether a list says that the host has other ids now: where there are calls in it, and among what is known and was not erased, but it has none of their ids, or
// where it has those of one no more, and says the same under others.
func (c callIDs) anew(known []transcript.Known, rows []transcript.Row, messages []message.Message) bool {
	kept, shown, others := false, make(callIDs), make(map[string]bool)
	for _, r := range rows {
		of := transcript.FullName(&messages[r.Index]).Calls
		if shown[of] = true; of == "" {
			continue
		}
		if kept = kept || c[of]; !c[of] {
			others[r.Fingerprint] = true
		}
	}
	if len(others) == 0 {
		return false
	}
	for i := range known {
		if k := &known[i]; len(k.Calls) > 0 && !shown[k.Name.Calls] && !kept && others[k.Fingerprint] {
			return true
		}
	}
	return false
}

// everErased reports whether anything of an agent's was erased, by whichever process. Once it was, that stays so. Until then a store that several processes use is
// asked whether there is a key, in one cheap read; any other is asked once.
func (t *erasures) everErased(ctx context.Context, agent string) (bool, error) {
	t.mu.Lock()
	p, known := t.prints[agent]
	t.mu.Unlock()
	if len(p) > 0 {
		return true, nil
	}
	tail, tells, err := t.reader.tail(ctx, core.SessionID{Agent: agent, Session: records.Secrets})
	if err != nil || known && !tells || tells && tail.Next == 0 {
		return false, err
	}
	if p, err = erased.ReadPrints(ctx, t.store, agent); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.prints[agent]) == 0 {
		t.prints[agent] = p
	}
	return len(t.prints[agent]) > 0, nil
}

// begin is the position at which a session begins of which a store that keeps views knows nothing. It may have been purged, and a process that holds what was purged
// must not take it for that once it is as long: every erasure moves the beginning on.
func (t *erasures) begin(ctx context.Context, agent string) (int64, error) {
	tail, _, err := t.reader.tail(ctx, core.SessionID{Agent: agent, Session: records.Receipts})
	return tail.Next << 10, err
}

// wasErased reports whether an erased entry is what is left of a message. The places of entries that a store does not show are no such entries, and cost no read.
func (s *session) wasErased(ctx context.Context, old *core.Entry, m *message.Message, fingerprint string) (bool, error) {
	was, err := s.compareErased(ctx, old, m, fingerprint)
	return was.same, err
}

// likeness is what an erased entry has in common with a message: says the same, and is the same by what the host calls the two. called says that they share a name.
type likeness struct{ says, same, called bool }

// compareErased compares an erased entry with a message.
func (s *session) compareErased(ctx context.Context, old *core.Entry, m *message.Message, fingerprint string) (is likeness, err error) {
	if !strings.HasPrefix(old.Fingerprint, erased.Mark) {
		return is, nil
	}
	if s.renames != 0 {
		m = s.renames.Unnamed(m)
	}
	p, err := s.e.erasures.printsOf(ctx, old.Agent, false)
	id, origin := old.SessionID(), s.originOf(old.ID, old.Meta[erased.MetaOrigin])
	is.says = err == nil && p.Known(id, old.Fingerprint, fingerprint)
	if is.same = is.says && !p.Another(id, origin, m); is.same {
		name := p.Called(id, origin, m)
		is.called = transcript.FullName(&name) != (transcript.Name{})
	}
	return is, err
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
