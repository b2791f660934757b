package experiment_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/dataset"
)

func TestReplayOfSoundEngines(t *testing.T) {
	count := counter(t)
	session := example(t)
	for _, arm := range []experiment.Arm{hybridArm(count), delegateArm(count), legacyArm()} {
		t.Run(arm.Name, func(t *testing.T) {
			for _, budget := range []int{2000, 8000, 100000} {
				rep, err := experiment.Replay(t.Context(), experiment.Spec{
					Session: session, Arm: arm, Budget: budget, Counter: count, Options: experiment.Options{Sample: 3, Jitter: 0.03, Seed: 7},
				})
				if err != nil {
					t.Fatal(err)
				}
				if len(rep.Violations) > 0 {
					t.Errorf("budget %d: %v", budget, rep.Violations)
				}
				if rep.Calls != 76 || rep.Messages != 153 || rep.BudgetErrors != 0 {
					t.Errorf("budget %d: %d calls, %d messages, %d budget errors; want 76, 153, 0", budget, rep.Calls, rep.Messages, rep.BudgetErrors)
				}
				if legacy := rep.Engine == "legacy"; rep.ReadBack == legacy || rep.Claims == legacy {
					t.Errorf("%s: read back %v, claims %v", rep.Engine, rep.ReadBack, rep.Claims)
				}
				if budget == 100000 && (rep.Steps != 0 || rep.Full != 0 || rep.Compactions != 0) {
					t.Errorf("a budget that is never reached has %d steps, %d full calls, %d compactions", rep.Steps, rep.Full, rep.Compactions)
				}
				if budget == 2000 && rep.Claims && (rep.Full == 0 || rep.Reuse != 1 || rep.Steps+rep.Compactions == 0) {
					t.Errorf("a budget of 2000: %d full calls, reuse %v, %d steps, %d compactions", rep.Full, rep.Reuse, rep.Steps, rep.Compactions)
				}
			}
		})
	}
}

func TestReplayTwice(t *testing.T) {
	count := counter(t)
	var reports [2]experiment.Report
	for i := range reports {
		var err error
		if reports[i], err = experiment.Replay(t.Context(), experiment.Spec{
			Session: example(t), Arm: hybridArm(count), Budget: 2000, Counter: count, Options: experiment.Options{Jitter: 0.03, Seed: 3},
		}); err != nil {
			t.Fatal(err)
		}
		// How long it took is another matter.
		reports[i].AssembleP50, reports[i].AssembleP95 = 0, 0
	}
	if diff := cmp.Diff(reports[0], reports[1], cmpopts.IgnoreUnexported(experiment.Report{})); diff != "" {
		t.Errorf("two replays differ:\n%s", diff)
	}
}

func TestBudgetErrorWithReason(t *testing.T) {
	count := counter(t)
	session := example(t)
	long := message.New(message.System, strings.Repeat("a rule ", 3000))
	session.Messages = append([]message.Message{long}, session.Messages...)
	rep, err := experiment.Replay(t.Context(), experiment.Spec{Session: session, Arm: hybridArm(count), Budget: 2000, Counter: count})
	if err != nil {
		t.Fatal(err)
	}
	if rep.BudgetErrors != rep.Calls || len(rep.Violations) != 0 {
		t.Errorf("%d of %d calls have budget errors, violations %v; want all, and none", rep.BudgetErrors, rep.Calls, rep.Violations)
	}
}

func TestRun(t *testing.T) {
	count := counter(t)
	a, b := example(t), example(t)
	b.ID = "second"
	b.Messages = b.Messages[:40]
	last := 0
	plan := experiment.Plan{
		Sessions: []dataset.Session{a, b}, Budgets: []int{2000, 8000}, Arms: []experiment.Arm{hybridArm(count), legacyArm()},
		Counter: count, Progress: func(done, total int) {
			if done <= last || total != 4*(len(a.Messages)+len(b.Messages)) {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		},
	}
	reports, err := experiment.Run(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	type key struct {
		session, arm string
		budget       int
	}
	var got []key
	for _, r := range reports {
		got = append(got, key{r.Session, r.Arm, r.Budget})
	}
	var want []key
	for _, s := range []string{a.Name(), b.Name()} {
		for _, budget := range []int{2000, 8000} {
			want = append(want, key{s, "hybrid+archive", budget}, key{s, "legacy", budget})
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(key{})); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	sum := experiment.Merge("both", []experiment.Report{reports[0], reports[4]})
	if sum.Calls != reports[0].Calls+reports[4].Calls || sum.Sessions != 2 || sum.Full == 0 || sum.CostNoCache <= 0 {
		t.Errorf("merged report: %+v", sum)
	}
}

func TestRunGoesOnBehindAFailure(t *testing.T) {
	count := counter(t)
	bad := errors.New("no such store")
	plan := experiment.Plan{
		Sessions: []dataset.Session{example(t)}, Budgets: []int{2000}, Counter: count,
		Arms: []experiment.Arm{
			{Name: "bad", Open: func(context.Context, core.Host, core.SessionID) (experiment.Subject, error) {
				return experiment.Subject{}, bad
			}},
			hybridArm(count),
		},
	}
	reports, err := experiment.Run(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(reports[0].Error, bad.Error()) || reports[1].Error != "" || reports[1].Calls == 0 {
		t.Errorf("errors %q and %q, %d calls", reports[0].Error, reports[1].Error, reports[1].Calls)
	}
}

func TestRunIsCancelled(t *testing.T) {
	count := counter(t)
	ctx, cancel := context.WithCancel(t.Context())
	plan := experiment.Plan{
		Sessions: []dataset.Session{example(t)}, Budgets: []int{2000, 3000, 4000}, Counter: count, Workers: 1,
		Arms: []experiment.Arm{hybridArm(count)}, Progress: func(int, int) { cancel() },
	}
	if _, err := experiment.Run(ctx, plan); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
