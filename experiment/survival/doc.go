// Package survival measures what a compaction costs an agent: of the identifiers that it uses later, how many are still there.
//
// # Protocol
//
// A conversation is cut at a point. Identifiers needed later are those that stand in the arguments of tool calls behind the cut, that were said before
// it, and that nothing between the cut and their use says again: the agent can only have them from before. The messages before
// the cut go through a real engine: they are ingested, a prompt is assembled that shows all of them, Compact is forced down to a
// share of the history, and a prompt is assembled again. Survival is the share of the needed identifiers that this
// prompt still says, byte for byte; what is kept is what its messages cost, relative to the messages before the cut. Cuts are spread
// evenly, five in a conversation unless said otherwise.
//
// What the engine would recall for a question is left out: the arms have no retriever, so the figures are those of the window alone. Identifiers
// are found here by code of its own (Identifiers), not by the compactors'.
//
// Start with Measure for one conversation, and Add the results of several:
//
//	rows, err := survival.Measure(ctx, survival.Spec{Session: s, Arms: survival.Arms(counter), Keep: []float64{0.4, 0.15}})
package survival
