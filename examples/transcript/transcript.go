// Package transcript holds an example conversation: a coding agent works on a small tide-table service for an afternoon. People,
// project and code are made up; folder generate holds the program that wrote it.
//
//	sessions, err := dataset.Read(strings.NewReader(transcript.Session()), transcript.Name, dataset.Options{})
package transcript

import _ "embed" // for the session

// Name is what the session is called in reports.
const Name = "example.jsonl"

//go:generate go run ./generate -output example.jsonl

//go:embed example.jsonl
var session string

// Session returns the conversation in the format of pi and OpenClaw sessions, one entry per line.
func Session() string { return session }
