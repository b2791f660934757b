package postgres

import (
	"context"
	"time"

	"github.com/contextengine/contextengine/core/upkeep"
)

// Stats implements upkeep.Statter. It counts all entries, which takes a while on a large store.
func (s *Store) Stats(ctx context.Context) (upkeep.Stats, error) {
	var st upkeep.Stats
	err := s.call(ctx, "stats", "", repeatable, func(ctx context.Context) error {
		st = upkeep.Stats{}
		var oldest, newest *time.Time
		err := s.main.QueryRow(ctx, s.sql.stats, s.cfg.Schema).
			Scan(&st.Agents, &st.Sessions, &st.Entries, &st.RawBytes, &oldest, &newest, &st.Bytes)
		if oldest != nil && newest != nil {
			st.Oldest, st.Newest = oldest.UTC(), newest.UTC()
		}
		return err
	})
	if err != nil {
		return upkeep.Stats{}, err
	}
	return st, nil
}
