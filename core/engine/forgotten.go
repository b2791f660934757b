package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Forgotten tells which messages were erased from a session: what was erased stays erased there, whichever way it comes again. A message that says
// the same is taken for the erased one unless the host shows that it is another: by another key, id or time. A nil Forgotten holds nothing. It may be
// read by several goroutines.
type Forgotten struct{ sessions []forgottenIn }

// forgottenIn is what was erased from one session.
type forgottenIn struct {
	id     core.SessionID
	prints prints
	places map[string][]erasedPlace // by print
}

// erasedPlace is what an erased entry says of itself.
type erasedPlace struct{ receipt, origin string }

// ReadForgotten reads what was erased from a session. It walks the whole session.
func ReadForgotten(ctx context.Context, store core.Store, id core.SessionID) (*Forgotten, error) {
	in, err := forgottenFrom(ctx, store, id)
	if err != nil || len(in.places) == 0 {
		return nil, err
	}
	return &Forgotten{[]forgottenIn{in}}, nil
}

func forgottenFrom(ctx context.Context, store core.Store, id core.SessionID) (forgottenIn, error) {
	in := forgottenIn{id: id, places: make(map[string][]erasedPlace)}
	for entry, err := range core.All(ctx, store, id.Scope(), false) {
		if err != nil {
			return in, fmt.Errorf("core: what was erased from %q: %w", id, err)
		}
		if entry.Type == core.TypeErased && strings.HasPrefix(entry.Fingerprint, printMark) {
			in.places[entry.Fingerprint] = append(in.places[entry.Fingerprint], erasedPlace{entry.Meta[metaErased], entry.Meta[metaOrigin]})
		}
	}
	if len(in.places) == 0 {
		return in, nil
	}
	var err error
	in.prints, _, err = readPrints(ctx, store, id.Agent)
	return in, err
}

// Holds reports whether a message was erased.
func (f *Forgotten) Holds(m message.Message) bool {
	_, ok := f.find(&m, message.Fingerprint(m))
	return ok
}

// find returns the receipt of the erasure of a message.
func (f *Forgotten) find(m *message.Message, fingerprint string) (receipt string, ok bool) {
	if f == nil {
		return "", false
	}
	for _, in := range f.sessions {
		for _, print := range in.prints.all(in.id, fingerprint) {
			for _, place := range in.places[print] {
				if !in.prints.another(in.id, place.origin, m) {
					return place.receipt, true
				}
			}
		}
	}
	return "", false
}

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
func (e *Engine) forgotten(ctx context.Context, s *session, v *core.View) (*Forgotten, error) {
	at := erasedAt{v.Erased, s.mark, foreign(v)}
	if s.gone != nil && s.goneAt == at {
		return s.gone, nil
	}
	f := &Forgotten{}
	read := func(id core.SessionID) error {
		in, err := forgottenFrom(ctx, e.store, id)
		if err == nil && len(in.places) > 0 {
			f.sessions = append(f.sessions, in)
		}
		return err
	}
	if v.Erased > 0 {
		if err := read(s.id); err != nil {
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
			from, err := e.views.LoadView(ctx, *sp.Session)
			if errors.Is(err, core.ErrNotFound) || err == nil && from.Erased == 0 {
				continue
			}
			if err == nil {
				err = read(*sp.Session)
			}
			if err != nil {
				return nil, fmt.Errorf("core: what was erased from %q: %w", *sp.Session, err)
			}
		}
	}
	s.gone, s.goneAt = f, at
	return f, nil
}

// stayErased turns an entry about to be stored into an empty place when its message was erased before.
func (e *Engine) stayErased(ctx context.Context, f *Forgotten, entry core.Entry) (core.Entry, error) {
	receipt, ok := f.find(&entry.Message, entry.Fingerprint)
	if !ok {
		return entry, nil
	}
	p, err := e.printsOf(ctx, entry.Agent, true)
	if err != nil {
		return entry, err
	}
	id := entry.SessionID()
	entry.Meta = emptied(receipt, p.origin(id, &entry.Message))
	print := p.of(id, entry.Fingerprint)
	entry.Key = strings.ReplaceAll(entry.Key, entry.Fingerprint, print)
	entry.Type, entry.Fingerprint, entry.Tokens, entry.Message = core.TypeErased, print, 0, message.New(entry.Role, "")
	return entry, nil
}

// emptied is the metadata of an erased entry.
func emptied(receipt, origin string) map[string]string {
	meta := map[string]string{metaErased: receipt}
	if origin != "" {
		meta[metaOrigin] = origin
	}
	return meta
}

// printsOf returns what makes the prints of an agent's erased entries, with a key if asked for one.
func (e *Engine) printsOf(ctx context.Context, agent string, with bool) (prints, error) {
	e.mu.Lock()
	p := e.prints[agent]
	e.mu.Unlock()
	if len(p) > 0 {
		return p, nil
	}
	var err error
	if with {
		p, err = e.makePrints(ctx, agent)
	} else {
		p, _, err = readPrints(ctx, e.store, agent)
	}
	if err == nil && len(p) > 0 {
		e.mu.Lock()
		e.prints[agent] = p
		e.mu.Unlock()
	}
	return p, err
}

// recognise gives erased entries on a path the fingerprints of the host's messages that they were, so that these are not taken for new ones.
func (e *Engine) recognise(ctx context.Context, known []knownEntry, rows []row, messages []message.Message) error {
	owners := make(map[core.SessionID]map[string][]int)
	for i, k := range known {
		if !k.erased || !strings.HasPrefix(k.fp, printMark) {
			continue
		}
		if owners[k.owner] == nil {
			owners[k.owner] = make(map[string][]int)
		}
		owners[k.owner][k.fp] = append(owners[k.owner][k.fp], i)
	}
	for owner, places := range owners {
		p, err := e.printsOf(ctx, owner.Agent, false)
		if err != nil {
			return err
		}
		for _, r := range rows {
			for _, print := range p.all(owner, r.fp) {
				for _, i := range places[print] {
					if r.own || !p.another(owner, known[i].origin, &messages[r.index]) {
						known[i].fp, known[i].soft = r.fp, known[i].leads
					}
				}
			}
		}
	}
	return nil
}
