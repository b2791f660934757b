package experiment_test

import (
	"testing"

	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/internal/datadir"
)

func TestRealConversations(t *testing.T) {
	if testing.Short() {
		t.Skip("not run: -short")
	}
	count := counter(t)
	for _, tt := range []struct {
		file  string
		limit int
		arms  []experiment.Arm
	}{
		{"pi/large-session.jsonl", 1, []experiment.Arm{hybridArm(count)}},
		{"tau-bench/airline-dev.json", 3, []experiment.Arm{hybridArm(count), delegateArm(count)}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			sessions, err := dataset.Open(datadir.File(t, tt.file), dataset.Options{})
			if err != nil {
				t.Fatal(err)
			}
			reports, err := experiment.Run(t.Context(), experiment.Plan{
				Sessions: sessions[:tt.limit], Budgets: []int{8000}, Counter: count,
				Arms: tt.arms, Options: experiment.Options{Jitter: 0.03, Seed: 1},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range reports {
				if r.Error != "" || !r.ReadBack {
					t.Errorf("%s, %s: error %q, read back %v", r.Session, r.Arm, r.Error, r.ReadBack)
				}
				for _, v := range r.Violations[:min(len(r.Violations), 5)] {
					t.Errorf("%s, %s: %d violations: %v", r.Session, r.Arm, len(r.Violations), v)
				}
				t.Logf("%s %s: %d calls, fill %.2f/%.2f, reuse %.3f/%.3f, steps %d of %d", r.Session, r.Arm, r.Calls, r.FillMedian, r.FillP10,
					r.Reuse, r.ReuseAll, r.Steps, r.StepBound)
			}
		})
	}
}
