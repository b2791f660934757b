package imports

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Format says what a file is.
type Format string

// The formats.
const (
	// OpenClaw is the SQLite file of an agent of OpenClaw, openclaw-agent.sqlite.
	OpenClaw Format = "openclaw"
	// Transcript is a file of messages, as message.Read understands them: sessions of pi and OpenClaw as JSON lines, chats in the formats of
	// OpenAI's and Anthropic's APIs.
	Transcript Format = "transcript"
	// ChatGPT is conversations.json of a data export of ChatGPT, or a single conversation of it.
	ChatGPT Format = "chatgpt"
	// LosslessClaw is the SQLite file of lossless-claw, lcm.db.
	LosslessClaw Format = "lossless-claw"
	// Lines is what Export writes.
	Lines Format = "export"
)

// Formats returns all formats.
func Formats() []Format { return []Format{OpenClaw, Transcript, ChatGPT, LosslessClaw, Lines} }

// Sink says where messages go.
type Sink interface {
	// Target returns what takes the messages of a session. It stays usable until the import ends.
	Target(ctx context.Context, id core.SessionID) (Target, error)
}

// Target takes the messages of a session.
type Target struct {
	// Ingester stores messages, and puts them at the end of the session's conversation.
	Ingester core.BatchIngester
	// Store is where they then are. It is read to find out what is there already.
	Store core.Store
}

// Options says how to import. The zero value stops at the first thing that is malformed.
type Options struct {
	// From is the format; empty means that it is seen from the content.
	From Format
	// Agent and Session name where messages go, instead of what the file says. Session needs a file with one session.
	Agent, Session string
	// Branches also imports what the host does not show: answers that were made anew, messages that were edited. Each branch is a
	// session of its own, named like the one it left with "#" and an id behind, with the messages that are on no other.
	Branches bool
	// DryRun reads and compares, and stores nothing.
	DryRun bool
	// KeepGoing passes over what is malformed; the report lists it.
	KeepGoing bool
	// Progress, when not nil, is called now and then, from the goroutine of the import.
	Progress func(Progress)
}

// Progress says how far an import is.
type Progress struct {
	Sessions, Messages int
	// Total is the number of messages that will be read at most, 0 when it is not known.
	Total int
}

// Report says what an import did, or would have done.
type Report struct {
	File   string `json:"file"`
	Format Format `json:"format"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Sessions is the number of sessions with messages, Messages that of the messages read. They were imported, known before, or erased
	// before and not brought back.
	Sessions   int `json:"sessions"`
	Messages   int `json:"messages"`
	Imported   int `json:"imported"`
	Duplicates int `json:"duplicates"`
	Erased     int `json:"erased,omitempty"`
	// Views and KeptViews are of an import of lines, see upkeep.Transfer.
	Views     int `json:"views,omitempty"`
	KeptViews int `json:"keptViews,omitempty"`
	// Untimed is the number of messages without a time. The engine gives them that of the import.
	Untimed int `json:"untimed,omitempty"`
	// First and Last are the times of the oldest and newest message; zero when none has a time.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Skipped is what was malformed, in the order of the file; beyond a thousand only SkippedCount goes on.
	Skipped      []Skip `json:"skipped,omitempty"`
	SkippedCount int    `json:"skippedCount"`
	// Left counts what was left out on purpose, by what it is.
	Left map[string]int `json:"left,omitempty"`
	// Notes say what else one should know.
	Notes []string `json:"notes,omitempty"`
}

// Skip is a place in a file and what is wrong there. It never has contents.
type Skip struct {
	Place  string `json:"place"`
	Reason string `json:"reason"`
}

// maxSkips bounds Report.Skipped.
const maxSkips = 1000

// ErrMalformed is wrapped by errors about a file's content. The text names file and place.
var ErrMalformed = errors.New("malformed")

// File imports a file. The report is right also when there is an error: what was imported before it stays.
//
// Errors of the file wrap ErrMalformed, unless KeepGoing is set; a file or a choice that cannot be imported at all is core.ErrInvalid; all others
// are those of file system, engine and store. It stops soon after ctx ends.
func File(ctx context.Context, name string, sink Sink, o Options) (Report, error) {
	src, err := open(name, o.From)
	if err != nil {
		return Report{File: name}, err
	}
	defer func() { _ = src.close() }() // it was only read
	return run(ctx, src, sink, o)
}

// Data is File for what is at hand; name appears in errors and in the names of sessions. SQLite files need File.
func Data(ctx context.Context, name string, data []byte, sink Sink, o Options) (Report, error) {
	src, err := openData(name, data, o.From)
	if err != nil {
		return Report{File: name}, err
	}
	return run(ctx, src, sink, o)
}

// source is an opened file.
type source struct {
	name   string
	format Format
	// data is what the file holds; stream is that of a large export, and db a SQLite file.
	data   []byte
	stream *bufio.Reader
	db     *database
	file   io.Closer
}

// lines returns the lines of an export.
func (s *source) lines() io.Reader {
	if s.stream != nil {
		return s.stream
	}
	return bytes.NewReader(s.data)
}

func (s *source) close() error {
	switch {
	case s.db != nil:
		return s.db.Close()
	case s.file != nil:
		return s.file.Close()
	}
	return nil
}

func run(ctx context.Context, src *source, sink Sink, o Options) (Report, error) {
	in := &intake{sink: sink, o: o, used: make(map[string]int)}
	in.report = Report{File: src.name, Format: src.format, DryRun: o.DryRun}
	var err error
	switch src.format {
	case OpenClaw:
		err = readOpenClaw(ctx, src, in)
	case LosslessClaw:
		err = readLossless(ctx, src, in)
	case ChatGPT:
		err = readChatGPT(ctx, src, in)
	case Lines:
		err = restoreInto(ctx, src, in)
	default:
		err = readTranscript(ctx, src, in)
	}
	if err == nil {
		err = in.end(ctx)
	}
	if err != nil && !strings.HasPrefix(err.Error(), "imports: ") {
		err = fmt.Errorf("imports: %q: %w", src.name, err)
	}
	return in.report, err
}
