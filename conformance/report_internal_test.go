package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorder is a testing.TB that keeps what it is told.
type recorder struct {
	testing.TB
	errors, logs []string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Name() string              { return "TestPart" }
func (r *recorder) Log(args ...any)           { r.logs = append(r.logs, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, fmt.Sprintf(f, a...)) }

// TestStrict: what was not looked at is reported, and fails a strict suite that found nothing else.
func TestStrict(t *testing.T) {
	counted := func() *watch {
		w := newWatch(patience)
		w.tally.did(opAssembled, 100)
		w.tally.did(opRefused, 4)
		w.tally.saw("recall.quoted", 0)
		w.tally.saw("order.tail", 7)
		w.tally.struck("append", 3)
		w.tally.struck("swap", 0)
		w.tally.left(Check{ID: "contract.back"}, []Need{NeedRecaller})
		w.tally.left(Check{ID: "cache.loop"}, nil)
		return w
	}
	want := []string{
		"recall.quoted never had anything to look at", `the fault "swap" never struck`,
		"4 of 100 assembles were refused for want of budget, want at least 5 %",
	}
	for _, c := range []struct{ strict, failed, errs bool }{{true, false, true}, {true, true, false}, {false, false, false}} {
		rec, got := &recorder{}, Report{}
		options{watch: counted(), seed: 9, strict: c.strict, reported: func(r Report) { got = r }}.close(rec, c.failed)
		if d := cmp.Diff(want, got.Vacuous()); d != "" {
			t.Error(d)
		}
		if len(rec.errors) != map[bool]int{true: len(want)}[c.errs] {
			t.Errorf("strict %v, failed %v: errors %q", c.strict, c.failed, rec.errors)
		}
		text := strings.Join(rec.logs, "\n")
		for _, part := range append(want, "TestPart: 104 operations, 1 rules applied, seed 9", "append 3 swap 0", "engine.Recaller (contract.back)", "not claimed:  cache.loop") {
			if !strings.Contains(text, part) {
				t.Errorf("the report does not say %q:\n%s", part, text)
			}
		}
		b, err := json.Marshal(got)
		var back Report
		if err != nil || json.Unmarshal(b, &back) != nil {
			t.Fatalf("%s: error %v", b, err)
		}
		if d := cmp.Diff(got, back); d != "" {
			t.Error(d)
		}
		if !slices.Equal(got.Never, []string{"recall.quoted"}) {
			t.Errorf("never: %q", got.Never)
		}
	}
}

// TestHungNamesItsOwn: what a suite says of a call that hangs shows where that call stands, whatever hangs beside it.
func TestHungNamesItsOwn(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	for range 3 {
		if text, hung := newWatch(time.Millisecond).run(t, func() string { return otherThatHangs(over) }); !hung || !strings.Contains(text, "otherThatHangs") {
			t.Fatalf("hung %v: %s", hung, text)
		}
	}
	text, hung := newWatch(time.Millisecond).run(t, func() string { return oneThatHangs(over) })
	if !hung || !strings.Contains(text, "oneThatHangs") || strings.Contains(text, "otherThatHangs") {
		t.Errorf("hung %v: %s", hung, text)
	}
}

func oneThatHangs(over chan struct{}) string { <-over; return "" }

func otherThatHangs(over chan struct{}) string { <-over; return "" }
