// Package places keeps which places of conversations say nothing any more: their messages were erased, or purged. A place that says nothing never says anything again, so
// of two looks at the same places the one that found more of them empty knows of more erasures.
package places

import (
	"slices"

	"github.com/contextengine/contextengine/core"
)

// Set is what was seen of some sessions. A nil one knows none. It is for one goroutine.
type Set map[core.SessionID]*session

// session is what was seen of one: the empty places, oldest first, and the position up to which it was read. What comes behind that says something, until it is seen.
type session struct {
	empty []run
	next  int64
}

type run struct{ from, to int64 }

// Begin forgets what is known of a session, whose entries are read from the first one on.
func (s Set) Begin(id core.SessionID) { s[id] = &session{} }

// Resume says that the entries of a session are read from a position on. What is not known stays so.
func (s Set) Resume(id core.SessionID, from int64) {
	if known := s[id]; known != nil {
		known.next = from
	}
}

// See notes the entry at a position, in order: what was passed over is gone.
func (s Set) See(id core.SessionID, seq int64, empty bool) {
	known := s[id]
	if known == nil {
		return
	}
	s.End(id, seq)
	if empty {
		known.add(seq, seq+1)
	}
	known.next = max(known.next, seq+1)
}

// End says that no entry comes any more in front of a position.
func (s Set) End(id core.SessionID, to int64) {
	if known := s[id]; known != nil && known.next < to {
		known.add(known.next, to)
		known.next = to
	}
}

// Add notes an empty place behind those that are known, wherever reading is.
func (s Set) Add(id core.SessionID, seq int64) {
	if known := s[id]; known != nil {
		known.add(seq, seq+1)
	}
}

func (k *session) add(from, to int64) {
	if n := len(k.empty); n > 0 && k.empty[n-1].to >= from {
		k.empty[n-1].to = max(k.empty[n-1].to, to)
		return
	}
	k.empty = append(k.empty, run{from, to})
}

// Count returns how many places in spans, which name their sessions, say nothing, as far as that is known.
func (s Set) Count(of []core.Span) int {
	n := 0
	for _, sp := range of {
		if known := s[*sp.Session]; known != nil {
			for _, r := range known.empty {
				n += int(max(min(r.to, sp.To)-max(r.from, sp.From), 0))
			}
		}
	}
	return n
}

// Unknown returns the sessions in spans of which nothing is known, and where the last of the spans ends.
func (s Set) Unknown(of []core.Span) map[core.SessionID]int64 {
	out := make(map[core.SessionID]int64)
	for _, sp := range of {
		if s[*sp.Session] == nil {
			out[*sp.Session] = max(out[*sp.Session], sp.To)
		}
	}
	return out
}

// Clone returns a copy that shares nothing with s.
func (s Set) Clone() Set {
	out := make(Set, len(s))
	for id, known := range s {
		out[id] = &session{slices.Clone(known.empty), known.next}
	}
	return out
}

// Changed reports whether an empty place was found, in the sessions that s knows, that was not known to be one before, or the other way round.
func (s Set) Changed(before Set) bool {
	for id, known := range s {
		was := before[id]
		if was == nil {
			was = &session{}
		}
		if !slices.Equal(known.empty, was.empty) {
			return true
		}
	}
	return false
}
