package sqlite

import (
	"database/sql/driver"
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/packed"
)

// row is an entry as the table has it. Agent and session are in the table of scopes.
type row struct {
	n          int64
	id         storedID
	seq, turn  int64
	role, kind string
	milli      int64
	tokens     int64
	// key and fingerprint are as the columns have them, see shortKey and shortFingerprint.
	key, fingerprint any
	meta             []byte
	body             []byte
	sum              int64
	// scratch is what checksum packs into: who reads many rows into one row allocates it once.
	scratch []byte
}

// rowColumns are the columns that columns returns the places of, in its order.
const rowColumns = "e.n, e.id, e.seq, e.turn, e.role, e.type, e.time, e.tokens, e.key, e.fingerprint, e.meta, e.message, e.sum"

// columns returns where Scan puts rowColumns and, behind them, what else the query selects. It is good for any number of rows, one after the other.
func (r *row) columns(more ...any) []any {
	dest := make([]any, 0, 16)
	dest = append(dest, &r.n, &r.id, &r.seq, &r.turn, &r.role, &r.kind, &r.milli, &r.tokens, &r.key, &r.fingerprint, &r.meta, &r.body, &r.sum)
	return append(dest, more...)
}

// makeRow encodes an entry.
func (s *Store) makeRow(e *core.Entry) row {
	milli := e.Time.UnixMilli()
	// The column has milliseconds; the body begins with what is below them.
	body := packed.Writer{B: binary.AppendUvarint(nil, uint64(e.Time.Nanosecond()%int(time.Millisecond)))}
	body.B = append(body.B, packed.Message(&e.Message, packed.Home(e))...)
	r := row{
		id: storedID(e.ID), seq: e.Seq, turn: e.Turn, role: string(e.Role), kind: string(e.Type), milli: milli, tokens: int64(e.Tokens), key: shortKey(e.Key),
		fingerprint: shortFingerprint(e.Fingerprint), meta: packed.Meta(e.Meta), body: packed.Seal(body.B),
	}
	r.sum = r.checksum(e.SessionID(), e.Key, e.Fingerprint)
	return r
}

// entry decodes a row of a session, after it was compared with its checksum.
func (s *Store) entry(id core.SessionID, r *row) (core.Entry, error) {
	key, fingerprint := longKey(r.key), longFingerprint(r.fingerprint)
	if r.sum != r.checksum(id, key, fingerprint) {
		return core.Entry{}, s.damaged("entry %q does not match its checksum", r.id)
	}
	body, err := packed.Unseal(r.body)
	if err != nil {
		return core.Entry{}, s.damaged("entry %q: %v", r.id, err)
	}
	meta, err := packed.ReadMeta(r.meta)
	if err != nil {
		return core.Entry{}, s.damaged("entry %q: metadata: %v", r.id, err)
	}
	u := packed.Reader{B: body}
	nanos := u.Uint()
	e := core.Entry{
		ID: string(r.id), Agent: id.Agent, Session: id.Session, Seq: r.seq, Turn: r.turn, Role: message.Role(r.role), Type: core.EntryType(r.kind),
		Time: time.UnixMilli(r.milli).Add(time.Duration(nanos)).UTC(), Tokens: int(r.tokens), Key: key,
		Fingerprint: fingerprint, Meta: meta,
	}
	if e.Message, err = packed.ReadMessage(u.B, packed.Home(&e)); err != nil {
		return core.Entry{}, s.damaged("entry %q: %v", r.id, err)
	}
	return e, nil
}

// checksum covers every column and the session, so that a change of any of them shows. key and fingerprint are the entry's.
func (r *row) checksum(id core.SessionID, key, fingerprint string) int64 {
	table := crc32.MakeTable(crc32.Castagnoli)
	if r.scratch == nil {
		r.scratch = make([]byte, 0, 256)
	}
	p := packed.Writer{B: r.scratch[:0]}
	for _, f := range []string{id.Agent, id.Session, string(r.id), r.role, r.kind, key, fingerprint} {
		p.Str(f)
	}
	for _, n := range []int64{r.seq, r.turn, r.milli, r.tokens} {
		p.Int(n)
	}
	p.Bytes(r.meta)
	r.scratch = p.B
	return int64(crc32.Update(crc32.Checksum(p.B, table), table, r.body))
}

// args puts the values of the columns that Append writes behind others.
func (r *row) args(to []driver.Value) []driver.Value {
	return append(to, shortID(string(r.id)), r.seq, r.turn, r.role, r.kind, r.milli, r.tokens, r.key, r.fingerprint, nullable(r.meta), r.body, r.sum)
}

func nullable(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
