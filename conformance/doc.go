// Package conformance holds the promises of the framework as properties. Whoever writes a store, a retriever, a
// compactor or a whole engine runs them from a test of a few lines:
//
//	func TestConformance(t *testing.T) {
//		conformance.TestStore(t, func(tb testing.TB) core.Store { return mystore.New() })
//	}
//
// TestStore, TestRetriever, TestCompactor, TestCounter, TestEmbedder and TestCompleter check a part on its contract. TestEngine and TestMatrix play generated
// sessions against whole engines, in the manner of a host that hands over its transcript and of a caller that does not, and
// check all promises on every step.
//
// What is checked is data, see Checks: each check has an id that does not change, the sentence it holds the
// implementation to, and what it needs. A failure prints that sentence, the smallest counter-example found, the
// seed and the command that repeats it. Seeds are random unless the flag -conformance.seed or the environment
// variable CONFORMANCE_SEED names one; -conformance.cases or CONFORMANCE_CASES sets the number of cases, CONFORMANCE_TIMES multiplies it, 0.5 halves it.
//
// A suite also says what it did not test, see Report: what passes because nothing happened is not tested, and WithStrict makes it a failure.
//
// A check that a part is known to fail can be named with Known, together with where that is tracked: it then
// fails as soon as it passes.
package conformance
