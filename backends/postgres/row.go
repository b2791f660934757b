package postgres

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/packed"
)

// row is an entry as the table has it, without its agent.
type row struct {
	session, id  []byte
	n, seq, turn int64
	role, kind   string
	time         time.Time
	nanos        int16
	tokens       int64
	key, meta    []byte
	body         []byte
	raw          int64
	text         string
}

// scan reads columns and, in front of them, what else the query selects.
func (r *row) scan(from pgx.Row, first ...any) error {
	return from.Scan(append(first, &r.session, &r.id, &r.n, &r.seq, &r.turn, &r.role, &r.kind, &r.time, &r.nanos, &r.tokens, &r.key, &r.meta, &r.body)...)
}

// microsecond is what the column of the time holds; what is below goes into a column of its own.
const microsecond = int64(time.Microsecond)

// makeRow encodes an entry.
func makeRow(e *core.Entry) row {
	t := e.Time.UTC()
	return row{
		session: []byte(e.Session), id: []byte(e.ID), seq: e.Seq, turn: e.Turn, role: string(e.Role), kind: string(e.Type),
		time: t.Truncate(time.Microsecond), nanos: int16(int64(t.Nanosecond()) % microsecond), tokens: int64(e.Tokens), key: []byte(e.Key),
		meta: packMeta(e.Meta), body: packBody(e), raw: int64(len(e.Message.Raw)), text: searchText(e),
	}
}

// entry decodes a row.
func (r *row) entry(agent string) (core.Entry, error) {
	meta, err := packed.ReadMeta(r.meta)
	if err != nil {
		return core.Entry{}, damaged("entry %q: metadata: %v", r.id, err)
	}
	e := core.Entry{
		ID: string(r.id), Agent: agent, Session: string(r.session), Seq: r.seq, Turn: r.turn, Role: message.Role(r.role), Type: core.EntryType(r.kind),
		Time: r.time.Add(time.Duration(r.nanos)).UTC(), Tokens: int(r.tokens), Key: string(r.key), Meta: meta,
	}
	if err := unpackBody(&e, r.body); err != nil {
		return core.Entry{}, damaged("entry %q: %v", r.id, err)
	}
	return e, nil
}

// The times that a column can hold, by year.
const (
	minYear = -4000
	maxYear = 290000
)

// complete returns core.ErrInvalid for an entry that cannot be stored.
func complete(e *core.Entry) error {
	if err := e.Check("postgres: append"); err != nil {
		return err
	}
	invalid := func(field, remedy string) error {
		return fmt.Errorf("postgres: append %q: %s: %s: %w", e.ID, field, remedy, core.ErrInvalid)
	}
	plain := func(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
	switch {
	case len(e.ID) > maxName || len(e.Key) > maxName || len(e.Agent) > maxName || len(e.Session) > maxName:
		return invalid("id, key, agent or session", fmt.Sprintf("is longer than %d bytes, which the server's indexes cannot hold", maxName))
	case !plain(string(e.Role)):
		return invalid("role", "is no text")
	case !plain(string(e.Type)):
		return invalid("type", "is no text")
	case e.Time.Year() < minYear || e.Time.Year() > maxYear:
		return invalid("time", "is out of the range of the server")
	}
	return nil
}

// maxName bounds names in bytes: an index row, which holds three of them, has at most 2704.
const maxName = 800
