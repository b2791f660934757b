package openbrain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

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

// TestMirrorFollowsAnything: whatever is stored, changed and deleted, in whatever order, what is done in place amounts to sorting it all anew, and lists that were handed
// out stay as they are.
func TestMirrorFollowsAnything(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	words := func(list []record) string {
		var out string
		for _, r := range list {
			out += fmt.Sprintf("%s %s %s %s %d, ", r.thought, r.entry.ID, r.entry.Session, r.entry.Key, r.entry.Seq)
		}
		return out
	}
	var all []record
	c := sortOut(nil)
	given := map[string][]record{}
	inPlace := 0
	for n := range 2000 {
		simple := false
		switch at := rnd.IntN(max(len(all), 1)); {
		case len(all) == 0 || rnd.IntN(3) == 0:
			r := record{thought: fmt.Sprintf("t%05d", n), created: time.Unix(int64(n), 0)}
			r.entry.ID, r.entry.Session, r.entry.Key = fmt.Sprint("e", n-rnd.IntN(20)/19), fmt.Sprint("s", rnd.IntN(3)), fmt.Sprint("k", n-rnd.IntN(20)/19)
			if r.entry.Seq = int64(n); rnd.IntN(4) == 0 {
				r.entry.Seq = int64(rnd.IntN(n + 1))
			}
			if rnd.IntN(20) == 0 {
				r.batch = batch{ID: fmt.Sprint("b", n), End: rnd.IntN(2) == 0}
			}
			all = append(all, r)
			simple = c.extend(r)
		case rnd.IntN(2) == 0:
			r := all[at]
			r.entry.Key = fmt.Sprint("k", rnd.IntN(n+1))
			simple = c.replace(&all[at], r)
			all[at] = r
		default:
			simple = c.remove(&all[at])
			all = slices.Delete(all, at, at+1)
		}
		want := sortOut(slices.Clone(all))
		if !simple {
			c = want
			continue
		}
		inPlace++
		if words(c.visible) != words(want.visible) || len(want.copies)+len(want.hidden) != len(c.copies)+len(c.hidden) {
			t.Fatalf("step %d: %s\nwant %s", n, words(c.visible), words(want.visible))
		}
		given[words(c.visible)] = c.visible
	}
	for text, list := range given {
		if words(list) != text {
			t.Errorf("a list that was handed out changed: %s\nwas %s", words(list), text)
		}
	}
	if inPlace == 0 {
		t.Error("nothing was done in place")
	}
}
