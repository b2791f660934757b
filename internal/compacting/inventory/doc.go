// Package inventory reads entries of a conversation and keeps what an agent cannot make up again: identifiers, paths and numbers with
// how they were used, and the sentences that hold for longer than the moment. It ranks them and writes as many as have room, byte
// for byte. Index compaction writes them alone, summaries beside what a model wrote.
package inventory
