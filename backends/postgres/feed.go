package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/contextengine/contextengine/core"
)

// Changes implements core.ChangeFeed. Writers of an agent wait for each other, so a change that can be seen has no
// unseen one before it. A store that was restored from a backup is recognised when it has fewer changes than the mark, or another
// one at its place.
func (s *Store) Changes(ctx context.Context, q core.ChangeQuery) (core.ChangePage, error) {
	if err := q.Check("postgres: changes"); err != nil {
		return core.ChangePage{}, err
	}
	var page core.ChangePage
	err := s.call(ctx, "changes", "", repeatable, func(ctx context.Context) error {
		after, err := s.resume(ctx, q)
		if err != nil {
			return err
		}
		page, err = s.changes(ctx, q, after)
		return err
	})
	if err != nil {
		return core.ChangePage{}, err
	}
	return page, nil
}

func (s *Store) changes(ctx context.Context, q core.ChangeQuery, after int64) (core.ChangePage, error) {
	page := core.ChangePage{Mark: q.After}
	rows, err := s.main.Query(ctx, s.sql.changes, []byte(q.Agent), after, int64(q.Limit)+1)
	if err != nil {
		return core.ChangePage{}, err
	}
	var ids []string
	defer rows.Close()
	for rows.Next() {
		if len(page.Changes) == q.Limit {
			page.More = true
			break
		}
		var rev int64
		var id []byte
		var gone bool
		if err := rows.Scan(&rev, &id, &gone); err != nil {
			return core.ChangePage{}, err
		}
		if !gone {
			ids = append(ids, string(id))
		}
		page.Changes = append(page.Changes, core.EntryChange{ID: string(id)})
		page.Mark = s.mark(rev, string(id))
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return core.ChangePage{}, err
	}
	// What is deleted between the two queries is named as gone, and what is changed shows as it is by then.
	found, err := s.find(ctx, s.main, s.sql.get, core.Scope{Agent: q.Agent}, ids)
	if err != nil {
		return core.ChangePage{}, err
	}
	for i := range page.Changes {
		if e, ok := found[page.Changes[i].ID]; ok {
			page.Changes[i].Entry = &e
		}
	}
	return page, nil
}

// mark names the change number rev, which is of the entry id.
func (s *Store) mark(rev int64, id string) core.Mark {
	return core.Mark(s.identity + "." + strconv.FormatInt(rev, 36) + "." + strconv.FormatUint(short(id), 36))
}

func short(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}

// resume returns the number of the change that a mark names, or core.ErrNotFound when this store did not make it.
func (s *Store) resume(ctx context.Context, q core.ChangeQuery) (int64, error) {
	if q.After == "" {
		return 0, nil
	}
	unknown := fmt.Errorf("the mark is not of this store, or the store was restored since: begin anew: %w", core.ErrNotFound)
	parts := strings.Split(string(q.After), ".")
	if len(parts) != 3 || parts[0] != s.identity {
		return 0, unknown
	}
	rev, err1 := strconv.ParseInt(parts[1], 36, 64)
	sum, err2 := strconv.ParseUint(parts[2], 36, 64)
	if err1 != nil || err2 != nil || rev < 1 {
		return 0, unknown
	}
	var newest int64
	err := s.main.QueryRow(ctx, s.sql.counter, []byte(q.Agent)).Scan(&newest)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && newest < rev {
		return 0, unknown
	}
	if err != nil {
		return 0, err
	}
	var id []byte
	err = s.main.QueryRow(ctx, s.sql.changedAt, []byte(q.Agent), rev).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return rev, nil // the entry was changed again since
	}
	if err == nil && short(string(id)) != sum {
		return 0, unknown
	}
	return rev, err
}
