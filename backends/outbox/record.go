package outbox

import (
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/packed"
)

// kind says what a record of the journal is about.
type kind byte

const (
	// kindHeader begins a journal.
	kindHeader kind = 'h'
	// kindTouch names entries that are about to change.
	kindTouch kind = 't'
	// kindVoid takes changes back that the local store refused.
	kindVoid kind = 'v'
	// kindDone names changes that were delivered.
	kindDone kind = 'd'
	// kindDead sets a change aside, kindRetry takes it up again.
	kindDead  kind = 'x'
	kindRetry kind = 'r'
	// kindAlias names the id under which the remote has an entry.
	kindAlias kind = 'l'
	// kindCopied tells how far the remote's history was copied.
	kindCopied kind = 'c'
	// kindBare counts the messages that were copied with their text alone.
	kindBare kind = 'b'
)

// op is what happened to an entry.
type op byte

const (
	opAppend op = 'a'
	opUpdate op = 'u'
	opDelete op = 'd'
)

func (o op) String() string {
	switch o {
	case opAppend:
		return "append"
	case opUpdate:
		return "update"
	case opDelete:
		return "delete"
	}
	return "unknown"
}

// version is that of the journal's format.
const version = 1

// record is one statement of the journal. Which fields mean something follows from its kind.
type record struct {
	kind    kind
	session core.SessionID
	// changes are those of a touch, in order.
	op      op
	at      int64 // Unix milliseconds: of a touch, and of a dead
	changes []change
	// seqs names changes.
	seqs []uint64
	// next, delivered and missing are the header's; the latter two are added up by kindDone. bare is added up by kindBare.
	next, delivered, missing uint64
	bare                     uint64
	attempts                 uint64
	reason                   string
	// detail belongs to a dead, and stays in memory: the journal holds no text of others.
	detail string
	// id and remote are the two names of an alias; remote is empty when there is none any more.
	id, remote string
	cursor     string
	done       bool
}

// change is one entry's place in the queue.
type change struct {
	seq  uint64
	id   string
	size int64
}

// encode appends r to b.
func (r *record) encode(b []byte) []byte {
	p := packer{packed.Writer{B: append(b, byte(r.kind))}}
	switch r.kind {
	case kindHeader:
		p.Uint(version)
		p.Uint(r.next)
		p.Uint(r.delivered)
		p.Uint(r.missing)
	case kindTouch:
		p.session(r.session)
		p.B = append(p.B, byte(r.op))
		p.Uint(uint64(r.at))
		p.Uint(uint64(len(r.changes)))
		before := uint64(0)
		for _, c := range r.changes {
			p.Uint(c.seq - before)
			p.Str(c.id)
			p.Uint(uint64(c.size))
			before = c.seq
		}
	case kindVoid, kindRetry:
		p.session(r.session)
		p.seqs(r.seqs)
	case kindDone:
		p.session(r.session)
		p.seqs(r.seqs)
		p.Uint(r.delivered)
		p.Uint(r.missing)
	case kindDead:
		p.session(r.session)
		p.seqs(r.seqs)
		p.Uint(uint64(r.at))
		p.Uint(r.attempts)
		p.Str(r.reason)
	case kindAlias:
		p.session(r.session)
		p.Str(r.id)
		p.Str(r.remote)
	case kindCopied:
		p.session(r.session)
		p.Str(r.cursor)
		p.Bool(r.done)
	case kindBare:
		p.Uint(r.bare)
	}
	return p.B
}

// decodeRecords reads all records of a frame.
func decodeRecords(b []byte) ([]record, error) {
	var out []record
	u := unpacker{packed.Reader{B: b}}
	for len(u.B) > 0 {
		r := u.record()
		if u.Err != nil {
			return nil, u.Err
		}
		out = append(out, r)
	}
	return out, nil
}

func (u *unpacker) record() record {
	r := record{kind: kind(u.Byte())}
	switch r.kind {
	case kindHeader:
		if v := u.Uint(); v != version && u.Err == nil {
			u.Err = fmt.Errorf("it has version %d of the format, and this program reads version %d", v, version)
			return r
		}
		r.next, r.delivered, r.missing = u.Uint(), u.Uint(), u.Uint()
	case kindTouch:
		r.session, r.op, r.at = u.session(), op(u.Byte()), int64(u.Uint())
		if r.op != opAppend && r.op != opUpdate && r.op != opDelete {
			u.Fail()
		}
		before := uint64(0)
		for range u.Count() {
			c := change{seq: before + u.Uint(), id: u.Str(), size: int64(u.Uint())}
			before = c.seq
			r.changes = append(r.changes, c)
		}
	case kindVoid, kindRetry:
		r.session, r.seqs = u.session(), u.seqs()
	case kindDone:
		r.session, r.seqs, r.delivered, r.missing = u.session(), u.seqs(), u.Uint(), u.Uint()
	case kindDead:
		r.session, r.seqs, r.at, r.attempts, r.reason = u.session(), u.seqs(), int64(u.Uint()), u.Uint(), u.Str()
	case kindAlias:
		r.session, r.id, r.remote = u.session(), u.Str(), u.Str()
	case kindCopied:
		r.session, r.cursor, r.done = u.session(), u.Str(), u.Byte() == 1
	case kindBare:
		r.bare = u.Uint()
	default:
		u.Fail()
	}
	return r
}

// packer adds to packed.Writer what only the journal has.
type packer struct{ packed.Writer }

func (p *packer) session(id core.SessionID) {
	p.Str(id.Agent)
	p.Str(id.Session)
}

// seqs writes rising numbers as differences.
func (p *packer) seqs(seqs []uint64) {
	p.Uint(uint64(len(seqs)))
	before := uint64(0)
	for _, s := range seqs {
		p.Uint(s - before)
		before = s
	}
}

// unpacker reads what packer wrote.
type unpacker struct{ packed.Reader }

func (u *unpacker) session() core.SessionID {
	return core.SessionID{Agent: u.Str(), Session: u.Str()}
}

func (u *unpacker) seqs() []uint64 {
	n := u.Count()
	out := make([]uint64, 0, n)
	before := uint64(0)
	for range n {
		before += u.Uint()
		out = append(out, before)
	}
	return out
}
