// Package exact finds what a text says that nobody could make up again: identifiers, paths, addresses, versions, hashes, error codes,
// numbers (Scan), and the sentences that hold for longer than the moment: rules, decisions, open tasks (Sentences). It knows no
// model and no grammar, only shapes and a few words in several languages, and it never changes a byte of what it finds.
package exact
