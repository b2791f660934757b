package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// record puts an entry of the engine's own at the end of one of its reserved sessions, whoever else does so at the same time.
func (e *Engine) record(ctx context.Context, entry core.Entry) (core.AppendResult, error) {
	last, same := int64(-1), 0
	for n := 0; ; n++ {
		page, err := e.store.Scan(ctx, core.ScanQuery{Scope: entry.SessionID().Scope(), Reverse: true, Limit: 1})
		if err != nil {
			return core.AppendResult{}, err
		}
		entry.Seq = 0
		if len(page.Entries) > 0 {
			entry.Seq = page.Entries[0].Seq + 1
		}
		if same++; entry.Seq != last {
			last, same = entry.Seq, 0
		}
		res, err := e.store.Append(ctx, []core.Entry{entry})
		if !errors.Is(err, core.ErrConflict) || same >= stuck {
			return res, err
		}
		if err := pause(ctx, n); err != nil {
			return core.AppendResult{}, fmt.Errorf("core: session %q: others keep writing: %w", entry.Session, err)
		}
	}
}
