// Package imports reads history that exists already and hands it to engines, and moves whole stores as JSON lines.
//
// Start with File:
//
//	report, err := imports.File(ctx, "openclaw-agent.sqlite", sink, imports.Options{})
//
// It sees from the content what a file is, see Format, and ingests its messages through the engine of each session: with their times, ids,
// tool calls and results, and their original bytes. What is there already is not stored again, so an import that was interrupted is resumed
// by starting it again; what was erased stays erased.
//
// Export writes a store as lines, Restore reads them.
package imports
