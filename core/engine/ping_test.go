package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core/engine"
)

// Parts that can be asked whether they can be used now.
type (
	pingedStore struct {
		*memory.Store
		err error
	}
	pingedRetriever struct {
		common
		err error
	}
	pingedCompactor struct {
		halver
		err error
	}
)

func (p *pingedStore) Ping(context.Context) error     { return p.err }
func (p *pingedRetriever) Ping(context.Context) error { return p.err }
func (p *pingedCompactor) Ping(context.Context) error { return p.err }

// TestPing: every part that can be asked is, and what each says is in the answer.
func TestPing(t *testing.T) {
	store, retriever, compactor := &pingedStore{Store: memory.New()}, &pingedRetriever{}, &pingedCompactor{}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
		p.Store, p.Retriever, p.Compactor = store, retriever, compactor
	})
	if err := f.engine.Ping(t.Context()); err != nil {
		t.Errorf("all is well: %v", err)
	}
	store.err, retriever.err, compactor.err = errors.New("store away"), errors.New("retriever away"), errors.New("compactor away")
	err := f.engine.Ping(t.Context())
	for _, want := range []error{store.err, retriever.err, compactor.err} {
		if !errors.Is(err, want) {
			t.Errorf("Ping = %v, want %v in it", err, want)
		}
	}
	if err := newFixture(t).engine.Ping(t.Context()); err != nil {
		t.Errorf("parts that cannot be asked: %v", err)
	}
}
