package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// Scan implements core.Store. Across sessions the order is that in which they first got an entry or a view. A cursor names
// the last entry that was returned and not an offset, so what happens between two pages neither skips nor repeats anything.
func (s *Store) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if err := q.Check("sqlite: scan"); err != nil {
		return core.Page{}, err
	}
	c := collector{s: s, q: q}
	if q.Cursor != "" {
		m, err := parseMark(q.Cursor, q.Reverse)
		if err != nil {
			return core.Page{}, err
		}
		c.from = &m
	}
	err := s.read(ctx, "scan", "", func(tx *sql.Tx) error { return c.collect(ctx, tx) })
	if err != nil {
		return core.Page{}, err
	}
	return core.Page{Entries: c.found, Next: c.next}, nil
}

// pageBytes is where a page ends though it holds fewer entries than were asked for: who asks for many does not know how large they are.
const pageBytes = 1 << 20

// held is about what an entry's message holds in memory, in bytes. Its row may be much smaller.
func held(e *core.Entry) int {
	n := len(e.Message.Raw)
	for i := range e.Message.Parts {
		p := &e.Message.Parts[i]
		n += len(p.Text) + len(p.Args) + len(p.Raw)
	}
	return n
}

// collector fills one page.
type collector struct {
	s     *Store
	q     core.ScanQuery
	from  *mark
	found []core.Entry
	bytes int // of found
	last  mark
	next  core.Cursor
}

func (c *collector) collect(ctx context.Context, tx *sql.Tx) error {
	if c.q.Scope.Session != "" {
		scope, name, err := c.scope(ctx, tx, c.s.r.scope, c.q.Scope.Session)
		if err == nil && scope == 0 {
			return c.s.counted(ctx, tx, c.s.r.sessions, c.q.Scope.Agent, c.q.Scope.Session)
		}
		if err != nil {
			return err
		}
		return c.session(ctx, tx, scope, name, c.from, c.q.FromSeq, c.q.ToSeq)
	}
	stmt, at, step := c.s.r.nextScope, int64(0), int64(1)
	if c.q.Reverse {
		stmt, at, step = c.s.r.lastScope, math.MaxInt64, -1
	}
	if c.from != nil {
		at = c.from.scope
	}
	for c.next == "" {
		scope, name, err := c.scope(ctx, tx, stmt, at)
		if err == nil && scope == 0 {
			return c.s.counted(ctx, tx, c.s.r.sessions, c.q.Scope.Agent, "")
		}
		if err != nil {
			return err
		}
		var from *mark
		if c.from != nil && c.from.scope == scope {
			from = c.from
		}
		if err := c.session(ctx, tx, scope, name, from, 0, 0); err != nil {
			return err
		}
		at = scope + step
	}
	return nil
}

// scope returns the number and name of a session, 0 when there is none.
func (c *collector) scope(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt, arg any) (scope int64, name string, err error) {
	err = c.s.scanned(tx.StmtContext(ctx, stmt).QueryRowContext(ctx, c.q.Scope.Agent, arg).Scan(&scope, &name))
	if errors.Is(err, core.ErrNotFound) {
		return 0, "", nil
	}
	return scope, name, err
}

// session collects from one session, and sets next when the page is full and there is more.
func (c *collector) session(ctx context.Context, tx *sql.Tx, scope int64, name string, from *mark, lo, hi int64) error {
	first, end := int64(math.MinInt64), int64(math.MaxInt64)
	if lo > 0 {
		first = lo
	}
	if hi > 0 {
		end = hi
	}
	seq, n := int64(math.MinInt64), int64(math.MinInt64)
	if c.q.Reverse {
		seq, n = math.MaxInt64, math.MaxInt64
	}
	if from != nil {
		seq, n = from.seq, from.n
	}
	stmt, counts := c.statements()
	args := []any{scope, first, end, seq, n}
	if c.q.Type != "" {
		args = append(args, string(c.q.Type))
	}
	// One more than there is room for shows whether there is a next page.
	rows, err := tx.StmtContext(ctx, stmt).QueryContext(ctx, append(args, c.q.Limit-len(c.found)+1)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	id := core.SessionID{Agent: c.q.Scope.Agent, Session: name}
	var r row
	dest := r.columns()
	for rows.Next() {
		if len(c.found) == c.q.Limit || c.bytes >= pageBytes {
			c.next = c.last.cursor(c.q.Reverse)
			break
		}
		if err := c.s.scanned(rows.Scan(dest...)); err != nil {
			return err
		}
		e, err := c.s.entry(id, &r)
		if err != nil {
			return err
		}
		c.found = append(c.found, e)
		c.bytes += len(r.meta) + held(&e)
		c.last = mark{scope: scope, seq: r.seq, n: r.n}
	}
	if err := rows.Err(); err != nil || c.next != "" || lo > 0 || hi > 0 {
		return err
	}
	return c.s.counted(ctx, tx, counts, scope)
}

// statements returns what reads a page of a session, and what counts the entries that are read when it is read to its end.
func (c *collector) statements() (page, counts *sql.Stmt) {
	r := &c.s.r
	forward, backward, counts := r.forward, r.backward, r.counts
	switch c.q.Type {
	case "":
	case core.TypeMessage:
		forward, backward = r.messages, r.messagesBack
	default:
		forward, backward, counts = r.special, r.specialBack, r.specials
	}
	if c.q.Reverse {
		return backward, counts
	}
	return forward, counts
}

// counted fails where the index that a scan goes by does not hold as much as another that holds the same: a damaged page of an index answers shorter, and SQLite
// does not notice. It comes at the end of a session that was read without bounds, and of a search for sessions, and reads no entry.
func (s *Store) counted(ctx context.Context, tx *sql.Tx, counts *sql.Stmt, of ...any) error {
	var found, there int64
	if err := s.scanned(tx.StmtContext(ctx, counts).QueryRowContext(ctx, of...).Scan(&found, &there)); err != nil {
		return err
	}
	if found != there {
		return s.damaged("an index finds %d of %d that are there; restore a copy, or repair the file with sqlite3's .recover", found, there)
	}
	return nil
}

// mark is the place of an entry within its agent.
type mark struct{ scope, seq, n int64 }

func direction(reverse bool) string {
	if reverse {
		return "r"
	}
	return "f"
}

func (m mark) cursor(reverse bool) core.Cursor {
	return core.Cursor(direction(reverse) + "." + strconv.FormatInt(m.scope, 36) + "." + strconv.FormatInt(m.seq, 36) + "." +
		strconv.FormatInt(m.n, 36))
}

func parseMark(c core.Cursor, reverse bool) (mark, error) {
	parts := strings.Split(string(c), ".")
	var m mark
	ok := len(parts) == 4 && parts[0] == direction(reverse)
	if ok {
		for i, to := range []*int64{&m.scope, &m.seq, &m.n} {
			v, err := strconv.ParseInt(parts[i+1], 36, 64)
			*to, ok = v, ok && err == nil
		}
	}
	if !ok {
		return mark{}, fmt.Errorf("sqlite: scan: the cursor is not one of this store for this direction: start again without one: %w", core.ErrInvalid)
	}
	return m, nil
}
