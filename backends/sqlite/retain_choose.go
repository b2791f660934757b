package sqlite

import (
	"context"
	"database/sql"
	"math"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/retain"
)

// victims are entries of one session that are to be removed.
type victims struct {
	scope core.Scope
	of    []candidate
}

func (v *victims) ids() []string {
	ids := make([]string, len(v.of))
	for i := range v.of {
		ids[i] = v.of[i].id
	}
	return ids
}

// candidate is what choosing needs to know of an entry.
type candidate struct {
	id         string
	owner      core.SessionID
	seq, milli int64
	bytes      int64
}

// beyond returns the entries of an agent that a policy does not keep, in batches, each of one session.
func (s *Store) beyond(ctx context.Context, agent string, p retain.Policy, needed *window, report *retain.Report) ([]victims, error) {
	var out []victims
	err := s.read(ctx, "retain", "", func(tx *sql.Tx) error {
		all, err := s.candidates(ctx, tx, agent, p.PerAgent)
		if err != nil {
			return err
		}
		oldest := int64(math.MinInt64)
		if p.MaxAge > 0 {
			oldest = s.now().Add(-p.MaxAge).UnixMilli()
		}
		for _, group := range all {
			out = append(out, choose(group, p, oldest, needed, report)...)
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
		FROM scopes s JOIN entries e ON e.scope = s.id WHERE s.agent = ? AND e.type <> ? ORDER BY `+order,
		agent, string(core.TypeErased))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var groups [][]candidate
	last := ""
	for rows.Next() {
		var id storedID
		c := candidate{owner: core.SessionID{Agent: agent}}
		if err := s.scanned(rows.Scan(&id, &c.owner.Session, &c.seq, &c.milli, &c.bytes)); err != nil {
			return nil, err
		}
		c.id = string(id)
		if len(groups) == 0 || !together && c.owner.Session != last {
			groups = append(groups, nil)
		}
		last = c.owner.Session
		groups[len(groups)-1] = append(groups[len(groups)-1], c)
	}
	return groups, rows.Err()
}

// choose returns those of a group that are beyond the bounds and that no view shows.
func choose(group []candidate, p retain.Policy, oldest int64, needed *window, report *retain.Report) []victims {
	bytes := int64(0)
	for i := range group {
		bytes += group[i].bytes
	}
	var out []victims
	at := map[core.SessionID]int{}
	for i := range group {
		c := &group[i]
		// What counts is how many, and how many bytes, are as new or newer.
		newer, size := int64(len(group)-i), bytes
		bytes -= c.bytes
		if c.milli >= oldest && (p.MaxEntries == 0 || newer <= p.MaxEntries) && (p.MaxBytes == 0 || size <= p.MaxBytes) {
			continue
		}
		if needed.shows(c) {
			report.Kept++
			continue
		}
		b, ok := at[c.owner]
		if !ok || len(out[b].of) == retainBatch {
			b = len(out)
			out = append(out, victims{scope: c.owner.Scope()})
			at[c.owner] = b
		}
		out[b].of = append(out[b].of, *c)
	}
	return out
}
