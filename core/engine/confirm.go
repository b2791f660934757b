package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/internal/records"
)

// confirmed leaves out of a list of quotations what was erased: a retriever may go on remembering it. Only where something was erased the store is asked.
func (f *frame) confirmed(ctx context.Context, in []quotation) ([]quotation, error) {
	ids := make(map[core.SessionID][]string)
	for i := range in {
		id := in[i].Entry.SessionID()
		erased := f.v.Erased > 0
		if id != f.s.id {
			var err error
			if erased, err = f.e.erasures.everErased(ctx, id.Agent); err != nil {
				return nil, err
			}
		}
		if erased {
			ids[id] = append(ids[id], in[i].Entry.ID)
		}
	}
	gone := make(map[string]bool)
	for id, list := range ids {
		if err := f.e.erasures.findGone(ctx, id.Scope(), list, gone); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(in, func(q quotation) bool { return gone[q.Entry.ID] }), nil
}

// findGone notes which entries are erased or not there any more.
func (t *erasures) findGone(ctx context.Context, scope core.Scope, ids []string, gone map[string]bool) error {
	got, err := t.store.Get(ctx, scope, ids)
	switch {
	case errors.Is(err, core.ErrNotFound) && len(ids) == 1:
		gone[ids[0]] = true
		return nil
	case errors.Is(err, core.ErrNotFound):
		for i := range ids { // one of them is missing
			if err := t.findGone(ctx, scope, ids[i:i+1], gone); err != nil {
				return err
			}
		}
		return nil
	}
	for _, entry := range got {
		gone[entry.ID] = entry.Hidden()
	}
	return err
}

// everErased reports whether anything of an agent's was erased, by whichever process. Once it was, that stays so. Until then a store that several processes use is
// asked whether there is a key, in one cheap read; any other is asked once.
func (t *erasures) everErased(ctx context.Context, agent string) (bool, error) {
	t.mu.Lock()
	p, known := t.prints[agent]
	t.mu.Unlock()
	if len(p) > 0 {
		return true, nil
	}
	tail, tells, err := t.reader.tail(ctx, core.SessionID{Agent: agent, Session: records.Secrets})
	if err != nil || known && !tells || tells && tail.Next == 0 {
		return false, err
	}
	if p, err = erased.ReadPrints(ctx, t.store, agent); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.prints[agent]) == 0 {
		t.prints[agent] = p
	}
	return len(t.prints[agent]) > 0, nil
}
