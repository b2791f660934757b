// Package memory is a store that lives in the process: the reference for what core.Store and core.ViewStore promise,
// the store of tests and examples, and the right one for agents whose history need not outlive them.
//
// Start with New:
//
//	store := memory.New()
//	defer store.Close()
//
// Nothing is written to disk. What is given is copied when it comes in and again when it goes out, metadata maps and
// raw bytes included, so no caller can change what the store holds. Appends at the end of a session, reads by id and
// pages of a scan take time that does not grow with the session, apart from a binary search.
package memory
