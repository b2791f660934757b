package engine_test

import (
	"errors"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

type boxed struct{ core.Retriever }

type withFunction struct {
	core.Retriever
	f func()
}

// TestPartsThatCannotBeCompared: a part may be a value that holds one which cannot be compared.
func TestPartsThatCannotBeCompared(t *testing.T) {
	f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) {
		parts.Retriever = boxed{withFunction{&proposer{}, func() {}}}
	})
	f.say(f.id, false, user("one"))
	if got := shown(f.assemble(1000)); got == "" {
		t.Error("nothing is shown")
	}
}

// TestNothingIsDoneBehindTheEnd: also where there would be nothing to do.
func TestNothingIsDoneBehindTheEnd(t *testing.T) {
	f := newFixture(t)
	if err := f.engine.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, compact := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 1000, Force: true})
	_, maintain := f.engine.Maintain(t.Context(), core.MaintainRequest{Session: f.id, Budget: 1000})
	if !errors.Is(compact, core.ErrClosed) || !errors.Is(maintain, core.ErrClosed) {
		t.Errorf("compact: error %v, maintain: error %v, want ErrClosed", compact, maintain)
	}
}
