package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// exportFormat and exportVersion are in the first line of an export.
const (
	exportFormat  = "contextengine-export"
	exportVersion = 1
)

// progressEvery is the number of entries between two calls of a progress function.
const progressEvery = 1000

// Progress says how far an export or import is.
type Progress = core.Transfer

// line is one line of an export: one of its fields is set. Exact, beside an entry, is its message and metadata in the
// store's own encoding, for the few that JSON cannot hold: text that is not UTF-8.
type line struct {
	Header *header     `json:"header,omitempty"`
	Entry  *core.Entry `json:"entry,omitempty"`
	Exact  []byte      `json:"exact,omitempty"`
	View   *core.View  `json:"view,omitempty"`
	End    *Progress   `json:"end,omitempty"`
}

type header struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
}

// Export writes everything the store holds to w, as of one moment: JSON, one line for each entry and view, between a
// header and a line with their numbers. Import reads it. progress, when not nil, is called now and then, and at the end.
// Appends go on meanwhile; the write-ahead log cannot shrink until Export is done. progress must not use the store.
func (s *Store) Export(ctx context.Context, w io.Writer, progress func(Progress)) error {
	out := newExporter(w, s.now(), progress)
	err := s.read(ctx, "export", "", func(tx *sql.Tx) error {
		if err := out.begin(); err != nil {
			return err
		}
		if err := s.everything(ctx, tx, out.entry, out.view); err != nil {
			return err
		}
		return out.end()
	})
	return err
}

// exporter writes the lines of an export and counts them.
type exporter struct {
	buf      *bufio.Writer
	json     *json.Encoder
	now      time.Time
	done     Progress
	progress func(Progress)
}

func newExporter(w io.Writer, now time.Time, progress func(Progress)) *exporter {
	if progress == nil {
		progress = func(Progress) {}
	}
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &exporter{buf: buf, json: enc, now: now, progress: progress}
}

func (x *exporter) begin() error {
	return x.json.Encode(line{Header: &header{Format: exportFormat, Version: exportVersion, Time: x.now.UTC()}})
}

func (x *exporter) entry(entry *core.Entry) error {
	e := core.Shareable(*entry)
	l := line{Entry: &e}
	if !exactInJSON(&e) {
		l.Exact = packExact(&e)
	}
	if err := x.json.Encode(l); err != nil {
		return fmt.Errorf("entry %q: %w", e.ID, err)
	}
	x.done.Entries++
	if x.done.Entries%progressEvery == 0 {
		x.progress(x.done)
	}
	return nil
}

func (x *exporter) view(v *core.View) error {
	x.done.Views++
	return x.json.Encode(line{View: v})
}

func (x *exporter) end() error {
	if err := x.json.Encode(line{End: &x.done}); err != nil {
		return err
	}
	x.progress(x.done)
	return x.buf.Flush()
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
	var p packer
	for _, f := range []string{e.ID, e.Agent, e.Session, string(e.Role), string(e.Type), e.Key, e.Fingerprint} {
		p.str(f)
	}
	p.bytes(packMeta(e.Meta))
	p.bytes(packMessage(&e.Message, home(e)))
	return p.b
}

func unpackExact(b []byte, e *core.Entry) error {
	u := unpacker{b: b}
	for _, f := range []*string{&e.ID, &e.Agent, &e.Session} {
		*f = u.str()
	}
	e.Role, e.Type = message.Role(u.str()), core.EntryType(u.str())
	e.Key, e.Fingerprint = u.str(), u.str()
	meta, body := u.view(), u.view()
	if err := u.end(); err != nil {
		return err
	}
	var err error
	if e.Meta, err = unpackMeta(meta); err != nil {
		return err
	}
	e.Message, err = unpackMessage(body, home(e))
	return err
}
