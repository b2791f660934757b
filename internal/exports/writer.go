// Package exports is the file format of an export, JSON lines, for stores that write and read it themselves and for programs
// that walk stores.
package exports

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/packed"
)

// Format and Version are in the first line of an export.
const (
	Format  = "contextengine-export"
	Version = 1
)

// progressEvery is the number of entries between two calls of a progress function.
const progressEvery = 1000

// line is one line of an export: one of its fields is set. Exact, beside an entry, has what JSON cannot hold: text that is not UTF-8, and
// the difference between nothing and an empty list.
type line struct {
	Header *Header          `json:"header,omitempty"`
	Entry  *core.Entry      `json:"entry,omitempty"`
	Exact  []byte           `json:"exact,omitempty"`
	View   *core.View       `json:"view,omitempty"`
	End    *upkeep.Transfer `json:"end,omitempty"`
}

// Header is what the first line says.
type Header struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
}

// Writer writes the lines of an export and counts them: Begin, then entries, then views, then End.
type Writer struct {
	// Done is what was written.
	Done     upkeep.Transfer
	buf      *bufio.Writer
	json     *json.Encoder
	now      time.Time
	progress func(upkeep.Transfer)
}

// NewWriter writes to w. progress, when not nil, is called now and then, and at the end.
func NewWriter(w io.Writer, now time.Time, progress func(upkeep.Transfer)) *Writer {
	if progress == nil {
		progress = func(upkeep.Transfer) {}
	}
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &Writer{buf: buf, json: enc, now: now, progress: progress}
}

// Begin writes the first line.
func (x *Writer) Begin() error {
	return x.json.Encode(line{Header: &Header{Format: Format, Version: Version, Time: x.now.UTC()}})
}

// Entry writes an entry.
func (x *Writer) Entry(entry *core.Entry) error {
	e := core.Shareable(*entry)
	l := line{Entry: &e}
	if !exactInJSON(&e) {
		l.Exact = packExact(&e)
	}
	if err := x.json.Encode(l); err != nil {
		return fmt.Errorf("entry %q: %w", e.ID, err)
	}
	if x.Done.Entries++; x.Done.Entries%progressEvery == 0 {
		x.progress(x.Done)
	}
	return nil
}

// View writes a view.
func (x *Writer) View(v *core.View) error {
	x.Done.Views++
	return x.json.Encode(line{View: v})
}

// End writes the last line, and what is left in buffers.
func (x *Writer) End() error {
	if err := x.json.Encode(line{End: &x.Done}); err != nil {
		return err
	}
	if err := x.buf.Flush(); err != nil {
		return err
	}
	x.progress(x.Done)
	return nil
}

// exactInJSON reports whether JSON gives every string and slice of e back as it is.
func exactInJSON(e *core.Entry) bool {
	ok := true
	text := func(values ...string) {
		for _, v := range values {
			ok = ok && utf8.ValidString(v)
		}
	}
	raw := func(b []byte) { ok = ok && (b == nil || len(b) > 0) }
	m := &e.Message
	text(e.ID, e.Agent, e.Session, string(e.Role), string(e.Type), e.Key, e.Fingerprint)
	text(string(m.Role), m.ID, m.Key, m.Name, m.Stop, m.Type, m.Format)
	raw(m.Raw)
	for i := range m.Parts {
		p := &m.Parts[i]
		text(string(p.Kind), p.Text, p.CallID, p.Name, p.Args, p.Signature)
		raw(p.Raw)
	}
	for k, v := range e.Meta {
		text(k, v)
	}
	return ok && (e.Meta == nil || len(e.Meta) > 0)
}

// packExact encodes all of e that is not a number or a time.
func packExact(e *core.Entry) []byte {
	var p packed.Writer
	for _, f := range []string{e.ID, e.Agent, e.Session, string(e.Role), string(e.Type), e.Key, e.Fingerprint} {
		p.Str(f)
	}
	p.Bytes(packed.Meta(e.Meta))
	p.Bytes(packed.Message(&e.Message, packed.Home(e)))
	return p.B
}

// unpackExact is the inverse of packExact. Raw bytes share memory with b.
func unpackExact(b []byte, e *core.Entry) error {
	u := packed.Reader{B: b}
	e.ID, e.Agent, e.Session = u.Str(), u.Str(), u.Str()
	e.Role, e.Type = message.Role(u.Str()), core.EntryType(u.Str())
	e.Key, e.Fingerprint = u.Str(), u.Str()
	meta, body := u.View(), u.View()
	if err := u.End(); err != nil {
		return err
	}
	var err error
	if e.Meta, err = packed.ReadMeta(meta); err != nil {
		return err
	}
	e.Message, err = packed.ReadMessage(body, packed.Home(e))
	return err
}
