package outbox

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
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
	p := packer{append(b, byte(r.kind))}
	switch r.kind {
	case kindHeader:
		p.uint(version)
		p.uint(r.next)
		p.uint(r.delivered)
		p.uint(r.missing)
	case kindTouch:
		p.session(r.session)
		p.b = append(p.b, byte(r.op))
		p.uint(uint64(r.at))
		p.uint(uint64(len(r.changes)))
		before := uint64(0)
		for _, c := range r.changes {
			p.uint(c.seq - before)
			p.str(c.id)
			p.uint(uint64(c.size))
			before = c.seq
		}
	case kindVoid, kindRetry:
		p.session(r.session)
		p.seqs(r.seqs)
	case kindDone:
		p.session(r.session)
		p.seqs(r.seqs)
		p.uint(r.delivered)
		p.uint(r.missing)
	case kindDead:
		p.session(r.session)
		p.seqs(r.seqs)
		p.uint(uint64(r.at))
		p.uint(r.attempts)
		p.str(r.reason)
	case kindAlias:
		p.session(r.session)
		p.str(r.id)
		p.str(r.remote)
	case kindCopied:
		p.session(r.session)
		p.str(r.cursor)
		p.b = append(p.b, 0)
		if r.done {
			p.b[len(p.b)-1] = 1
		}
	case kindBare:
		p.uint(r.bare)
	}
	return p.b
}

// errRecord is what decode finds in bytes that no encode made.
var errRecord = errors.New("a record cannot be read")

// decodeRecords reads all records of a frame.
func decodeRecords(b []byte) ([]record, error) {
	var out []record
	u := unpacker{b: b}
	for len(u.b) > 0 {
		r := u.record()
		if u.err != nil {
			return nil, u.err
		}
		out = append(out, r)
	}
	return out, nil
}

func (u *unpacker) record() record {
	r := record{kind: kind(u.byte())}
	switch r.kind {
	case kindHeader:
		if v := u.uint(); v != version && u.err == nil {
			u.err = fmt.Errorf("it has version %d of the format, and this program reads version %d", v, version)
			return r
		}
		r.next, r.delivered, r.missing = u.uint(), u.uint(), u.uint()
	case kindTouch:
		r.session, r.op, r.at = u.session(), op(u.byte()), int64(u.uint())
		if r.op != opAppend && r.op != opUpdate && r.op != opDelete {
			u.fail()
		}
		before := uint64(0)
		for range u.count() {
			c := change{seq: before + u.uint(), id: u.str(), size: int64(u.uint())}
			before = c.seq
			r.changes = append(r.changes, c)
		}
	case kindVoid, kindRetry:
		r.session, r.seqs = u.session(), u.seqs()
	case kindDone:
		r.session, r.seqs, r.delivered, r.missing = u.session(), u.seqs(), u.uint(), u.uint()
	case kindDead:
		r.session, r.seqs, r.at, r.attempts, r.reason = u.session(), u.seqs(), int64(u.uint()), u.uint(), u.str()
	case kindAlias:
		r.session, r.id, r.remote = u.session(), u.str(), u.str()
	case kindCopied:
		r.session, r.cursor, r.done = u.session(), u.str(), u.byte() == 1
	case kindBare:
		r.bare = u.uint()
	default:
		u.fail()
	}
	return r
}

// packer writes numbers as varints and texts behind their length.
type packer struct{ b []byte }

func (p *packer) uint(n uint64) { p.b = binary.AppendUvarint(p.b, n) }

func (p *packer) str(s string) {
	p.uint(uint64(len(s)))
	p.b = append(p.b, s...)
}

func (p *packer) session(id core.SessionID) {
	p.str(id.Agent)
	p.str(id.Session)
}

// seqs writes rising numbers as differences.
func (p *packer) seqs(seqs []uint64) {
	p.uint(uint64(len(seqs)))
	before := uint64(0)
	for _, s := range seqs {
		p.uint(s - before)
		before = s
	}
}

// unpacker reads what packer wrote. After the first error all it returns is zero.
type unpacker struct {
	b   []byte
	err error
}

func (u *unpacker) fail() {
	if u.err == nil {
		u.err = errRecord
	}
	u.b = nil
}

func (u *unpacker) byte() byte {
	if len(u.b) == 0 {
		u.fail()
		return 0
	}
	c := u.b[0]
	u.b = u.b[1:]
	return c
}

func (u *unpacker) uint() uint64 {
	n, size := binary.Uvarint(u.b)
	if size <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[size:]
	return n
}

// count reads a number of things that take at least a byte each.
func (u *unpacker) count() int {
	n := u.uint()
	if n > uint64(len(u.b)) {
		u.fail()
		return 0
	}
	return int(n)
}

func (u *unpacker) str() string {
	n := u.count()
	s := string(u.b[:n])
	u.b = u.b[n:]
	return s
}

func (u *unpacker) session() core.SessionID {
	return core.SessionID{Agent: u.str(), Session: u.str()}
}

func (u *unpacker) seqs() []uint64 {
	n := u.count()
	out := make([]uint64, 0, n)
	before := uint64(0)
	for range n {
		before += u.uint()
		out = append(out, before)
	}
	return out
}
