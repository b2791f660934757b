package compare_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/compare"
	"github.com/contextengine/contextengine/experiment/stats"
)

// reports are replays of n conversations in which the second arm fills f points more and costs c points more than the first.
func reports(n int, fill, cost float64) []experiment.Report {
	var out []experiment.Report
	for i := range n {
		for a, arm := range []string{"A", "B"} {
			r := experiment.Report{Session: fmt.Sprint("s", i), Arm: arm, Budget: 2000, Calls: 10, Full: 5, FillMedian: 0.5 + float64(i)/100, CostNoCache: 0.4}
			r.FillMedian += float64(a) * (fill + float64(i%2)/1000)
			r.CostNoCache += float64(a) * (cost + float64(i%2)/1000)
			out = append(out, r)
		}
	}
	return out
}

func TestVerdicts(t *testing.T) {
	res, err := compare.From(reports(8, 0.03, 0.0512), []string{"A", "B"}, []int{2000}, 1)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]compare.Difference{}
	for _, d := range res.Differences {
		got[d.Metric] = d
	}
	for metric, want := range map[string]struct {
		begins   string
		decision stats.Decision
	}{
		"fill":  {"B better by 3.1 points, 95 % 3.", stats.Better}, // more is better
		"cost":  {"A better by 5.2 points, 95 % 5.", stats.Worse},
		"reuse": {"no difference: the same everywhere", stats.Same},
	} {
		if d := got[metric]; !strings.HasPrefix(d.Verdict, want.begins) || d.Decision != want.decision {
			t.Errorf("%s: %q, %q; want %q, %q", metric, d.Verdict, d.Decision, want.begins, want.decision)
		}
	}
	if len(res.Values) != 2*len(compare.Metrics()) || res.Conversations != 8 {
		t.Errorf("%d values, %d conversations", len(res.Values), res.Conversations)
	}
}

// TestOneConversation: no interval can be had from one, and the verdict does not pretend.
func TestOneConversation(t *testing.T) {
	res, err := compare.From(reports(1, 0.03, 0), []string{"A", "B"}, []int{2000}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range res.Differences {
		if d.Decision != stats.TooFew || d.Metric == "fill" && !strings.HasPrefix(d.Verdict, "too few to tell (1 conversation, 5 are needed): 3.") {
			t.Errorf("%s: %q, %q", d.Metric, d.Verdict, d.Decision)
		}
	}
}

// TestFailedReplay: what could not be finished is told, and does not enter the figures.
func TestFailedReplay(t *testing.T) {
	all := reports(3, 0, 0)
	all[1].Error, all[1].FillMedian = "store is gone", 99
	res, err := compare.From(all, []string{"A", "B"}, []int{2000}, 1)
	if err == nil || !strings.Contains(err.Error(), "store is gone") {
		t.Errorf("error %v", err)
	}
	for _, d := range res.Differences {
		if d.Metric == "fill" && (d.Difference.Clusters != 2 || d.Difference.Mean > 1) {
			t.Errorf("%+v", d)
		}
	}
}

func TestNamesTwice(t *testing.T) {
	_, err := compare.Run(t.Context(), compare.Plan{Plan: experiment.Plan{Arms: []experiment.Arm{{Name: "A"}, {Name: "A"}}}})
	if err == nil {
		t.Error("two arms of one name are accepted")
	}
}
