package core

import (
	"context"
	"errors"
)

// movedTries is how often a copy is tried again while others write to its session.
const movedTries = 12

// beyond is how far behind a session's end an entry is put that has no position of its own: what is copied after it finds its positions free.
const beyond = 1 << 20

// AppendMoved is Append for copies of older data, in which several entries may have one position: the first keeps it, the others are put behind all
// that the session holds, and are shown there. It is atomic for each entry alone unless all of them can be stored as they are. An id that belongs to
// another entry is ErrConflict.
func AppendMoved(ctx context.Context, s Store, entries []Entry) (AppendResult, error) {
	res, err := s.Append(ctx, entries)
	if !errors.Is(err, ErrConflict) {
		return res, err
	}
	res = AppendResult{}
	for _, entry := range entries {
		one, err := appendMoved(ctx, s, entry)
		if err != nil {
			return res, err
		}
		res.IDs, res.Duplicates = append(res.IDs, one.IDs...), res.Duplicates+one.Duplicates
	}
	return res, nil
}

func appendMoved(ctx context.Context, s Store, entry Entry) (AppendResult, error) {
	own := entry.Seq
	for n := 0; ; n++ {
		res, err := s.Append(ctx, []Entry{entry})
		if !errors.Is(err, ErrConflict) || n == movedTries {
			return res, err
		}
		scope := entry.SessionID().Scope()
		if _, found := s.Get(ctx, scope, []string{entry.ID}); found == nil {
			return res, err
		}
		newest, scanned := First(ctx, s, ScanQuery{Scope: scope, Reverse: true})
		if errors.Is(scanned, ErrNotFound) {
			return res, err
		}
		if scanned != nil {
			return res, errors.Join(err, scanned)
		}
		entry.Seq = newest.Seq + 1
		if entry.Seq < own+beyond/2 {
			entry.Seq += beyond
		}
	}
}
