package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/contextengine/contextengine/core"
)

// stuck is how often in a row a call is tried again although nothing changed between two tries.
const stuck = 12

// The pauses between two tries of a call.
const (
	minRetryPause = time.Millisecond
	maxRetryPause = 100 * time.Millisecond
)

// retry runs op, and again as long as others change the session meanwhile: whoever changed it got ahead, so somebody always does. It ends with ctx, or when
// op conflicts with something that does not change. op makes the same entries each time, see tries.
func (e *Engine) retry(ctx context.Context, id core.SessionID, op func(s *session) error) error {
	return e.repeat(ctx, id, true, op)
}

// resume is retry for the later parts of a call: it does not ask the store what others did, which publishing finds out anyway.
func (e *Engine) resume(ctx context.Context, id core.SessionID, op func(s *session) error) error {
	return e.repeat(ctx, id, false, op)
}

func (e *Engine) repeat(ctx context.Context, id core.SessionID, look bool, op func(s *session) error) error {
	var version uint64
	var next int64
	same := 0
	for n := 0; ; n++ {
		s, done, err := e.enter(ctx, id, look)
		again := errors.Is(err, core.ErrConflict) // it was changed while it was read
		if err == nil {
			if v := &s.view; n > 0 && v.Version == version && v.Next == next {
				same++
			} else {
				version, next, same = v.Version, v.Next, 0
			}
			err = op(s)
			if tied, ok := errors.AsType[*tiedError](err); ok {
				err = s.mend(ctx, tied)
				s.forget()
				if err == nil {
					err = fmt.Errorf("core: session %q: it was mended: %w", id, core.ErrConflict)
				}
			}
			again = errors.Is(err, core.ErrConflict) && !s.loaded
			done()
		} else if again {
			same++
		}
		if !again {
			return err
		}
		if same >= stuck {
			return fmt.Errorf("core: session %q: tried %d times: %w", id, n+1, err)
		}
		if err := pause(ctx, n); err != nil {
			return fmt.Errorf("core: session %q: others keep changing it: %w", id, err)
		}
	}
}

// pause waits before try n+1, not at all before the first. Some chance in it keeps two processes from meeting at every try.
func pause(ctx context.Context, n int) error {
	if n == 0 {
		return ctx.Err()
	}
	limit := min(minRetryPause<<min(n, 16), maxRetryPause)
	timer := time.NewTimer(limit/2 + rand.N(limit/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// look drops what is in memory of a session that another process changed. Where the store cannot tell, what is in memory holds.
func (s *session) look(ctx context.Context) error {
	tail, known, err := s.e.reader.tail(ctx, s.id)
	if err != nil {
		if ctx.Err() != nil || s.e.cfg.Failure == FailStrict {
			return err
		}
		s.e.warn(ctx, "store", "tail", err)
		return nil
	}
	if !known {
		return nil
	}
	view := s.mark
	if s.e.sharedViews {
		view = s.view.Version
	}
	if tail.View != view || tail.Next > s.view.Next {
		s.forget()
	}
	return nil
}

// tail asks the store how far a session is, if it can tell.
func (r *reader) tail(ctx context.Context, id core.SessionID) (tail core.Tail, known bool, err error) {
	if r.tailer == nil {
		return tail, false, nil
	}
	tail, err = r.tailer.Tail(ctx, id)
	if errors.Is(err, errors.ErrUnsupported) {
		return core.Tail{}, false, nil
	}
	if err != nil {
		return core.Tail{}, false, fmt.Errorf("core: look at session %q: %w", id, err)
	}
	return tail, true, nil
}

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
