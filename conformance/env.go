package conformance

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Env is what a combination builds its engine with.
type Env struct {
	// Host is the simulated runtime; its clock is the engine's clock.
	Host *Host
	// Model answers completions, for compactors that are given a completer instead of the host.
	Model *Model
	// Count is the counter to build the engine with, and what prompts are recounted with.
	Count core.TokenCounter
	// IDs makes entry ids that are the same in every run of one case.
	IDs func() string
	// Deadline is how long a compaction or a recall may take; configure the engine with it.
	Deadline time.Duration
	// Store is nil for a new engine. After a restart it is the store that Open returned before: the engine is built anew over it. The engine
	// must not own it.
	Store core.Store
	// faults are injected by stores made with Wrap.
	faults *faults
}

// Wrap puts a store in front of s that fails when the suite wants it to. It shows all companions of s. Combinations call it on the store
// that they hand to the engine.
func (e Env) Wrap(s core.Store) core.Store {
	f := &faultStore{inner: s, faults: e.faults}
	if v, ok := core.As[core.ViewStore](s); ok {
		return &faultViewStore{faultStore: f, views: v}
	}
	return f
}

// Combination is an engine made of certain parts.
type Combination struct {
	// Name is the name of the subtest.
	Name string
	// Open builds the engine and returns it with the store it keeps entries in. It registers clean-ups with tb.
	Open func(tb testing.TB, env Env) (core.ContextEngine, core.Store)
	// Reopen, when not nil, closes and opens a durable store at restarts; without it the same store is used again.
	Reopen func(tb testing.TB, old core.Store) core.Store
	// AcrossSessions says that recall reaches the agent's other sessions.
	AcrossSessions bool
	// ResetHistory says that recall brings back what was reset or forked away.
	ResetHistory bool
	// Scored says that the retriever gives every candidate a score above 0. One need not: a score only orders.
	Scored bool
	// Claims lists the ids or families of checks that the engine is held to; nil means all.
	Claims []string
	// Known lists checks that fail today, and where that is tracked.
	Known map[string]string
}

// newIDs returns a source of ids that counts.
func newIDs() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("id%05d", n.Add(1)) }
}
