package recall_test

import (
	"math"
	"testing"

	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/internal/needs"
)

// reached are figures of the development half, in percent, as the lexical index's own tests measure them.
type reached struct {
	group, measure string
	want, least    float64
}

func assertReached(t *testing.T, a recall.ArmResult, figures []reached) {
	t.Helper()
	for _, f := range figures {
		got := recallOf(t, a, f.group, f.measure)
		if got < f.least {
			t.Errorf("%s: %s at %s = %.2f, want at least %.1f", a.Name, f.group, f.measure, got, f.least)
		}
		if math.Abs(got-f.want) > 1.5 {
			t.Errorf("%s: %s at %s = %.2f, which is not the %.1f that was measured; if the ranking was changed on purpose, change it here", a.Name, f.group, f.measure, got, f.want)
		}
	}
}

// TestLoCoMo: the figures of the lexical index come out of the engine's parts.
func TestLoCoMo(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	res := measure(t, recall.Plan{Dataset: realData(t, "locomo/locomo-dev.json"), Seed: 1, Arms: []recall.Arm{arm(t, "memory", memoryStore, plain, nil)}})
	a := res.Arms[0]
	assertReached(t, a, []reached{
		{"categories 1-4", "R@10", 81.9, 81}, {"categories 1-4", "1k", 87.2, 86.5}, {"categories 1-4", "2k", 91.0, 90.5}, {"with adversarial", "R@10", 82.6, 80},
	})
	if g := a.Groups[0]; g.Questions != 786 || g.Measures[1].Recall.Clusters != 5 || g.Measures[1].Recall.High <= g.Measures[1].Recall.Mean {
		t.Errorf("%d questions, %+v", g.Questions, g.Measures[1].Recall)
	}
	if a.Failed != 0 || a.Degraded != 0 {
		t.Errorf("%d failed, %d degraded: %v", a.Failed, a.Degraded, a.Warnings)
	}
}

// TestSameOrder: the order over memory and sqlite is the same.
func TestSameOrder(t *testing.T) {
	t.Parallel()
	set := *realData(t, "locomo/locomo-dev.json")
	set.Conversations = set.Conversations[:1]
	res := measure(t, recall.Plan{
		Dataset: &set, Candidates: 100,
		Arms: []recall.Arm{arm(t, "memory", memoryStore, plain, nil), arm(t, "sqlite", sqliteStore, plain, nil)},
	})
	if o := res.Orders[0]; o.Same != o.Of || o.Of != set.Measured() {
		t.Errorf("the same order for %d of %d questions", o.Same, o.Of)
	}
	for _, c := range res.Comparisons {
		if d := c.Difference; d.N == 0 || d.Mean != 0 || d.Low != 0 || d.High != 0 {
			t.Errorf("%s at %s: %s", c.Group, c.Measure, c.Verdict)
		}
	}
}

// TestBEAM is the same for chats with long answers, where passages are packed.
func TestBEAM(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	res := measure(t, recall.Plan{Dataset: realData(t, "beam"), Arms: []recall.Arm{arm(t, "memory", memoryStore, plain, nil)}})
	assertReached(t, res.Arms[0], []reached{{"all", "4k", 85.2, 84}, {"all", "R@10", 61.1, 60}})
	if g := res.Arms[0].Groups[0]; g.Questions != 176 || g.Measures[0].Recall.Clusters != 10 {
		t.Errorf("%d questions, %+v", g.Questions, g.Measures[0].Recall)
	}
}
