package openbrain

import (
	"fmt"
	"testing"

	"github.com/contextengine/contextengine/core"
)

// Indexes of agents that nobody writes to make room; that of the agent in use stays.
func TestIndexesAreBounded(t *testing.T) {
	var a agents
	fill := func(name string, n int) *agent {
		g, err := a.acquire(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		g.set(census{}, false)
		for i := range n {
			g.add(record{entry: core.Entry{ID: fmt.Sprint(i), Session: "s", Key: fmt.Sprint(i)}, thought: fmt.Sprint(i)})
		}
		return g
	}
	idle := fill("idle", maxIndexed/2)
	a.release(idle)
	busy := fill("busy", 1)
	used := fill("used", maxIndexed/2+1)
	a.release(used)
	if idle.loaded || !used.loaded || !busy.loaded {
		t.Errorf("loaded: idle %t, used %t, busy %t; want only the idle one dropped", idle.loaded, used.loaded, busy.loaded)
	}
	a.release(busy)
	if want := maxIndexed/2 + 2; a.indexed != want {
		t.Errorf("indexed = %d, want %d", a.indexed, want)
	}
}

func TestThoughtIDsAreBounded(t *testing.T) {
	var ids thoughtIDs
	for i := range maxThoughtIDs + 10 {
		ids.put(fmt.Sprint(i), "x")
	}
	if len(ids.m) != maxThoughtIDs {
		t.Errorf("%d ids remembered, want %d", len(ids.m), maxThoughtIDs)
	}
}
