package conformance_test

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/internal/needs"
)

// TestMain lets garbage grow: every case makes stores and engines of its own, and a quarter of the time went into collecting them.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// fault is a deliberately broken implementation and what must catch it.
type fault struct {
	name string
	// caught are the checks of which at least one must catch it, kin those that may report it too.
	caught []string
	kin    []string
	find   func(t *testing.T) []conformance.Finding
	// examine is find for a number of cases.
	examine func(t *testing.T, cases int) []conformance.Finding
	part    part
}

// with returns f with a number of cases: rare faults need more.
func (f fault) with(cases int) fault {
	f.find = func(t *testing.T) []conformance.Finding { t.Helper(); return f.examine(t, cases) }
	return f
}

// judge holds what was found against what must be. Findings that the sound implementation has as well say nothing about the fault.
func (f fault) judge(t *testing.T, sound []string) []string {
	t.Helper()
	var by, stray []string
	for _, found := range f.find(t) {
		id := found.ID()
		switch {
		case slices.Contains(f.caught, id):
			by = append(by, id)
		case slices.Contains(sound, id), slices.Contains(f.kin, id), slices.Contains(f.kin, found.Check.Family()+".*"):
		default:
			stray = append(stray, id)
			t.Log(found)
		}
	}
	if len(by) == 0 {
		t.Errorf("fault %q: caught by none of %q", f.name, f.caught)
	}
	if len(stray) > 0 {
		t.Errorf("fault %q: also reported by %q, which are no kin of %q", f.name, stray, f.caught)
	}
	return by
}

// TestFaulty shows that every check can fail: each broken implementation is caught by the checks made for it and by no others.
func TestFaulty(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	var mu sync.Mutex
	proven := map[string]bool{}
	for suite, faults := range map[string][]fault{
		"store": faultyStores(), "searcher": faultySearchers(), "retriever": faultyRetrievers(), "compactor": faultyCompactors(),
		"engine": faultyEngines(t),
	} {
		t.Run(suite, func(t *testing.T) {
			for _, f := range faults {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					by := f.judge(t, nil)
					t.Logf("caught by %s", strings.Join(by, ", "))
					mu.Lock()
					defer mu.Unlock()
					for _, id := range by {
						proven[id] = true
					}
				})
			}
		})
	}
	var unproven []string
	for _, c := range conformance.Checks() {
		if !proven[c.ID] {
			unproven = append(unproven, c.ID)
		}
	}
	t.Logf("%d checks, without a broken implementation here: %q", len(conformance.Checks()), unproven)
}

// telling restricts a suite to the checks that tell something about a fault: those that must catch it and those that must not. What its kin
// report is allowed either way.
func telling(caught, kin []string) conformance.Option {
	kin = append([]string{"sequence.*"}, kin...) // those look at everything
	var ids []string
	for _, c := range conformance.Checks() {
		if slices.Contains(caught, c.ID) || !slices.Contains(kin, c.ID) && !slices.Contains(kin, c.Family()+".*") {
			ids = append(ids, c.ID)
		}
	}
	return conformance.WithClaims(ids...)
}

// few are the options for faults: enough cases to find a gross fault, no time spent on the smallest example, and the same
// cases every time.
func few(n int) []conformance.Option {
	return []conformance.Option{conformance.WithExactly(n, 20260301), conformance.WithoutShrinking()}
}
