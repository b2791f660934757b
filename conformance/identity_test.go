package conformance_test

import (
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// valueEngine and valueStore cannot be compared with ==: they are values that hold a function, a slice and a map.
type valueEngine struct {
	*engine.Engine
	now  func() time.Time
	tags []string
	more map[string]any
}

type valueStore struct {
	core.Store
	now  func() time.Time
	tags []string
	more any
}

func (s valueStore) Unwrap() core.Store { return s.Store }

// TestValues: parts whose Go values cannot be compared are as good as others.
func TestValues(t *testing.T) {
	t.Parallel()
	tags, more := []string{"a"}, map[string]any{"b": 1}
	wrapped := func(s core.Store) core.Store { return valueStore{Store: s, now: time.Now, tags: tags, more: more} }
	t.Run("engine", func(t *testing.T) {
		t.Parallel()
		conformance.TestEngine(t, "values", func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
			tb.Helper()
			if env.Store == nil {
				env.Store = wrapped(memory.New())
			}
			opened, store := recalling(nil).open(tb, env)
			e, ok := opened.(*engine.Engine)
			if !ok {
				tb.Fatalf("engine is a %T", opened)
			}
			return valueEngine{Engine: e, now: time.Now, tags: tags, more: more}, store
		}, cheap, conformance.WithClaims("contract"), conformance.WithCases(3))
	})
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		conformance.TestStore(t, func(testing.TB) core.Store { return wrapped(memory.New()) }, conformance.WithClaims("shared", "store"), conformance.WithCases(3),
			conformance.WithAnother(func(_ testing.TB, s core.Store) core.Store { return s }),
			conformance.WithReopen(func(_ testing.TB, s core.Store) core.Store { return s }))
	})
}
