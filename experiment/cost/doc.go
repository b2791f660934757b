// Package cost measures what prompts cost where a provider keeps the beginning of the last one, against what stands in them.
//
// # Protocol
//
// A transcript is replayed call by call (package experiment). A byte that the prompt before began with costs as much as a cached one, any other 1. The cost
// of all prompts is given relative to two others for the same calls: a window that slides by one group at a time, and a host that shows everything until
// the budget is full and then lets a model write a summary in front of the newest 20,000 tokens, without and with what that model is sent.
//
// Evidence is what the next answer takes from before: the identifiers in the arguments of its tool calls that were said earlier. It counts as shown when the
// prompt says it, in the window or recalled.
//
//	row, err := cost.Measure(ctx, sessions, arm, 32_000, counter)
package cost
