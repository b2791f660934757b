// Package compare replays the same conversations through several configurations and says in which figures they differ.
//
//	result, err := compare.Run(ctx, compare.Plan{Plan: experiment.Plan{Sessions: sessions, Budgets: []int{8000, 32000}, Arms: arms, Counter: counter}})
//	for _, d := range result.Differences {
//		fmt.Println(d.Budget, d.Metric, d.Verdict)
//	}
//
// A conversation is the unit: every arm gives one value for each, differences are paired, and their intervals come from resampling whole
// conversations (see experiment/stats). With one conversation there is no interval, and the verdict says so.
package compare
