package sqlite

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/exports"
)

// archive writes entries to w, and has written all of them when it returns nil.
func (s *Store) archive(ctx context.Context, w io.Writer, of []victims) error {
	if w == nil || len(of) == 0 {
		return nil
	}
	z := gzip.NewWriter(w)
	out := exports.NewWriter(z, s.now(), nil)
	err := out.Begin()
	for i := 0; err == nil && i < len(of); i++ {
		var entries []core.Entry
		if entries, err = s.Get(ctx, of[i].scope, of[i].ids()); err != nil {
			return err
		}
		for j := range entries {
			if err = out.Entry(&entries[j]); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = out.End()
	}
	if err == nil {
		err = z.Close()
	}
	if f, ok := w.(interface{ Sync() error }); ok && err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("sqlite: retain: archive: %w", err)
	}
	return nil
}
