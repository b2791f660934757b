package survival_test

import (
	"testing"

	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/experiment/survival"
	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/models/tiktoken"
)

// sessions reads the conversations of a file of the data folder.
func sessions(tb testing.TB, name string) []dataset.Session {
	tb.Helper()
	got, err := dataset.Open(datadir.File(tb, name), dataset.Options{KeepGoing: true})
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func totals(t *testing.T, name string, keep []float64, longArgs int) []survival.Total {
	t.Helper()
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	var rows []survival.Row
	for _, s := range sessions(t, name) {
		got, err := survival.Measure(t.Context(), survival.Spec{Session: s, Arms: survival.Arms()[2:], Keep: keep, Counter: counter.Count, LongArgs: longArgs})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, got...)
	}
	if testing.Verbose() {
		for _, r := range rows {
			if r.Arm == "mask+index+archive" && len(rows) < 100 {
				t.Logf("cut %d keep %.2f: %d of %d, bare %d, kept %.1f%% index %.1f%% lost %q", r.Cut, r.Keep, r.Survived, r.Needed, r.Bare,
					100*float64(r.Kept)/float64(r.History), 100*float64(r.Index)/float64(r.History), r.Lost)
			}
		}
	}
	out := survival.Add(rows)
	t.Logf("%s, arguments up to %d bytes\n%s", name, longArgs, survival.Table(out))
	return out
}

func TestCodingSession(t *testing.T) {
	for _, longArgs := range []int{400, 0} {
		if longArgs > 0 && testing.Short() {
			continue
		}
		for _, got := range totals(t, "pi/large-session.jsonl", []float64{0.4, 0.15}, longArgs) {
			if got.Arm != "mask+index+archive" {
				continue
			}
			want := 90.0
			if got.Keep < 0.2 {
				want = 85
			}
			if got.Survival() < want || got.KeptShare() > 100*got.Keep || got.Worst > 3 {
				t.Errorf("keeping %.1f %% (asked %.0f %%) %.1f %% survive, want %.0f %%; the index takes up to %.1f %%, want 3 %%",
					got.KeptShare(), 100*got.Keep, got.Survival(), want, got.Worst)
			}
		}
	}
}

func TestToolAgents(t *testing.T) {
	for _, got := range totals(t, "tau-bench/airline-dev.json", []float64{0.5}, 0) {
		if got.Arm == "mask+index+archive" && (got.Survival() < 98 || got.KeptShare() > 50) {
			t.Errorf("keeping %.1f %% %.1f %% survive, want 98 %% keeping 50 %%", got.KeptShare(), got.Survival())
		}
	}
}
