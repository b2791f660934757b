package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
)

// breakIndex flips a bit in a page of an index such that the store is not opened any more.
func breakIndex(ctx context.Context, file string) error {
	sound, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const page, indexLeaf = 4096, 0x0a
	for at := page; at+page <= len(sound); at += page {
		if sound[at] != indexLeaf {
			continue
		}
		broken := append([]byte(nil), sound...)
		broken[at+4] ^= 1
		if err := os.WriteFile(file, broken, 0o600); err != nil {
			return err
		}
		cfg := sqlite.DefaultConfig()
		cfg.Path = file
		s, err := sqlite.Open(ctx, cfg)
		if errors.Is(err, sqlite.ErrDamaged) {
			return nil
		}
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: no page of an index could be broken", file)
}

// breakViews makes every view name three positions that hold nothing.
func breakViews(ctx context.Context, file string) error {
	cfg := sqlite.DefaultConfig()
	cfg.Path = file
	s, err := sqlite.Open(ctx, cfg)
	if err != nil {
		return err
	}
	ids, err := s.ListViews(ctx, core.ViewQuery{Limit: core.MaxPage})
	for _, id := range ids {
		v, err := s.LoadView(ctx, id)
		if err != nil || len(v.Path) == 0 {
			return errors.Join(err, s.Close())
		}
		v.Version++
		v.Path[len(v.Path)-1].To += 3
		v.Next += 3
		if err := s.SwapView(ctx, v); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return errors.Join(err, s.Close())
}
