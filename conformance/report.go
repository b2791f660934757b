package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Report says what a suite did and what it did not: a rule that never had anything to look at was not tested. String is the text of it, and it encodes as JSON.
type Report struct {
	// Name is the test's, Seed the base seed.
	Name string `json:"name"`
	Seed int64  `json:"seed"`
	// Operations counts what was asked of the part, by operation. For stores, retrievers and compactors it is the calls each check made, by its id.
	Operations map[string]int `json:"operations"`
	// Rules counts how often each rule had something to look at: cases, prompts, compactions or calls.
	Rules map[string]int `json:"rules"`
	// Never lists rules that never had.
	Never []string `json:"never"`
	// Faults counts how often each fault struck that was injected, 0 for one that was armed and never did.
	Faults map[string]int `json:"faults,omitempty"`
	// Missing lists the rules that were not run, by what the part does not have; Unclaimed those it is not held to.
	Missing   map[Need][]string `json:"missing,omitempty"`
	Unclaimed []string          `json:"unclaimed,omitempty"`
}

// refusedShare is the smallest share of assembles that must be refused for want of budget: half of the first promise is about those.
const refusedShare = 0.05

// The operations that the share is made of.
const (
	opAssembled = "assemble"
	opRefused   = "assemble refused"
)

// Vacuous says, a sentence each, what was not tested although the part has what it takes.
func (r Report) Vacuous() []string {
	var out []string
	for _, id := range r.Never {
		out = append(out, fmt.Sprintf("%s never had anything to look at", id))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		if r.Faults[name] == 0 {
			out = append(out, fmt.Sprintf("the fault %q never struck", name))
		}
	}
	if all, refused := r.Operations[opAssembled], r.Operations[opRefused]; float64(refused) < refusedShare*float64(all) {
		out = append(out, fmt.Sprintf("%d of %d assembles were refused for want of budget, want at least %.0f %%", refused, all, 100*refusedShare))
	}
	return out
}

// String returns the report as text, without what is as it should be.
func (r Report) String() string {
	var b strings.Builder
	calls := 0
	for _, n := range r.Operations {
		calls += n
	}
	fmt.Fprintf(&b, "%s: %d operations, %d rules applied, seed %d", r.Name, calls, len(r.Rules)-len(r.Never), r.Seed)
	if len(r.Faults) > 0 {
		b.WriteString("\nfaults struck:")
		for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
			fmt.Fprintf(&b, " %s %d", name, r.Faults[name])
		}
	}
	for _, need := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(&b, "\nnot there:    %s (%s)", need, strings.Join(r.Missing[need], ", "))
	}
	if len(r.Unclaimed) > 0 {
		fmt.Fprintf(&b, "\nnot claimed:  %s", strings.Join(r.Unclaimed, ", "))
	}
	for _, text := range r.Vacuous() {
		fmt.Fprintf(&b, "\nnot tested:   %s", text)
	}
	return b.String()
}

// tally counts for a report. It is safe for concurrent use; nil counts nothing.
type tally struct {
	mu sync.Mutex
	r  Report
}

func newTally() *tally {
	return &tally{r: Report{Operations: map[string]int{}, Rules: map[string]int{}, Faults: map[string]int{}, Missing: map[Need][]string{}}}
}

// did counts operations.
func (t *tally) did(name string, n int) { t.add(func(r *Report) { r.Operations[name] += n }) }

// saw counts n times that a rule had something to look at; 0 notes that it was there to be applied.
func (t *tally) saw(id string, n int) { t.add(func(r *Report) { r.Rules[id] += n }) }

// struck counts how often an armed fault struck.
func (t *tally) struck(fault string, n int) { t.add(func(r *Report) { r.Faults[fault] += n }) }

func (t *tally) add(f func(*Report)) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.r)
}

// left notes a check that is not run.
func (t *tally) left(c Check, needs []Need) {
	t.add(func(r *Report) {
		for _, n := range needs {
			r.Missing[n] = append(r.Missing[n], c.ID)
		}
		if len(needs) == 0 {
			r.Unclaimed = append(r.Unclaimed, c.ID)
		}
	})
}

// without notes what is not done because a need is not met.
func (t *tally) without(n Need, what string) {
	t.add(func(r *Report) {
		if !slices.Contains(r.Missing[n], what) {
			r.Missing[n] = append(r.Missing[n], what)
		}
	})
}

// during counts the calls of a part while one check runs; the function that it returns ends that.
func (t *tally) during(c Check, w *watch) func() {
	before := w.beats.Load()
	return func() {
		n := int(w.beats.Load() - before)
		t.did(c.ID, n)
		t.saw(c.ID, n)
	}
}

// report returns what was counted.
func (t *tally) report(name string, seed int64) Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.r
	r.Name, r.Seed = name, seed
	r.Never = nil
	for _, id := range slices.Sorted(maps.Keys(r.Rules)) {
		if r.Rules[id] == 0 {
			r.Never = append(r.Never, id)
		}
	}
	return r
}

// close hands the report over, and fails a strict suite that left something untested. failed says that a rule broke: then the suite ended early.
func (o options) close(tb testing.TB, failed bool) {
	tb.Helper()
	r := o.watch.tally.report(tb.Name(), o.seed)
	tb.Log(r)
	if o.reported != nil {
		o.reported(r)
	}
	if !o.strict || failed {
		return
	}
	for _, text := range r.Vacuous() {
		tb.Errorf("strict: %s", text)
	}
}
