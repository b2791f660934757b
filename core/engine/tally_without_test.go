package engine_test

import "testing"

// TestTallyOfASessionWithoutAnArm: what a session does while it has no arm is counted nowhere, whatever arm it had before and has afterwards.
func TestTallyOfASessionWithoutAnArm(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("one"), assistant("two"))
	arm := func(name string) {
		t.Helper()
		if _, err := f.engine.Arm(t.Context(), f.id, func(string) string { return name }); err != nil {
			t.Fatal(err)
		}
	}
	calls := func() int64 {
		t.Helper()
		v, err := f.store.LoadView(t.Context(), f.id)
		if err != nil {
			t.Fatal(err)
		}
		return v.Tally.Calls
	}
	arm("a")
	f.assemble(1000)
	f.ingest(user("three"))
	if got := calls(); got != 1 {
		t.Fatalf("%d calls are counted, want 1", got)
	}
	arm("")
	before := calls()
	f.assemble(1000)
	f.assemble(1000)
	arm("b")
	f.ingest(user("four"))
	if got := calls(); got != before {
		t.Errorf("%d calls are counted, want %d: there was no arm", got, before)
	}
}
