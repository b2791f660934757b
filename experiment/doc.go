// Package experiment replays conversations through context engines, verifies what the engines promise while it does, and
// measures how well they use the window.
//
// Start with Replay for one conversation through one engine, or with Run for every combination of conversations, budgets
// and configurations:
//
//	sessions, err := dataset.Open("session.jsonl", dataset.Options{})
//	reports, err := experiment.Run(ctx, experiment.Plan{
//		Sessions: sessions,
//		Budgets:  []int{8000, 32000},
//		Arms:     []experiment.Arm{{Name: "mine", Open: open}},
//		Counter:  counter,
//	})
//
// A replay calls no model: the answers are those of the transcript, and the host around the engine is simulated (SimHost). The
// verification shares no code with the engines: it decodes the bytes that a model would be sent and counts, pairs and
// compares them on its own.
package experiment
