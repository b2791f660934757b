package message

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Conversation is the messages of one session in a transcript, in the order of the file.
type Conversation struct {
	// ID is the session's id, "task_id/trial" of a tau-bench run, or the id beside a list of messages. Without
	// one it is the position in the file, from "0", if the file holds several conversations, and empty otherwise.
	ID string
	// Format names the codec that decoded the messages.
	Format   string
	Messages []Message
	// Lines holds for each message the line of the file it starts on, from 1.
	Lines []int
}

// ReadOptions says how Read reads. The zero value stops at the first malformed line and detects the format.
type ReadOptions struct {
	// Name is the file's name, for errors.
	Name string
	// Format names the codec of the messages; empty means that it is detected for every conversation.
	Format string
	// KeepGoing passes malformed lines to OnError and reads on behind them.
	KeepGoing bool
	// OnError is called, in the order of the file, for every error that KeepGoing passes over; they are of type
	// *LineError. Nil means that they are dropped.
	OnError func(error)
}

// LineError is the error of Read for bytes that are not what they should be. It wraps ErrMalformed.
type LineError struct {
	// File is the name from the options and Line the line, from 1.
	File string
	Line int
	// Want says what was expected.
	Want string
	// Err is the cause.
	Err error
}

// Error has the form "file:line: expected ..., found ...".
func (e *LineError) Error() string {
	found := "nothing"
	if m, ok := errors.AsType[*mismatch](e.Err); ok {
		found = m.found
	} else if e.Err != nil {
		found = e.Err.Error()
	}
	return fmt.Sprintf("%s:%d: expected %s, found %s", e.File, e.Line, e.Want, found)
}

// Unwrap returns ErrMalformed and the cause.
func (e *LineError) Unwrap() []error { return []error{ErrMalformed, e.Err} }

// Read reads a transcript file. It understands
//
//   - sessions of pi and OpenClaw: one entry per line. The messages are the "message" of the entries of that type, with the
//     entry's id and time if they have none of their own, and for every compaction that has a summary the compactionSummary
//     message which the host makes of it. All other entries of a session are left out.
//   - a list of messages: one per line, or a JSON array.
//   - an object whose "messages" is such an array, one in the file, one per line or many in an array: a conversation each.
//     A "system" beside the messages becomes a System message in front of them; it has no Raw.
//   - runs of tau-bench: an array of objects whose "traj" is such an array.
//
// The format shows in the first message with something that only one format has. Session entries, stopReason,
// toolCall blocks and the roles toolResult, compactionSummary, branchSummary, bashExecution and custom are pi's;
// tool_calls, function_call, tool_call_id, image_url and input_audio blocks and the roles developer, tool and
// function are OpenAI's; stop_reason and the blocks tool_use, tool_result, thinking, redacted_thinking, image and
// document are Anthropic's. Text alone is the same in all of them and is read as OpenAI's, or as Anthropic's when
// a "system" stands beside the messages.
//
// A malformed line, a message the codec rejects, and a last line that was cut off in the middle are each a
// *LineError. Without KeepGoing Read returns the first one in the order of the file, and no conversations. A JSON
// document that spans lines cannot be resumed behind a fault in its syntax: of an array, the elements in front of
// it are read. The transcript is held in memory; no line is too long. An empty file has no conversations.
func Read(r io.Reader, o ReadOptions) ([]Conversation, error) {
	if o.Format != "" {
		if _, err := Lookup(o.Format); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("message: read %q: %w", o.Name, err)
	}
	// A byte order mark; blanks of the same length keep all offsets.
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		copy(data, "   ")
	}
	t := transcript{data: data, options: o}
	if isDocument(data) {
		err = t.document()
	} else {
		err = t.lines()
	}
	if err == nil {
		err = t.finish()
	}
	if err != nil {
		return nil, err
	}
	if len(t.done) > 1 {
		for i := range t.done {
			if t.done[i].ID == "" {
				t.done[i].ID = strconv.Itoa(i)
			}
		}
	}
	return t.done, nil
}

// item is a message on its way: its place and bytes in the file and what the entry around it says, or the error found
// in its place.
type item struct {
	at      int
	raw     []byte
	id      string
	time    []byte
	entry   bool // raw comes from a session entry
	system  bool // raw is a system prompt
	problem error
}

// transcript is a file being read. Messages are collected until the conversation ends, since its format may show late.
type transcript struct {
	data    []byte
	options ReadOptions
	done    []Conversation

	session bool // the file has session entries: entries of unknown types are to be expected

	// The conversation being collected. An announced one exists even without messages; hint is its format then.
	id        string
	hint      string
	announced bool
	items     []item

	// Lines are counted once, front to back; offsets mostly ascend.
	counted, line int
}

// add appends a message to the conversation.
func (t *transcript) add(i item) { t.items = append(t.items, i) }

// fail notes an error in the order of the file.
func (t *transcript) fail(at int, err error) { t.add(item{at: at, problem: err}) }

// open starts a conversation that the file announces: what was collected before belongs to another one.
func (t *transcript) open(id, hint string) error {
	if err := t.finish(); err != nil {
		return err
	}
	t.id, t.hint, t.announced = id, hint, true
	return nil
}

// finish decodes the conversation collected so far.
func (t *transcript) finish() error {
	if len(t.items) == 0 && !t.announced {
		return nil
	}
	items, hint, announced := t.items, t.hint, t.announced
	c := Conversation{ID: t.id, Format: t.options.Format}
	t.items, t.id, t.hint, t.announced = nil, "", "", false
	if c.Format == "" {
		c.Format = detect(items, hint)
	}
	codec, err := Lookup(c.Format)
	if err != nil {
		return err
	}
	for _, i := range items {
		m, err := i.decode(codec)
		if err != nil {
			if err := t.report(i.at, err); err != nil {
				return err
			}
			continue
		}
		c.Messages = append(c.Messages, m)
		c.Lines = append(c.Lines, t.lineAt(i.at))
	}
	// Lines that are nothing but errors make no conversation; an empty one that was announced is one.
	if announced || len(c.Messages) > 0 {
		t.done = append(t.done, c)
	}
	return nil
}

func (i item) decode(codec Codec) (Message, error) {
	if i.problem != nil {
		return Message{}, i.problem
	}
	if i.system {
		return systemMessage(i.raw, codec.Name())
	}
	m, err := codec.Decode(i.raw)
	if err != nil {
		return Message{}, err
	}
	if m.ID == "" {
		m.ID = i.id
	}
	if m.Time.IsZero() {
		m.Time = timeOf(i.time)
	}
	return m, nil
}

// systemMessage makes a message of the system prompt that stands beside the messages: a string or an array of blocks.
func systemMessage(raw []byte, format string) (Message, error) {
	o, err := parseObject(object{}.with(change{"system", raw}))
	if err != nil {
		return Message{}, err
	}
	parts, err := o.content("system", anthropicBlock)
	return Message{Role: System, Parts: parts, Format: format}, err
}

// report turns err into a LineError and returns it, or passes it to OnError.
func (t *transcript) report(at int, err error) error {
	e := &LineError{File: t.options.Name, Line: t.lineAt(at), Want: "a message", Err: err}
	if m, ok := errors.AsType[*mismatch](err); ok {
		e.Want = m.want
	}
	if !t.options.KeepGoing {
		return e
	}
	if t.options.OnError != nil {
		t.options.OnError(e)
	}
	return nil
}

// lineAt returns the number of the line that an offset is on.
func (t *transcript) lineAt(at int) int {
	if at < t.counted {
		t.counted, t.line = 0, 0
	}
	t.line += bytes.Count(t.data[t.counted:at], []byte{'\n'})
	t.counted = at
	return t.line + 1
}
