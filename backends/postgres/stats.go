package postgres

import (
	"context"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Stats implements core.Statter. It counts all entries, which takes a while on a large store.
func (s *Store) Stats(ctx context.Context) (core.StoreStats, error) {
	var st core.StoreStats
	err := s.call(ctx, "stats", "", repeatable, func(ctx context.Context) error {
		st = core.StoreStats{}
		var oldest, newest *time.Time
		err := s.main.QueryRow(ctx, s.sql.stats, s.cfg.Schema).
			Scan(&st.Agents, &st.Sessions, &st.Entries, &st.RawBytes, &oldest, &newest, &st.Bytes)
		if oldest != nil && newest != nil {
			st.Oldest, st.Newest = oldest.UTC(), newest.UTC()
		}
		return err
	})
	if err != nil {
		return core.StoreStats{}, err
	}
	return st, nil
}
