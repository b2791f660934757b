// Package summary compacts with a language model: the oldest groups of a conversation are replaced by texts that a
// model writes about them.
//
// Start with New and hand the result to engine.New as Parts.Compactor:
//
//	compactor, err := summary.New(summary.DefaultConfig(), model)
//
// # What becomes of the history
//
// The oldest groups are taken until what is left, new texts included, costs at most the target. They are cut into
// chunks; each chunk is shown to the model as quoted data and becomes one summary, a leaf. Chunks are worked on in parallel,
// but published in order, each as soon as it is paid for, so that a compaction that is cut short keeps what it has, and the next one
// goes on behind it.
//
// When there are more than MaxSummaries, or they cost more than 40 % of the target, Fanout neighbours become one text, a node: the
// smallest ones first, so that what is old is rarely written anew, and in one call, so that whatever is paid for is published. Earlier summaries are condensed in the same way. Every summary names what it stands
// for: a leaf its entries, a node the summaries it includes.
//
// # What the model does not decide
//
// A text is checked against all of its source, byte for byte. Identifiers, paths, hashes and numbers that are spelled otherwise are put
// right; identifiers that the source does not hold are taken out. Behind the model's words stand, exactly as they were written, the sentences that
// hold for longer (rules and preferences of users, open tasks, decisions, negations), and the words that are most likely needed again and that the
// text lacks, as far as their share of it goes. What was found is recorded with the summary (auditChecked, auditAltered, auditInvented,
// auditPinned, auditRepaired, auditMissing), beside model, prompt version, calls and tokens. An audit never fails a compaction.
//
// # When the model fails
//
// The model is never trusted. An answer that is empty, a refusal, garbage, or longer than its source is dropped; a
// call that takes longer than CallTimeout is given up. The next model is asked (see WithFallbacks), and when none is
// left, a digest made without a model takes the text's place: who asked what, which tools ran how often, and the last
// conclusion, with the same exact words behind it. After Failures failures in a row no model is asked for Cooldown, in later compactions neither; nor is
// one when the deadline of the compaction is near. Such summaries have the kind "fallback".
//
// When a limit of Spend is reached, what is paid for is published. A forced compaction goes on without a model; any other stops there, says so,
// and the next one goes on.
//
// Without a model the host's is used when it offers completions; when it does not, every summary is a fallback.
package summary
