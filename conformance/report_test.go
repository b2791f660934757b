package conformance_test

import (
	"slices"
	"testing"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// TestReport: a suite says what it did, and what a part gave it nothing to look at.
func TestReport(t *testing.T) {
	t.Parallel()
	var got []conformance.Report
	keep := conformance.WithReport(func(r conformance.Report) { got = append(got, r) })
	few := conformance.WithExactly(8, 20260301)
	t.Run("store", func(t *testing.T) { conformance.TestStore(t, openMemory, few, keep) })
	t.Run("engine", func(t *testing.T) {
		conformance.TestEngine(t, "silent", setup{compactor: "archive"}.open, cheap, few, keep)
	})
	t.Run("retriever", func(t *testing.T) {
		conformance.TestRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return words(), openMemory(t) }, few, keep, conformance.WithClaims("isolation.retrieve"))
	})
	if len(got) != 3 {
		t.Fatalf("%d reports, want 3", len(got))
	}
	store, engine, retriever := got[0], got[1], got[2]
	if store.Operations["append.atomic"] == 0 || !slices.Contains(store.Missing[conformance.NeedSearcher], "search.finds") || len(store.Vacuous()) > 0 {
		t.Errorf("store: %s", store)
	}
	if engine.Operations["assemble"] == 0 || engine.Operations["ingest"] == 0 || engine.Rules["order.tail"] == 0 || engine.Faults["append"]+engine.Faults["scan"] == 0 {
		t.Errorf("engine: %s", engine)
	}
	if !slices.Contains(engine.Never, "recall.quoted") || slices.Contains(engine.Never, "lost.readback") {
		t.Errorf("an engine without a retriever: rules that never applied: %q", engine.Never)
	}
	if retriever.Rules["isolation.retrieve"] == 0 || !slices.Contains(retriever.Unclaimed, "retrieve.order") {
		t.Errorf("retriever: %s", retriever)
	}
}
