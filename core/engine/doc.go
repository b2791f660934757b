// Package engine composes a store, a retriever, a compactor and a host into a context engine. New makes one of Parts and a Config; the result answers the
// whole lifecycle of core.ContextEngine, and the requests of this package: Search, Expand, Describe, Forget, Arm, Score.
//
// An Assemble passes these files, in this order:
//
//  1. assemble.go takes the request and hands it on, step by step;
//  2. retry.go does it again when somebody else published first, and looks whether anybody did;
//  3. session.go opens the session, which one call has at a time, and publishes its view, which only the values of package edit change;
//  4. reconcile.go finds out what the host's transcript says that is new, or taken back;
//  5. ingest.go stores what is new;
//  6. fit.go finds where the window begins and makes it fit, by steps;
//  7. reader.go reads what it shows;
//  8. frame.go holds it: the messages behind the rules of package history, what each costs, what belongs together;
//  9. squeeze.go shortens what is too large for its place;
//  10. recall.go asks the retriever and builds the recall block;
//  11. quote.go says how large the block may be and chooses what it quotes;
//  12. emit.go renders the prompt, with the choices that led to it.
//
// What all of them use: gauge.go says what a message costs, whole and shortened; shown.go what is in the window already; said.go what a person said of a
// message; health.go what happens when a part fails.
//
// Beside that way: compact.go asks the compactor, apply.go checks its patch and publishes it; search.go and expand.go are the way back to what is
// not shown; forget.go and forget_views.go erase, erasures.go knows what was erased; mend.go puts a view right; subagent.go hands history on; arm.go counts what
// an experiment compares.
package engine
