package core

import (
	"context"
	"errors"
	"fmt"
)

// record puts an entry of the engine's own at the end of one of its reserved sessions, whoever else does so at the same time.
func (e *Engine) record(ctx context.Context, entry Entry) (AppendResult, error) {
	last, same := int64(-1), 0
	for n := 0; ; n++ {
		page, err := e.store.Scan(ctx, ScanQuery{Scope: entry.SessionID().Scope(), Reverse: true, Limit: 1})
		if err != nil {
			return AppendResult{}, err
		}
		entry.Seq = 0
		if len(page.Entries) > 0 {
			entry.Seq = page.Entries[0].Seq + 1
		}
		if same++; entry.Seq != last {
			last, same = entry.Seq, 0
		}
		res, err := e.store.Append(ctx, []Entry{entry})
		if !errors.Is(err, ErrConflict) || same >= stuck {
			return res, err
		}
		if err := pause(ctx, n); err != nil {
			return AppendResult{}, fmt.Errorf("core: session %q: others keep writing: %w", entry.Session, err)
		}
	}
}
