package postgres

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// Scan implements core.Store. Across sessions the order is that of their names. A cursor names the last entry that was returned and
// not an offset, so what happens between two pages neither skips nor repeats anything.
func (s *Store) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if err := q.Check("postgres: scan"); err != nil {
		return core.Page{}, err
	}
	var from *place
	if q.Cursor != "" {
		p, err := parsePlace(q.Cursor, q)
		if err != nil {
			return core.Page{}, err
		}
		from = &p
	}
	text, args := s.scanText(q, from)
	var page core.Page
	err := s.call(ctx, "scan", "", repeatable, func(ctx context.Context) error {
		page = core.Page{}
		rows, err := s.main.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		var last place
		for rows.Next() {
			if len(page.Entries) == q.Limit {
				page.Next = last.cursor(q.Reverse)
				break
			}
			var r row
			if err := r.scan(rows); err != nil {
				return err
			}
			e, err := r.entry(q.Scope.Agent)
			if err != nil {
				return err
			}
			page.Entries = append(page.Entries, e)
			last = place{session: e.Session, seq: r.seq, n: r.n}
		}
		rows.Close()
		return rows.Err()
	})
	if err != nil {
		return core.Page{}, err
	}
	return page, nil
}

// scanText returns the statement of one page. One entry more than there is room for shows whether there is a next page.
func (s *Store) scanText(q core.ScanQuery, from *place) (string, []any) {
	var b strings.Builder
	args := []any{[]byte(q.Scope.Agent)}
	arg := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	b.WriteString(s.sql.replace("SELECT " + columns + " FROM {s}.entries e WHERE e.agent = $1"))
	than, direction := ">", ""
	if q.Reverse {
		than, direction = "<", " DESC"
	}
	order := fmt.Sprintf(" ORDER BY e.seq%s, e.n%s", direction, direction)
	if q.Scope.Session == "" {
		order = fmt.Sprintf(" ORDER BY e.session%s, e.seq%s, e.n%s", direction, direction, direction)
		if from != nil {
			fmt.Fprintf(&b, " AND (e.session, e.seq, e.n) %s (%s::bytea, %s::bigint, %s::bigint)", than, arg([]byte(from.session)), arg(from.seq), arg(from.n))
		}
	} else {
		low, high := int64(math.MinInt64), int64(math.MaxInt64)
		if q.FromSeq > 0 {
			low = q.FromSeq
		}
		if q.ToSeq > 0 {
			high = q.ToSeq - 1
		}
		fmt.Fprintf(&b, " AND e.session = %s AND e.seq BETWEEN %s::bigint AND %s::bigint", arg([]byte(q.Scope.Session)), arg(low), arg(high))
		if from != nil {
			fmt.Fprintf(&b, " AND (e.seq, e.n) %s (%s::bigint, %s::bigint)", than, arg(from.seq), arg(from.n))
		}
	}
	if q.Type != "" {
		fmt.Fprintf(&b, " AND e.type = %s::text", arg(string(q.Type)))
	}
	if q.Type != "" && q.Type != core.TypeMessage {
		b.WriteString(" AND e.type <> 'message'") // as the index says it
	}
	fmt.Fprintf(&b, "%s LIMIT %s::bigint", order, arg(int64(q.Limit)+1))
	return b.String(), args
}

// place is where an entry is within its agent.
type place struct {
	session string
	seq, n  int64
}

func direction(reverse bool) string {
	if reverse {
		return "r"
	}
	return "f"
}

func (p place) cursor(reverse bool) core.Cursor {
	return core.Cursor(direction(reverse) + "." + strconv.FormatInt(p.seq, 36) + "." + strconv.FormatInt(p.n, 36) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(p.session)))
}

func parsePlace(c core.Cursor, q core.ScanQuery) (place, error) {
	parts := strings.Split(string(c), ".")
	var p place
	ok := len(parts) == 4 && parts[0] == direction(q.Reverse)
	if ok {
		seq, err1 := strconv.ParseInt(parts[1], 36, 64)
		n, err2 := strconv.ParseInt(parts[2], 36, 64)
		name, err3 := base64.RawURLEncoding.DecodeString(parts[3])
		p = place{session: string(name), seq: seq, n: n}
		ok = err1 == nil && err2 == nil && err3 == nil && len(name) > 0 && (q.Scope.Session == "" || q.Scope.Session == p.session)
	}
	if !ok {
		return place{}, fmt.Errorf("postgres: scan: the cursor is not one of this store for this scope and direction: start again without one: %w",
			core.ErrInvalid)
	}
	return p, nil
}
