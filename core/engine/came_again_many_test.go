package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// afterUpdate is a store that has something happen behind the first change of an entry.
type afterUpdate struct {
	*memory.Store
	do func()
}

func (s *afterUpdate) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	err := s.Store.Update(ctx, scope, id, change)
	if do := s.do; do != nil {
		s.do = nil
		do()
	}
	return err
}

// TestErasedComesAgainAmongMany: what is said again while it is erased is erased too, counted, and taken out of every index, however much else is said meanwhile.
func TestErasedComesAgainAmongMany(t *testing.T) {
	for _, n := range []int{0, 1, core.MaxPage, 2*core.MaxPage + 1} {
		store, index := &afterUpdate{Store: memory.New()}, &told{there: make(map[string]string)}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Observers = store, []core.Observer{index} })
		f.store = store.Store
		named := message.Message{ID: "m1", Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: "my code is " + secret}}}
		f.ingest(user("hello"), named)
		store.do = func() {
			batch := make([]message.Message, 0, n+1)
			for i := range n {
				batch = append(batch, user(fmt.Sprint("more ", i)))
			}
			other, err := engine.New(engine.Parts{Store: store.Store, Compactor: &halver{}, Counter: wordCounter, Observers: []core.Observer{index}}, f.cfg)
			if err != nil {
				t.Fatal(err)
			}
			_, err = other.IngestBatch(t.Context(), core.IngestBatchRequest{Session: f.id, Messages: append(batch, named), IdempotencyKey: "again"})
			if err != nil {
				t.Error(err)
			}
		}
		before := f.entry(secret).ID
		rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{before}})
		if got := f.traces(); got != nil || f.stored() != n+3 {
			t.Errorf("%d came meanwhile: still there: %q, %d stored", n, got, f.stored())
		}
		if rec.Entries != 2 {
			t.Errorf("%d came meanwhile: %d erased, want both", n, rec.Entries)
		}
		for id, text := range index.there {
			if strings.Contains(text, secret) {
				t.Errorf("%d came meanwhile: the index holds %q", n, id)
			}
		}
	}
}
