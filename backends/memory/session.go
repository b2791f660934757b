package memory

import (
	"cmp"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// record is a stored entry and its place. entry is replaced as a whole by Update; the rest never changes.
type record struct {
	entry   *core.Entry
	seq     int64
	order   uint64
	session *session
}

// entryKey is what appends are idempotent by.
type entryKey struct {
	session core.SessionID
	key     string
}

func keyOf(e *core.Entry) entryKey { return entryKey{session: e.SessionID(), key: e.Key} }

// agent holds the sessions of one agent in the order in which they first got an entry.
type agent struct {
	byName   map[string]*session
	sessions []*session
	next     uint64
}

// session holds the entries of one session. Its number never comes back, even when a session of the same name does.
type session struct {
	name   string
	number uint64
	run    run
	keys   map[string]*record
}

// session returns the session of that name, a new one if there is none.
func (a *agent) session(name string) *session {
	if s := a.byName[name]; s != nil {
		return s
	}
	a.next++
	s := &session{name: name, number: a.next, keys: make(map[string]*record)}
	a.byName[name] = s
	a.sessions = append(a.sessions, s)
	return s
}

// drop forgets an empty session.
func (a *agent) drop(s *session) {
	delete(a.byName, s.name)
	if i, ok := a.index(s.number); ok {
		a.sessions = slices.Delete(a.sessions, i, i+1)
	}
}

// index returns where the session with this number is, or where it would be.
func (a *agent) index(number uint64) (int, bool) {
	return slices.BinarySearchFunc(a.sessions, number, func(s *session, n uint64) int {
		return cmp.Compare(s.number, n)
	})
}
