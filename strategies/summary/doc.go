// Package summary compacts with a language model: the oldest groups of a conversation are replaced by texts that a
// model writes about them.
//
// Start with New and hand the result to core.New as Parts.Compactor:
//
//	compactor, err := summary.New(summary.DefaultConfig(), model)
//
// # What becomes of the history
//
// The oldest groups are taken until what is left, new texts included, costs at most the target. They are cut into
// chunks; each chunk is shown to the model as quoted data and becomes one summary. Chunks are worked on in parallel,
// but published in order, each as soon as it is paid for, so that a compaction that is cut short keeps what it has.
// The last one is returned in the patch.
//
// A compactor does not learn the ids of what it has just published, so chunks are not merged with each other
// afterwards. Instead, when the summaries of earlier compactions and the new ones together would be more than
// MaxSummaries, or cost more than 40 % of the target, the earlier ones are condensed into one first: a replacement that
// names summaries and no entries. Where one compaction alone has more chunks than MaxSummaries, neighbouring chunks share
// a summary: each is summarised, and the texts are merged before they are published.
//
// # When the model fails
//
// The model is never trusted. An answer that is empty, a refusal, garbage, or longer than its source is dropped; a
// call that takes longer than CallTimeout is given up. The next model is asked (see WithFallbacks), and when none is
// left, a digest made without a model takes the text's place: who asked what, which tools ran how often, the
// identifiers, paths and numbers that were mentioned, and the last conclusion. After Failures failures in a row, or when
// the deadline of the compaction is near, no model is asked any more. Such summaries have the kind "fallback".
//
// Without a model the host's is used when it offers completions; when it does not, every summary is a fallback.
package summary
