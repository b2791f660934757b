package outbox

import (
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
)

// queue is what the records of a journal amount to. Store.mu guards it.
type queue struct {
	// next is the number of the next change.
	next  uint64
	lanes map[core.SessionID]*lane
	// ring holds the lanes in the order in which they are tried, and some that are empty by now.
	ring []*lane
	dead map[uint64]*dead
	// waiting and bytes count what is in lanes, deadBytes what is in dead.
	waiting            int
	bytes, deadBytes   int64
	delivered, missing uint64
	// aliases maps local ids to the remote's, locals the other way round.
	aliases map[string]alias
	locals  map[string]string
	copied  map[string]*copied
	bare    uint64
	// watched collects the ids of changes while a page of the remote's history is under way; nil when none is.
	watched map[string]bool
	// sent counts the entries that were delivered, by whichever process, and lately holds the newest of them: a search of the remote that began before
	// cannot have found them.
	sent   uint64
	lately []delivery
}

// delivery is an entry that was delivered, and the how manyeth it was.
type delivery struct {
	session core.SessionID
	id      string
	number  uint64
}

// alias is the remote's name of an entry.
type alias struct {
	session core.SessionID
	remote  string
}

// lane holds the changes of one session that wait, in order. Changes of entries that the local store does not have are in a lane of
// their agent, without a session.
type lane struct {
	session core.SessionID
	items   []item

	// What follows is about the tries of this process: how many failed since the last success, when the next is due, and how many
	// changes the last one was about, 0 for as many as fit: a batch that is repeated whole can be recognised by the remote.
	fails int
	next  time.Time
	hold  int
	tries map[uint64]int
}

// item is a change that waits.
type item struct {
	change
	op op
	at int64
}

// dead is a change that was set aside.
type dead struct {
	item
	session  core.SessionID
	since    int64
	attempts int
	reason   string
	// detail is what the remote said, scrubbed; it is not kept over restarts.
	detail string
}

// copied is how much of an agent's remote history was copied.
type copied struct {
	cursor   core.Cursor
	done     bool
	sessions map[string]bool
}

func newQueue() *queue {
	return &queue{
		lanes: map[core.SessionID]*lane{}, dead: map[uint64]*dead{}, aliases: map[string]alias{}, locals: map[string]string{},
		copied: map[string]*copied{},
	}
}

// apply takes a record in. Records about changes that are not there any more change nothing.
func (q *queue) apply(r *record) {
	switch r.kind {
	case kindHeader:
		q.next, q.delivered, q.missing = r.next, r.delivered, r.missing
	case kindTouch:
		for _, c := range r.changes {
			q.insert(r.session, item{change: c, op: r.op, at: r.at})
			q.next = max(q.next, c.seq+1)
			if q.watched != nil {
				q.watched[c.id] = true
			}
		}
	case kindVoid:
		q.remove(r.session, r.seqs)
	case kindDone:
		q.delivered += r.delivered
		q.missing += r.missing
		for _, it := range q.remove(r.session, r.seqs) {
			q.noteSent(r.session, it)
			q.overtake(r.session, it)
		}
	case kindDead:
		for _, it := range q.remove(r.session, r.seqs) {
			q.dead[it.seq] = &dead{item: it, session: r.session, since: r.at, attempts: int(r.attempts), reason: r.reason, detail: r.detail}
			q.deadBytes += it.size
		}
	case kindRetry:
		for _, seq := range r.seqs {
			if d := q.dead[seq]; d != nil {
				q.bury(d)
				q.insert(d.session, d.item)
			}
		}
	case kindAlias:
		delete(q.locals, q.aliases[r.id].remote)
		delete(q.aliases, r.id)
		if r.remote != "" {
			q.aliases[r.id] = alias{r.session, r.remote}
			q.locals[r.remote] = r.id
		}
	case kindCopied:
		q.noteCopied(r)
	case kindBare:
		q.bare += r.bare
	}
}

func (q *queue) noteCopied(r *record) {
	c := q.copied[r.session.Agent]
	if c == nil {
		c = &copied{sessions: map[string]bool{}}
		q.copied[r.session.Agent] = c
	}
	switch {
	case r.session.Session != "":
		c.sessions[r.session.Session] = c.sessions[r.session.Session] || r.done
	case r.done:
		*c = copied{done: true}
	case !c.done:
		c.cursor = core.Cursor(r.cursor)
	}
}

// records returns what a new journal has to say.
func (q *queue) records() []record {
	out := []record{{kind: kindHeader, next: q.next, delivered: q.delivered, missing: q.missing}}
	touch := func(id core.SessionID, it item) {
		if last := &out[len(out)-1]; last.kind == kindTouch && last.session == id && last.op == it.op && last.at == it.at {
			last.changes = append(last.changes, it.change)
			return
		}
		out = append(out, record{kind: kindTouch, session: id, op: it.op, at: it.at, changes: []change{it.change}})
	}
	// Changes set aside first: taking them out of a long lane would take time.
	for _, seq := range slices.Sorted(maps.Keys(q.dead)) {
		d := q.dead[seq]
		touch(d.session, d.item)
		out = append(out, record{kind: kindDead, session: d.session, seqs: []uint64{seq}, at: d.since, attempts: uint64(d.attempts), reason: d.reason})
	}
	for _, id := range slices.SortedFunc(maps.Keys(q.lanes), core.SessionID.Compare) {
		for _, it := range q.lanes[id].items {
			touch(id, it)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(q.aliases)) {
		a := q.aliases[id]
		out = append(out, record{kind: kindAlias, session: a.session, id: id, remote: a.remote})
	}
	if q.bare > 0 {
		out = append(out, record{kind: kindBare, bare: q.bare})
	}
	for _, agent := range slices.Sorted(maps.Keys(q.copied)) {
		c := q.copied[agent]
		out = append(out, record{kind: kindCopied, session: core.SessionID{Agent: agent}, cursor: string(c.cursor), done: c.done})
		for _, name := range slices.Sorted(maps.Keys(c.sessions)) {
			out = append(out, record{kind: kindCopied, session: core.SessionID{Agent: agent, Session: name}, done: c.sessions[name]})
		}
	}
	return out
}

// noteSent remembers that a change was delivered.
func (q *queue) noteSent(session core.SessionID, it item) {
	if it.op == opDelete {
		return
	}
	q.lately = append(q.lately, delivery{session, it.id, q.sent})
	q.sent++
	if n := len(q.lately) - maxMatched; n > maxMatched {
		q.lately = slices.Clone(q.lately[n:])
	}
}

// inherit takes over what only this process knows from the queue as it was before the journal was read anew.
func (q *queue) inherit(old *queue) {
	q.watched, q.sent, q.lately = old.watched, old.sent, old.lately
	for id, o := range old.lanes {
		left := map[uint64]bool{}
		if l := q.lanes[id]; l != nil {
			for _, it := range l.items {
				left[it.seq] = true
			}
		}
		for _, it := range o.items {
			if !left[it.seq] {
				q.noteSent(id, it)
			}
		}
	}
	for id, l := range q.lanes {
		if o := old.lanes[id]; o != nil {
			l.fails, l.next, l.hold, l.tries = o.fails, o.next, o.hold, o.tries
		}
	}
	for seq, d := range q.dead {
		if o := old.dead[seq]; o != nil {
			d.detail = o.detail
		}
	}
}
