package openbrain

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// parallel is how many sources are asked at the same time for one request.
const parallel = 4

// each calls f for 0 to n-1, some at the same time, and returns the first error.
func each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(parallel, n) {
		wg.Go(func() {
			for i := range next {
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return nil
}

// walk yields the thoughts of several sources as one list, by time of creation.
type walk struct {
	server  *Server
	answer  *recorder
	reverse bool
	heads   []*stream
	// share is how much is held of a source at a time, in bytes; alone says that there is one source.
	share int
	alone bool
	// loaded is what the thought holds that was given last and had not been held.
	loaded int
}

// stream is the rest of one source. Of thoughts for which there is no room, list holds only the place.
type stream struct {
	q    core.ScanQuery
	most int // thoughts to read at a time
	done bool
	list []thought
	held int // by list, in bytes
	// behind, when it is set, is where to begin; found says that it was passed.
	behind *place
	found  bool
}

// newWalk walks for an answer, which is charged with what the walk holds. It begins behind a place, or at the start when it is nil. expect is how many thoughts will be wanted.
func (s *Server) newWalk(ctx context.Context, answer *recorder, sources []*source, reverse bool, behind *place, expect int) (*walk, error) {
	w := &walk{server: s, answer: answer, reverse: reverse, alone: len(sources) == 1, share: max(maxRead/max(len(sources), 1), minShare)}
	most := min(max(2*expect/max(len(sources), 1)+2, 8), core.MaxPage)
	if len(sources) == 1 {
		most = min(expect+2, core.MaxPage)
	}
	page := min(most, firstRead)
	all := make([]*stream, len(sources))
	err := each(ctx, len(sources), func(ctx context.Context, i int) error {
		st := &stream{q: core.ScanQuery{Scope: sources[i].scope(), Reverse: reverse, Limit: page}, behind: behind, most: most}
		if behind != nil && reverse {
			st.q.ToSeq = behind.Seq + 1
		} else if behind != nil {
			st.q.FromSeq = behind.Seq
		}
		all[i] = st
		return w.fill(ctx, st)
	})
	if err != nil {
		return nil, err
	}
	for _, st := range all {
		if len(st.list) > 0 {
			w.heads = append(w.heads, st)
		}
	}
	heap.Init(w)
	return w, nil
}

// fill reads on until there is a thought, or none is left.
func (w *walk) fill(ctx context.Context, s *stream) error {
	for len(s.list) == 0 && !s.done {
		err := w.server.read(ctx, w.answer, func() (int, error) {
			page, err := w.server.store.Scan(ctx, s.q)
			if err != nil {
				return 0, fmt.Errorf("openbrain: list: %w", err)
			}
			before := s.held
			s.list, s.held = nil, 0
			for _, e := range page.Entries {
				if t, ok := thoughtOf(e); ok && !s.before(t) {
					s.list = append(s.list, w.keep(s, t))
				}
			}
			s.q.Cursor, s.done = page.Next, page.Next == ""
			s.q.Limit = s.readNext(page.Entries)
			return s.held - before, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keep returns a thought as it is held until its turn comes: whole while there is room for it, else only as its place. One that comes next is held in any case.
func (w *walk) keep(s *stream, t thought) thought {
	size := t.size()
	if s.held+size > w.share && (!w.alone || len(s.list) > 0) {
		return thought{ID: t.ID, Source: t.Source, Seq: t.Seq, Created: t.Created, place: true}
	}
	s.held += size
	return t
}

// load reads a thought of which only the place was held. ok is false when it is gone.
func (w *walk) load(ctx context.Context, s *stream, t thought) (_ thought, ok bool, err error) {
	err = w.server.read(ctx, w.answer, func() (int, error) {
		got, err := w.server.store.Get(ctx, s.q.Scope, []string{t.ID})
		if errors.Is(err, core.ErrNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("openbrain: list: %w", err)
		}
		var now thought
		if now, ok = thoughtOf(got[0]); !ok || now.Seq != t.Seq { // another one with its id, stored since
			ok = false
			return 0, nil
		}
		t, w.loaded = now, now.size()
		return w.loaded, nil
	})
	return t, ok, err
}

const (
	// firstRead is how many thoughts are read of a source at first; how many at a time then depends on their size.
	firstRead = 16
	// maxRead bounds what is read of a source at a time, in bytes, and what a list holds of all of them.
	maxRead = 1 << 20
	// minShare is what is held of a source at a time in any case, in bytes.
	minShare = 16 << 10
)

// readNext returns how many entries to read next, after some.
func (s *stream) readNext(read []core.Entry) int {
	size := 0
	for i := range read {
		for _, p := range read[i].Message.Parts {
			size += len(p.Text)
		}
		size += len(read[i].Meta[metaMetadata])
	}
	if size == 0 {
		return s.most
	}
	return min(max(maxRead*len(read)/size, 1), s.most)
}

// before reports whether t was listed before the place where the stream begins. Sources share a Seq only when several servers stored
// something in the same microsecond; then they are listed by name.
func (s *stream) before(t thought) bool {
	if s.behind == nil || t.Seq != s.behind.Seq {
		return false
	}
	switch cmp.Compare(t.Source, s.behind.Source) {
	case -1:
		return true
	case 1:
		return false
	}
	if s.found {
		return false
	}
	s.found = t.ID == s.behind.ID
	return true
}

// next returns the next thought; ok is false at the end. The one before is not held any more.
func (w *walk) next(ctx context.Context) (t thought, ok bool, err error) {
	for {
		if w.loaded > 0 {
			w.server.answers.grow(w.answer.held, -w.loaded, false)
			w.loaded = 0
		}
		if len(w.heads) == 0 {
			return thought{}, false, nil
		}
		s := w.heads[0]
		if len(s.list) == 0 {
			if err := w.fill(ctx, s); err != nil {
				return thought{}, false, err
			}
			if len(s.list) == 0 {
				heap.Pop(w)
			} else {
				heap.Fix(w, 0)
			}
			continue
		}
		t, s.list[0], s.list = s.list[0], thought{}, s.list[1:]
		if len(s.list) > 0 {
			heap.Fix(w, 0)
		}
		if t.place {
			if t, ok, err = w.load(ctx, s, t); err != nil || !ok {
				if err != nil {
					return thought{}, false, err
				}
				continue
			}
		}
		return t, true, nil
	}
}

// Len, Less, Swap, Push and Pop make the walk a heap of its streams.
func (w *walk) Len() int { return len(w.heads) }

// Less orders by the first thought of each stream.
func (w *walk) Less(i, j int) bool {
	a, b := w.heads[i].list[0], w.heads[j].list[0]
	if a.Seq != b.Seq {
		return (a.Seq < b.Seq) != w.reverse
	}
	return a.Source < b.Source
}

// Swap implements heap.Interface.
func (w *walk) Swap(i, j int) { w.heads[i], w.heads[j] = w.heads[j], w.heads[i] }

// Push implements heap.Interface.
func (w *walk) Push(x any) { w.heads = append(w.heads, x.(*stream)) }

// Pop implements heap.Interface.
func (w *walk) Pop() any {
	last := w.heads[len(w.heads)-1]
	w.heads = w.heads[:len(w.heads)-1]
	return last
}
