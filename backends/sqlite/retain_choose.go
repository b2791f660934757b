package sqlite

import (
	"context"
	"database/sql"
	"math"

	"github.com/contextengine/contextengine/core"
)

// candidate is what choosing needs to know of an entry.
type candidate struct {
	id         string
	session    string
	seq, milli int64
	bytes      int64
}

// beyond returns the entries of an agent that a policy does not keep, in batches, each of one session.
func (s *Store) beyond(ctx context.Context, agent string, p Policy, report *RetainReport) ([]victims, error) {
	var out []victims
	err := s.read(ctx, "retain", "", func(tx *sql.Tx) error {
		needed := window{spans: map[string][]core.Span{}, ids: map[string]bool{}}
		if err := s.everyView(ctx, tx, agent, func(v *core.View) error { needed.add(v); return nil }); err != nil {
			return err
		}
		all, err := s.candidates(ctx, tx, agent, p.PerAgent)
		if err != nil {
			return err
		}
		oldest := int64(math.MinInt64)
		if p.MaxAge > 0 {
			oldest = s.now().Add(-p.MaxAge).UnixMilli()
		}
		for _, group := range all {
			out = append(out, choose(agent, group, p, oldest, &needed, report)...)
		}
		return nil
	})
	return out, err
}

// candidates returns the entries of an agent, oldest first: one group for each session, or a single one.
func (s *Store) candidates(ctx context.Context, tx *sql.Tx, agent string, together bool) ([][]candidate, error) {
	order := "s.id, e.seq, e.n"
	if together {
		order = "e.time, e.n"
	}
	rows, err := tx.QueryContext(ctx, `SELECT e.id, s.session, e.seq, e.time, length(e.message) + coalesce(length(e.meta), 0)
		FROM scopes s JOIN entries e ON e.scope = s.id WHERE s.agent = ? ORDER BY `+order, agent)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var groups [][]candidate
	last := ""
	for rows.Next() {
		var c candidate
		if err := s.scanned(rows.Scan(&c.id, &c.session, &c.seq, &c.milli, &c.bytes)); err != nil {
			return nil, err
		}
		if len(groups) == 0 || !together && c.session != last {
			groups = append(groups, nil)
		}
		last = c.session
		groups[len(groups)-1] = append(groups[len(groups)-1], c)
	}
	return groups, rows.Err()
}

// choose returns those of a group that are beyond the bounds and not needed.
func choose(agent string, group []candidate, p Policy, oldest int64, needed *window, report *RetainReport) []victims {
	bytes := int64(0)
	for i := range group {
		bytes += group[i].bytes
	}
	var out []victims
	at := map[string]int{}
	for i := range group {
		c := &group[i]
		// What counts is how many, and how many bytes, are as new or newer.
		newer, size := int64(len(group)-i), bytes
		bytes -= c.bytes
		if c.milli >= oldest && (p.MaxEntries == 0 || newer <= p.MaxEntries) && (p.MaxBytes == 0 || size <= p.MaxBytes) {
			continue
		}
		if needed.has(c) {
			report.Kept++
			continue
		}
		b, ok := at[c.session]
		if !ok || len(out[b].ids) == retainBatch {
			b = len(out)
			out = append(out, victims{scope: core.Scope{Agent: agent, Session: c.session}})
			at[c.session] = b
		}
		out[b].ids = append(out[b].ids, c.id)
		out[b].bytes += c.bytes
	}
	return out
}

// window is what the views of an agent show, or have yet to compact.
type window struct {
	spans map[string][]core.Span
	ids   map[string]bool
}

func (w *window) add(v *core.View) {
	from := max(0, min(v.Start, v.Frontier))
	for _, spans := range [][]core.Span{v.Slice(0, v.Lead), v.Slice(from, v.Len())} {
		for _, span := range spans {
			session := v.Session.Session
			if span.Session != nil {
				session = span.Session.Session
			}
			w.spans[session] = append(w.spans[session], span)
		}
	}
	for i := range v.Summaries {
		w.ids[v.Summaries[i].ID] = true
	}
	if v.Pinned != "" {
		w.ids[v.Pinned] = true
	}
}

func (w *window) has(c *candidate) bool {
	if w.ids[c.id] {
		return true
	}
	for _, span := range w.spans[c.session] {
		if c.seq >= span.From && c.seq < span.To {
			return true
		}
	}
	return false
}
