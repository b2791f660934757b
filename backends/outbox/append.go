package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Append implements core.Store. It returns when the entries are durable locally and known to be undelivered; the remote
// store is not asked. At a bound of the backlog it is ErrFull, or waits for room, see Config.Full.
func (s *Store) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if err := s.enter(ctx, "append"); err != nil {
		return core.AppendResult{}, err
	}
	defer s.leave()
	if len(entries) == 0 {
		return core.AppendResult{}, nil
	}
	bytes := int64(0)
	for i := range entries {
		if err := entries[i].Check("outbox: append"); err != nil {
			return core.AppendResult{}, err
		}
		bytes += size(&entries[i])
	}
	if err := s.acquireRoom(ctx, len(entries), bytes); err != nil {
		return core.AppendResult{}, failed("append", "", err)
	}
	s.anticipate(entries)
	defer s.nudge()
	defer s.release()
	touched := s.touches(len(entries), func(i int) touch {
		return touch{entries[i].SessionID(), opAppend, entries[i].ID, size(&entries[i])}
	})
	var res core.AppendResult
	err := s.change(touched, func() (void func(id string) bool, err error) {
		if res, err = s.local.Append(ctx, entries); err != nil {
			return nil, err
		}
		// Entries whose key was known are stored under another id, which has been in the queue before.
		other := map[string]bool{}
		for i, id := range res.IDs {
			if i < len(entries) && id != entries[i].ID {
				other[entries[i].ID] = true
			}
		}
		return func(id string) bool { return other[id] }, nil
	})
	if err != nil {
		return core.AppendResult{}, failed("append", "", err)
	}
	return res, nil
}

// change writes down what is about to change, changes the local store with f, and puts the changes into the queue. What f
// voids, or all if f fails in a way that leaves no doubt, is taken back.
func (s *Store) change(touched []record, f func() (void func(id string) bool, err error)) error {
	if err := s.j.write(touched...); err != nil {
		return err
	}
	void, err := f()
	if err != nil && certain(err) {
		void = func(string) bool { return true }
	}
	var back []record
	if void != nil {
		back = voided(touched, void)
	}
	if len(back) > 0 {
		if werr := s.j.write(back...); werr != nil {
			// Ids that stand for nothing are found to be so when they are delivered.
			s.log.Warn("outbox cannot take back a change that the local store refused", "err", werr)
		}
	}
	s.note(slices.Concat(touched, back)...)
	return err
}

// certain reports whether an error means that nothing was changed.
func certain(err error) bool {
	return errors.Is(err, core.ErrConflict) || errors.Is(err, core.ErrInvalid) || errors.Is(err, core.ErrNotFound) || errors.Is(err, core.ErrClosed)
}

func voided(touched []record, void func(id string) bool) []record {
	var out []record
	for _, r := range touched {
		var seqs []uint64
		for _, c := range r.changes {
			if void(c.id) {
				seqs = append(seqs, c.seq)
			}
		}
		if seqs != nil {
			out = append(out, record{kind: kindVoid, session: r.session, seqs: seqs})
		}
	}
	return out
}

// touch is a change that is about to be made.
type touch struct {
	session core.SessionID
	op      op
	id      string
	size    int64
}

// touches makes the records for n changes: one for each run of the same session and kind.
func (s *Store) touches(n int, at func(i int) touch) []record {
	s.mu.Lock()
	next := s.q.next
	s.mu.Unlock()
	now := s.now().UnixMilli()
	var out []record
	for i := range n {
		t := at(i)
		if len(out) == 0 || out[len(out)-1].session != t.session || out[len(out)-1].op != t.op {
			out = append(out, record{kind: kindTouch, session: t.session, op: t.op, at: now})
		}
		r := &out[len(out)-1]
		r.changes = append(r.changes, change{seq: next + uint64(i), id: t.id, size: t.size})
	}
	return out
}

// acquireRoom is acquire for a call that adds to the backlog.
func (s *Store) acquireRoom(ctx context.Context, n int, bytes int64) error {
	if n > s.cfg.MaxEntries || bytes > s.cfg.MaxBytes {
		return fmt.Errorf("%d entries of %d bytes are more than the outbox may hold at all: raise maxEntries or maxBytes, or split the call: %w",
			n, bytes, core.ErrInvalid)
	}
	for {
		if err := s.acquire(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		err, news := s.full(n, bytes), s.news
		s.mu.Unlock()
		if err == nil {
			return nil
		}
		s.release()
		if s.cfg.Full == FullFail {
			return err
		}
		// Another process may be the one that delivers.
		again := time.NewTimer(s.cfg.Poll)
		select {
		case <-news:
		case <-again.C:
		case <-s.closing:
			again.Stop()
			return fmt.Errorf("%w: %w", core.ErrClosed, err)
		case <-ctx.Done():
			again.Stop()
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		again.Stop()
	}
}

// full returns ErrFull when that much more does not fit. mu is held.
func (s *Store) full(n int, bytes int64) error {
	switch {
	case s.q.size()+n > s.cfg.MaxEntries:
		return fmt.Errorf("%d changes wait or were set aside, maxEntries is %d: %w", s.q.size(), s.cfg.MaxEntries, ErrFull)
	case s.q.bytes+s.q.deadBytes+bytes > s.cfg.MaxBytes:
		return fmt.Errorf("%d bytes wait or were set aside, maxBytes is %d: %w", s.q.bytes+s.q.deadBytes, s.cfg.MaxBytes, ErrFull)
	}
	if at := s.q.oldest(); s.cfg.MaxAge > 0 && at > 0 {
		if age := s.now().Sub(time.UnixMilli(at)); age > s.cfg.MaxAge {
			return fmt.Errorf("the oldest change waits for %s, maxAge is %s: %w", age.Round(time.Second), s.cfg.MaxAge, ErrFull)
		}
	}
	return nil
}

// size is about what an entry weighs: the bytes of its message.
func size(e *core.Entry) int64 {
	n := len(e.Message.Raw)
	for i := range e.Message.Parts {
		p := &e.Message.Parts[i]
		n += len(p.Text) + len(p.Args) + len(p.Raw)
	}
	for k, v := range e.Meta {
		n += len(k) + len(v)
	}
	return int64(n)
}
