package erased

import (
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Messages tells which messages were erased from sessions: what was erased stays erased there, whichever way it comes again. A message that says
// the same is taken for the erased one unless the host shows that it is another: by another key, id or time, or as another call or the result of one. Nil Messages
// hold nothing. They may be read by several goroutines.
type Messages struct{ sessions []session }

// session is what was erased from one session.
type session struct {
	id     core.SessionID
	prints Prints
	places map[string][]place // by print
	copies bool               // see AddCopied
}

// place is what an erased entry says of itself.
type place struct{ receipt, origin string }

// Read reads what was erased from a session. It walks what is left of erased entries.
func Read(ctx context.Context, store core.Store, id core.SessionID) (*Messages, error) {
	var m Messages
	if err := m.Add(ctx, store, id); err != nil || len(m.sessions) == 0 {
		return nil, err
	}
	return &m, nil
}

// Add reads what was erased from one more session.
func (f *Messages) Add(ctx context.Context, store core.Store, id core.SessionID) error {
	return f.add(ctx, store, session{id: id})
}

// AddCopied reads what was erased from a session of whose messages a host has copies as a prompt showed them: ids of calls may be others there, and several results
// may stand in one message, which is erased with one of them.
func (f *Messages) AddCopied(ctx context.Context, store core.Store, id core.SessionID) error {
	return f.add(ctx, store, session{id: id, copies: true})
}

func (f *Messages) add(ctx context.Context, store core.Store, in session) error {
	id := in.id
	in.places = make(map[string][]place)
	for entry, err := range core.AllOf(ctx, store, id.Scope(), core.TypeErased) {
		if err != nil {
			return fmt.Errorf("core: what was erased from %q: %w", id, err)
		}
		if entry.Type == core.TypeErased && strings.HasPrefix(entry.Fingerprint, Mark) {
			in.places[entry.Fingerprint] = append(in.places[entry.Fingerprint], place{entry.Meta[MetaErased], entry.Meta[MetaOrigin]})
		}
	}
	if len(in.places) == 0 {
		return nil
	}
	var err error
	if in.prints, err = ReadPrints(ctx, store, id.Agent); err == nil {
		f.sessions = append(f.sessions, in)
	}
	return err
}

// Holds reports whether a message was erased.
func (f *Messages) Holds(m message.Message) bool {
	_, ok := f.Find(&m, message.Fingerprint(m))
	return ok
}

// Find returns the receipt of the erasure of a message, which has this fingerprint.
func (f *Messages) Find(m *message.Message, fingerprint string) (receipt string, ok bool) {
	if f == nil {
		return "", false
	}
	for i := range f.sessions {
		in := &f.sessions[i]
		if receipt, ok = in.find(m, fingerprint); ok {
			return receipt, true
		}
		parts := m.Results()
		if !in.copies || len(parts) < 2 {
			continue
		}
		for _, part := range parts {
			one := message.Message{Role: m.Role, Parts: []message.Part{part}}
			if receipt, ok = in.find(&one, message.Fingerprint(one)); ok {
				return receipt, true
			}
		}
	}
	return "", false
}

func (in *session) find(m *message.Message, fingerprint string) (receipt string, ok bool) {
	if in.copies {
		m = &message.Message{Key: m.Key, ID: m.ID, Time: m.Time}
	}
	for _, print := range in.prints.All(in.id, fingerprint) {
		for _, p := range in.places[print] {
			if !in.prints.Another(in.id, p.origin, m) {
				return p.receipt, true
			}
		}
	}
	return "", false
}
