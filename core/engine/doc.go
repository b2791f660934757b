// Package engine composes a store, a retriever, a compactor and a host into a context engine. New makes one of Parts and a Config; the result answers the
// whole lifecycle of core.ContextEngine, and the requests of this package: Search, Expand, Describe, Forget, Arm, Score.
//
// Where to look, in the order in which a call passes:
//
//   - session.go opens a session, which one call has at a time, and publishes its view, which only the values of package edit change; retry.go does a call
//     again when somebody else published first;
//   - ingest.go stores what is said; reconcile.go, align.go, course.go and follow.go find out what a host's transcript says that is new, or taken back;
//   - assemble.go makes a window: coldstart.go finds where it begins, frame.go what stands in it, fit.go and squeeze.go make it fit;
//   - recall.go and quote.go fill the recall block, allowance.go and gate.go say how large it may be; emit.go renders the messages;
//   - compact.go asks the compactor, apply.go checks its patch and publishes it;
//   - search.go and expand.go are the way back to what is not shown; forget.go erases, mend.go and retreat.go put a view right.
package engine
