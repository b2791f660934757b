package outbox

import (
	"cmp"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
)

// insert puts a change in its place, which is nearly always the end.
func (q *queue) insert(id core.SessionID, it item) {
	l := q.lanes[id]
	if l == nil {
		l = &lane{session: id}
		q.lanes[id] = l
		q.ring = append(q.ring, l)
	}
	at, there := slices.BinarySearchFunc(l.items, it.seq, func(a item, seq uint64) int { return cmp.Compare(a.seq, seq) })
	if there {
		return
	}
	l.items = slices.Insert(l.items, at, it)
	q.waiting++
	q.bytes += it.size
}

// remove takes changes out of a lane and returns them.
func (q *queue) remove(id core.SessionID, seqs []uint64) []item {
	l := q.lanes[id]
	if l == nil {
		return nil
	}
	// Mostly they are the first ones.
	n := 0
	for n < min(len(seqs), len(l.items)) && l.items[n].seq == seqs[n] {
		n++
	}
	out := slices.Clone(l.items[:n])
	l.items = l.items[n:]
	if n < len(seqs) {
		gone := make(map[uint64]bool, len(seqs)-n)
		for _, s := range seqs[n:] {
			gone[s] = true
		}
		l.items = slices.DeleteFunc(l.items, func(it item) bool {
			if gone[it.seq] {
				out = append(out, it)
			}
			return gone[it.seq]
		})
	}
	for _, it := range out {
		q.waiting--
		q.bytes -= it.size
		delete(l.tries, it.seq)
	}
	if len(l.items) == 0 {
		delete(q.lanes, id)
	}
	return out
}

// overtake forgets changes of an entry that were set aside before a later one was delivered: the remote is as it should be. An append says
// little about that: where the remote has the key, it stays as it was.
func (q *queue) overtake(id core.SessionID, it item) {
	for _, d := range q.dead {
		if d.session == id && d.id == it.id && d.seq < it.seq && (it.op != opAppend || d.op == opAppend) {
			q.bury(d)
		}
	}
}

func (q *queue) bury(d *dead) {
	delete(q.dead, d.seq)
	q.deadBytes -= d.size
}

// before is the number of changes that wait and have a number below end.
func (q *queue) before(end uint64) int {
	n := 0
	for _, l := range q.lanes {
		at, _ := slices.BinarySearchFunc(l.items, end, func(a item, seq uint64) int { return cmp.Compare(a.seq, seq) })
		n += at
	}
	return n
}

// deadBefore is the number of changes that were set aside and have a number below end.
func (q *queue) deadBefore(end uint64) int {
	n := 0
	for seq := range q.dead {
		if seq < end {
			n++
		}
	}
	return n
}

// size is the number of changes that wait or were set aside.
func (q *queue) size() int { return q.waiting + len(q.dead) }

// oldest returns when the oldest waiting change was made, in Unix milliseconds; 0 when none waits.
func (q *queue) oldest() int64 {
	var out int64
	for _, l := range q.lanes {
		if at := l.items[0].at; out == 0 || at < out {
			out = at
		}
	}
	return out
}

// due returns the lane to try now or, when there is none, how long that is from now; negative means that nothing waits.
func (q *queue) due(now time.Time) (*lane, time.Duration) {
	wait := time.Duration(-1)
	for i := 0; i < len(q.ring); {
		l := q.ring[i]
		if q.lanes[l.session] != l {
			q.ring = slices.Delete(q.ring, i, i+1)
			continue
		}
		left := l.next.Sub(now)
		if left <= 0 {
			// To the end of the ring, so that every session gets its turn.
			q.ring = append(slices.Delete(q.ring, i, i+1), l)
			return l, 0
		}
		if wait < 0 || left < wait {
			wait = left
		}
		i++
	}
	return nil, wait
}

// later reports whether another change of the same entry waits behind one, or was set aside.
func (q *queue) later(id core.SessionID, it item) bool {
	for _, d := range q.dead {
		if d.session == id && d.id == it.id && d.seq > it.seq {
			return true
		}
	}
	l := q.lanes[id]
	return l != nil && slices.ContainsFunc(l.items, func(o item) bool { return o.id == it.id && o.seq > it.seq })
}

// pending returns the ids of all changes of a session, or of an agent, that wait or were set aside.
func (q *queue) pending(scope core.Scope) map[string]bool {
	out := map[string]bool{}
	for id, l := range q.lanes {
		if scope.Contains(id) || id.Session == "" && id.Agent == scope.Agent {
			for _, it := range l.items {
				out[it.id] = true
			}
		}
	}
	for _, d := range q.dead {
		if scope.Contains(d.session) || d.session.Session == "" && d.session.Agent == scope.Agent {
			out[d.id] = true
		}
	}
	return out
}

// remoteID returns under which id the remote has an entry.
func (q *queue) remoteID(id string) string { return cmp.Or(q.aliases[id].remote, id) }

// localID is the other direction.
func (q *queue) localID(id string) string { return cmp.Or(q.locals[id], id) }
