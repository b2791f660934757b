// Package dataset reads conversations to replay: transcripts of hosts, and the public collections of long
// conversations that context engines are measured with.
//
// Start with Open:
//
//	sessions, err := dataset.Open("session.jsonl", dataset.Options{})
//
// What a file holds is seen from its content, see Open. Every message has original bytes, so that whoever stores it can be checked byte for byte.
package dataset
