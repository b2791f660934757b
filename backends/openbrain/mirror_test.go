package openbrain

import "testing"

// TestMirrorsAreBounded: those used longest ago go when all together take too much, and an agent that takes too much alone has none.
func TestMirrorsAreBounded(t *testing.T) {
	t.Parallel()
	var all mirrors
	use := func(agent string, bytes int) (kept bool) {
		t.Helper()
		m, err := all.acquire(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		if m == nil {
			return false
		}
		m.bytes += bytes
		all.release(agent, m)
		return all.byAgent[agent] == m
	}
	const half = maxMirrored / 2
	for _, step := range []struct {
		agent string
		bytes int
		kept  bool
		total int
	}{
		{"ann", half, true, half},
		{"bob", half, true, maxMirrored},
		{"ann", 0, true, maxMirrored},
		{"eve", 1, true, half + 1}, // bob goes
		{"bob", half - 1, true, maxMirrored},
		{"eve", maxMirrored, false, maxMirrored - 1},
		{"eve", 0, false, maxMirrored - 1},
	} {
		if kept := use(step.agent, step.bytes); kept != step.kept || all.bytes != step.total {
			t.Errorf("%s with %d more: kept is %v, %d bytes in all; want %v, %d", step.agent, step.bytes, kept, all.bytes, step.kept, step.total)
		}
	}
	all.clear()
	if !use("ann", half) || all.bytes != half {
		t.Errorf("after all were forgotten: %d bytes", all.bytes)
	}
}

// TestMirrorSortsLikeAListing: what a mirror is told step by step amounts to what a listing at its end does, copies and batches included.
func TestMirrorSortsLikeAListing(t *testing.T) {
	t.Parallel()
	if got := (&census{}).extend(record{batch: batch{ID: "b"}}); got {
		t.Error("a part of a batch was taken for a whole one")
	}
	c := sortOut(nil)
	one := record{thought: "t1"}
	one.entry.ID, one.entry.Session, one.entry.Key, one.entry.Seq = "e1", "s", "k1", 5
	two := one
	two.thought, two.entry.ID, two.entry.Key, two.entry.Seq = "t2", "e2", "k2", 3
	again := one
	again.thought = "t3"
	if !c.extend(one) || !c.extend(two) || c.extend(again) {
		t.Fatal("two entries and a copy of one: want the copy refused alone")
	}
	want := sortOut([]record{one, two})
	for i, r := range want.visible {
		if c.visible[i].thought != r.thought {
			t.Errorf("at %d stands %q, want %q", i, c.visible[i].thought, r.thought)
		}
	}
}
