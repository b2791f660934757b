package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// Session is one conversation of a file.
type Session struct {
	// File is the name the conversation was read from, without its folder.
	File string
	message.Conversation
}

// Name returns the file and, where it holds several conversations, which one.
func (s Session) Name() string {
	if s.ID == "" {
		return s.File
	}
	return s.File + "#" + s.ID
}

// Options says how a file is read. The zero value stops at the first malformed line and detects the format.
type Options struct {
	// Format names the codec of the messages; empty means that it is detected.
	Format string
	// Join makes one session of all conversations of a file, in their order. A leading system message that equals one
	// before it is left out.
	Join bool
	// KeepGoing passes malformed lines to OnError and reads on behind them. OnError may be nil.
	KeepGoing bool
	OnError   func(error)
}

// Open reads the conversations of a file:
//
//   - transcripts, as message.Read understands them,
//   - LoCoMo: an array of objects whose "conversation" has lists "session_1", "session_2", ... of turns,
//   - BEAM: an array of objects with "batch_number" and "turns",
//   - team chats: an object with a "conversation_list".
//
// A malformed line is a *message.LineError; other errors name the file.
func Open(name string, o Options) ([]Session, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	defer f.Close()
	return Read(f, name, o)
}

// Read is Open for what a reader holds. Name appears in errors and in the sessions.
func Read(r io.Reader, name string, o Options) ([]Session, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("dataset: read %q: %w", name, err)
	}
	conversations, err := parse(data, name, o)
	if err != nil {
		return nil, err
	}
	if o.Join {
		conversations = join(conversations)
	}
	out := make([]Session, 0, len(conversations))
	for _, c := range conversations {
		if len(c.Messages) > 0 {
			out = append(out, Session{File: filepath.Base(name), Conversation: c})
		}
	}
	return out, nil
}

func parse(data []byte, name string, o Options) ([]message.Conversation, error) {
	var (
		out []message.Conversation
		err error
	)
	switch collectionOf(data) {
	case locomo:
		out, err = readLoCoMo(data)
	case beam:
		out, err = readBEAM(data)
	case team:
		out, err = readTeam(data)
	default:
		return message.Read(bytes.NewReader(data), message.ReadOptions{
			Name: name, Format: o.Format, KeepGoing: o.KeepGoing, OnError: o.OnError,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("dataset: read %q: %w", name, err)
	}
	return out, nil
}

type collection int

const (
	none collection = iota
	locomo
	beam
	team
)

// collectionOf looks at the keys of the first object.
func collectionOf(data []byte) collection {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	t, err := d.Token()
	array := t == json.Delim('[')
	if array {
		t, err = d.Token()
	}
	if err != nil || t != json.Delim('{') {
		return none
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return none
		}
		switch {
		case array && key == "conversation":
			return locomo
		case array && (key == "batch_number" || key == "turns"):
			return beam
		case !array && key == "conversation_list":
			return team
		}
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return none
		}
	}
	return none
}

// join puts conversations behind each other.
func join(list []message.Conversation) []message.Conversation {
	if len(list) < 2 {
		return list
	}
	ids := make([]string, 0, len(list))
	out := message.Conversation{Format: list[0].Format}
	seen := make(map[string]bool)
	for _, c := range list {
		ids = append(ids, c.ID)
		leading := true
		for i, m := range c.Messages {
			leading = leading && m.Role == message.System
			if leading {
				fp := message.Fingerprint(m)
				if seen[fp] {
					continue
				}
				seen[fp] = true
			}
			// Ids of different conversations may be the same.
			if m.ID != "" && c.ID != "" {
				m.ID = c.ID + ":" + m.ID
			}
			out.Messages = append(out.Messages, m)
			if i < len(c.Lines) {
				out.Lines = append(out.Lines, c.Lines[i])
			}
		}
	}
	out.ID = strings.Join(ids[:1], "") + "..." + ids[len(ids)-1]
	return []message.Conversation{out}
}
