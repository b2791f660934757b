// Package core holds the contracts of the framework: what the author of a part, or of a host, reads.
//
// An engine decides what a language model sees on its next call. It is made of parts that can be exchanged one by
// one:
//
//   - a Store keeps every Entry for ever (store.go, entry.go; what only some stores can do is in companion.go),
//   - a Retriever proposes older entries worth recalling for the prompt at hand (retriever.go),
//   - a Compactor says, as a Patch, what may stand for history that has to go (compactor.go),
//   - a Host offers what only the runtime around the engine can do (host.go),
//   - a ContextEngine answers the lifecycle of a turn: Bootstrap, Ingest, CommitTurn, Assemble, Compact, AfterTurn, Maintain, subagent hooks and Dispose
//     (contextengine.go).
//
// The state of a session lives in one place, its View (view.go). View.Apply is what changes it, by the values of package edit; the engine publishes it by
// compare-and-swap.
//
// Package engine composes the parts into the one ContextEngine of this module. The other folders hold what parts and engine share: message and history are
// what is said and its rules, window is what stands in a prompt, injected what clients put into messages, capability what hosts offer and
// parts need of them, vector, retain and upkeep what some stores can do, and keyed makes a Store of anything that keeps values by key.
//
// The package and its subfolders import the standard library only. Implementations live in strategies, backends and
// models; package conformance checks that a part, or a combination of parts, keeps the promises written here.
package core
