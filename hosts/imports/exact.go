package imports

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Exact encodes what JSON cannot hold of an entry, in a binary form that is the same for all stores. It is a sequence of fields: numbers as varints, texts behind
// their length.

// errPacked is what a packed entry that ends early or goes on too long is.
var errPacked = errors.New("packed value is malformed")

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

// The fields of a packed message. One that is not there has the zero value, or that of its entry.
const (
	hasRaw uint64 = 1 << iota
	hasRole
	hasTime
	hasEntryTime // the time is the entry's
	hasID
	hasKey
	hasName
	hasStop
	hasType
	hasUsage
	hasFormat
	isEdited
	lastField
)

// The fields of a packed part. Each of its five texts has three bits: it is there; it is a piece of the message's Raw; it is
// written there as in a JSON string.
const (
	partIsError uint64 = 1 << iota
	partRaw
	partRawRef
	partTextsAt        = 3
	textBits           = 3
	partTexts          = 5
	hasText     uint64 = 1
	textRef     uint64 = 2
	textQuoted  uint64 = 4
	lastPart           = 1 << (partTextsAt + partTexts*textBits)
)

func kinds() []message.Kind {
	return []message.Kind{message.Text, message.Thinking, message.ToolCall, message.ToolResult, message.Image, message.Other}
}

func partFields(p *message.Part) [partTexts]*string {
	return [partTexts]*string{&p.Text, &p.CallID, &p.Name, &p.Args, &p.Signature}
}

// messageField is a text of a message and its flag.
type messageField struct {
	flag uint64
	text *string
}

func messageFields(m *message.Message) []messageField {
	return []messageField{{hasFormat, &m.Format}, {hasID, &m.ID}, {hasKey, &m.Key}, {hasName, &m.Name}, {hasStop, &m.Stop}, {hasType, &m.Type}}
}

func entryFields(e *core.Entry) []string {
	return []string{e.ID, e.Agent, e.Session, string(e.Role), string(e.Type), e.Key, e.Fingerprint}
}

// packer appends fields.
type packer struct{ b []byte }

func (p *packer) uint(v uint64) { p.b = binary.AppendUvarint(p.b, v) }

func (p *packer) str(s string) {
	p.uint(uint64(len(s)))
	p.b = append(p.b, s...)
}

// packExact encodes all of e that is not a number or a time.
func packExact(e *core.Entry) []byte {
	var p packer
	for _, f := range entryFields(e) {
		p.str(f)
	}
	var meta packer
	if e.Meta != nil {
		meta.uint(uint64(len(e.Meta)))
		for _, k := range slices.Sorted(maps.Keys(e.Meta)) {
			meta.str(k)
			meta.str(e.Meta[k])
		}
	}
	p.str(string(meta.b))
	p.str(string(packMessage(&e.Message)))
	return p.b
}

func packMessage(m *message.Message) []byte {
	flags := hasRole
	set := func(flag uint64, on bool) {
		if on {
			flags |= flag
		}
	}
	set(hasRaw, m.Raw != nil)
	set(isEdited, m.Edited)
	set(hasTime, !m.Time.IsZero())
	set(hasUsage, m.Usage != message.Usage{})
	for _, f := range messageFields(m) {
		set(f.flag, *f.text != "")
	}
	var p packer
	p.uint(flags)
	if m.Raw != nil {
		p.str(string(m.Raw))
	}
	p.str(string(m.Role))
	for _, f := range messageFields(m) {
		if *f.text != "" {
			p.str(*f.text)
		}
	}
	if !m.Time.IsZero() {
		p.b = binary.AppendVarint(p.b, m.Time.Unix())
		p.uint(uint64(m.Time.Nanosecond()))
	}
	if flags&hasUsage != 0 {
		for _, n := range []int{m.Usage.Input, m.Usage.Output, m.Usage.CacheRead, m.Usage.CacheWrite} {
			p.b = binary.AppendVarint(p.b, int64(n))
		}
	}
	// The number of parts plus one; 0 is nil.
	if m.Parts == nil {
		p.uint(0)
		return p.b
	}
	p.uint(uint64(len(m.Parts)) + 1)
	for i := range m.Parts {
		p.part(&m.Parts[i])
	}
	return p.b
}

func (p *packer) part(part *message.Part) {
	kind := slices.Index(kinds(), part.Kind) + 1
	p.uint(uint64(kind))
	if kind == 0 {
		p.str(string(part.Kind))
	}
	var flags uint64
	if part.IsError {
		flags |= partIsError
	}
	if part.Raw != nil {
		flags |= partRaw
	}
	fields := partFields(part)
	for i, f := range fields {
		if *f != "" {
			flags |= hasText << (partTextsAt + i*textBits)
		}
	}
	p.uint(flags)
	for _, f := range fields {
		if *f != "" {
			p.str(*f)
		}
	}
	if part.Raw != nil {
		p.str(string(part.Raw))
	}
}
