package conformance_test

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
)

// tableShared are retrievers whose calls share what each should have alone, or that forget with Scrub. What is shared is atomic: that is no race that a detector finds, and wrong all the
// same.
func tableShared() []broken {
	return []broken{
		caughtRetriever("retrieve.concurrent", "the limit of whoever asked last", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			var last atomic.Int64
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				last.Store(int64(q.Limit))
				got, err := s(ctx, q)
				return got[:min(len(got), int(last.Load()))], err
			}
		}),
		toldAlone("retrieve.concurrent", "what is told is put in a list without a lock", func() core.Retriever { return &heaped{} }),
		toldAlone("scrub.retrieve", "begins anew, and reads nothing again", func() core.Retriever { return &scrubbed{} }),
	}
}

// heaped sorts in what it was told of when it is asked.
type heaped struct {
	listener
	heap atomic.Pointer[heap]
}

type heap struct {
	entries []core.Entry
	below   *heap
}

func (l *heaped) Appended(_ context.Context, entries []core.Entry) error {
	l.heap.Store(&heap{slices.Clone(entries), l.heap.Load()})
	return nil
}

func (l *heaped) sortIn(ctx context.Context) error {
	var all [][]core.Entry
	for h := l.heap.Swap(nil); h != nil; h = h.below {
		all = append(all, h.entries)
	}
	for _, entries := range slices.Backward(all) {
		if err := l.listener.Appended(context.WithoutCancel(ctx), entries); err != nil {
			return err
		}
	}
	return nil
}

func (l *heaped) Updated(ctx context.Context, e core.Entry) error {
	if err := l.sortIn(ctx); err != nil {
		return err
	}
	return l.listener.Updated(ctx, e)
}

func (l *heaped) Deleted(ctx context.Context, scope core.Scope, ids []string) error {
	if err := l.sortIn(ctx); err != nil {
		return err
	}
	return l.listener.Deleted(ctx, scope, ids)
}

func (l *heaped) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	if err := l.sortIn(ctx); err != nil {
		return nil, err
	}
	return l.listener.Retrieve(ctx, q)
}

// scrubbed leaves nothing of what was erased, and nothing of the rest.
type scrubbed struct{ listener }

func (l *scrubbed) Scrub(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = nil
	return nil
}
