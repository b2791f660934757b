package memory

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// Scan implements core.Store. Across sessions the order is that of the sessions' first entries. A cursor names the last entry that was
// returned and not an offset, so appends and deletes between two pages neither skip nor repeat anything.
func (s *Store) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if err := q.Check("memory: scan"); err != nil {
		return core.Page{}, err
	}
	var from *mark
	if q.Cursor != "" {
		m, err := parseMark(q.Cursor, q.Reverse)
		if err != nil {
			return core.Page{}, err
		}
		from = &m
	}
	found, next, err := s.page(ctx, q, from)
	if err != nil {
		return core.Page{}, err
	}
	return core.Page{Entries: cloneEntries(found), Next: next}, nil
}

func (s *Store) page(ctx context.Context, q core.ScanQuery, from *mark) ([]*core.Entry, core.Cursor, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx, "scan"); err != nil {
		return nil, "", err
	}
	a := s.agents[q.Scope.Agent]
	if a == nil {
		return nil, "", nil
	}
	c := collector{limit: q.Limit, reverse: q.Reverse, kind: q.Type}
	if q.Scope.Session == "" {
		c.agent(a, from)
	} else if sess := a.byName[q.Scope.Session]; sess != nil {
		c.session(sess, from, q.FromSeq, q.ToSeq)
	}
	return c.found, c.next, nil
}

// collector fills one page.
type collector struct {
	limit   int
	reverse bool
	kind    core.EntryType
	found   []*core.Entry
	last    mark
	next    core.Cursor
}

// add takes one record, or notes that there is more than the page holds.
func (c *collector) add(r *record) bool {
	if c.kind != "" && r.entry.Type != c.kind {
		return true
	}
	if len(c.found) == c.limit {
		c.next = c.last.cursor(c.reverse)
		return false
	}
	c.found = append(c.found, r.entry)
	c.last = mark{session: r.session.number, place: r.place()}
	return true
}

func (c *collector) agent(a *agent, from *mark) {
	step, i := 1, 0
	if c.reverse {
		step, i = -1, len(a.sessions)-1
	}
	if from != nil {
		j, same := a.index(from.session)
		i = j
		if !same && c.reverse {
			i-- // the session is gone: go on with the one before it
		}
		if same {
			if !c.session(a.sessions[i], from, 0, 0) {
				return
			}
			i += step
		}
	}
	for ; i >= 0 && i < len(a.sessions); i += step {
		if !c.session(a.sessions[i], nil, 0, 0) {
			return
		}
	}
}

// session collects from one session and reports whether the page has room for more.
func (c *collector) session(s *session, from *mark, lo, hi int64) bool {
	first, end := place{seq: math.MinInt64}, place{seq: math.MaxInt64, order: math.MaxUint64}
	if lo > 0 {
		first = place{seq: lo}
	}
	if hi > 0 {
		end = place{seq: hi}
	}
	if c.reverse {
		if from != nil && from.place.compare(end) < 0 {
			end = from.place
		}
		s.run.before(end, func(r *record) bool {
			return r.place().compare(first) >= 0 && c.add(r)
		})
		return c.next == ""
	}
	if from != nil {
		if p := (place{seq: from.place.seq, order: from.place.order + 1}); p.compare(first) > 0 {
			first = p
		}
	}
	s.run.after(first, func(r *record) bool {
		return r.place().compare(end) < 0 && c.add(r)
	})
	return c.next == ""
}

// mark is the place of an entry within its agent.
type mark struct {
	session uint64
	place   place
}

func direction(reverse bool) string {
	if reverse {
		return "r"
	}
	return "f"
}

func (m mark) cursor(reverse bool) core.Cursor {
	return core.Cursor(direction(reverse) + "." + strconv.FormatUint(m.session, 36) + "." +
		strconv.FormatInt(m.place.seq, 36) + "." + strconv.FormatUint(m.place.order, 36))
}

func parseMark(c core.Cursor, reverse bool) (mark, error) {
	bad := fmt.Errorf("memory: scan: the cursor is not one of this store for this direction: start again without one: %w", core.ErrInvalid)
	parts := strings.Split(string(c), ".")
	if len(parts) != 4 || parts[0] != direction(reverse) {
		return mark{}, bad
	}
	number, err1 := strconv.ParseUint(parts[1], 36, 64)
	seq, err2 := strconv.ParseInt(parts[2], 36, 64)
	order, err3 := strconv.ParseUint(parts[3], 36, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return mark{}, bad
	}
	return mark{session: number, place: place{seq: seq, order: order}}, nil
}
