package erased

import (
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Messages tells which messages were erased from sessions: what was erased stays erased there, whichever way it comes again. A message that says
// the same is taken for the erased one unless the host shows that it is another: by another key, id or time. Nil Messages hold nothing. They may be
// read by several goroutines.
type Messages struct{ sessions []session }

// session is what was erased from one session.
type session struct {
	id     core.SessionID
	prints Prints
	places map[string][]place // by print
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
	in := session{id: id, places: make(map[string][]place)}
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
	for _, in := range f.sessions {
		for _, print := range in.prints.All(in.id, fingerprint) {
			for _, p := range in.places[print] {
				if !in.prints.Another(in.id, p.origin, m) {
					return p.receipt, true
				}
			}
		}
	}
	return "", false
}
