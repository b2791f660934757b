package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/internal/records"
)

// TestDamagedRecords: of receipts and outcomes that cannot be read nothing is returned, and the error names the entry: nobody takes what is left for all there is.
func TestDamagedRecords(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("one"), assistant("two"))
	for _, name := range []string{"first", "second"} {
		if err := f.engine.Score(t.Context(), engine.Outcome{Session: f.id, Name: name, Value: 1}); err != nil {
			t.Fatal(err)
		}
		f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("o").ID}})
	}
	for session, read := range map[string]func() (int, error){
		records.Receipts: func() (int, error) { got, err := f.engine.Receipts(t.Context(), f.id.Agent); return len(got), err },
		records.Outcomes: func() (int, error) { got, err := f.engine.Outcomes(t.Context(), f.id.Agent); return len(got), err },
	} {
		if n, err := read(); n != 2 || err != nil {
			t.Fatalf("%s: %d, %v", session, n, err)
		}
		scope, last := core.Scope{Agent: f.id.Agent, Session: session}, core.Entry{}
		for entry, err := range core.All(t.Context(), f.store, scope, false) {
			if err != nil {
				t.Fatal(err)
			}
			last = entry
		}
		for key := range last.Meta {
			last.Meta[key] = "{"
		}
		if err := f.store.Update(t.Context(), scope, last.ID, core.Change{Meta: last.Meta}); err != nil {
			t.Fatal(err)
		}
		if n, err := read(); n != 0 || err == nil || !strings.Contains(err.Error(), last.ID) {
			t.Errorf("%s: %d, %v, want an error that names %q", session, n, err, last.ID)
		}
	}
}

// TestRecordsThatCannotBeKept: a time that no record can hold is refused, and leaves none.
func TestRecordsThatCannotBeKept(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("one"))
	late := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := f.engine.Score(t.Context(), engine.Outcome{Session: f.id, Name: "good", Value: 1, Time: late}); err == nil {
		t.Error("an outcome of the year 10000 was taken")
	}
	if rec, err := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), From: late}); err == nil {
		t.Errorf("an erasure from the year 10000 on was taken: %+v", rec)
	}
	outcomes, err := f.engine.Outcomes(t.Context(), f.id.Agent)
	if err != nil || len(outcomes) != 0 {
		t.Errorf("outcomes %+v, %v", outcomes, err)
	}
	receipts, err := f.engine.Receipts(t.Context(), f.id.Agent)
	if err != nil || len(receipts) != 0 {
		t.Errorf("receipts %+v, %v", receipts, err)
	}
}
