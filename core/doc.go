// Package core holds the contracts of the framework and the Engine that composes them.
//
// An engine decides what a language model sees on its next call. It is made of parts that can be exchanged one by
// one:
//
//   - a Store keeps every Entry for ever,
//   - a Retriever proposes older entries worth recalling for the prompt at hand,
//   - a Compactor says, as a Patch, what may stand for history that has to go,
//   - a Host offers what only the runtime around the engine can do.
//
// New puts them together; the result answers the whole lifecycle of a context engine: Bootstrap, Ingest, CommitTurn,
// Assemble, Compact, AfterTurn, Maintain, subagent hooks and Dispose. The state of a session lives in one place,
// its View, which only the Engine changes, by compare-and-swap.
//
// The package and its subfolders import the standard library only. Implementations live in strategies, backends and
// models; package conformance checks that a part, or a combination of parts, keeps the promises written here.
package core
