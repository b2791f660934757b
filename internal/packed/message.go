package packed

import (
	"bytes"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// The fields of a packed message. A field that is not there has the zero value, or that of its entry.
const (
	hasRaw uint64 = 1 << iota
	// hasRole is set when the role is not the entry's.
	hasRole
	hasTime
	// hasEntryTime says that the time is the entry's.
	hasEntryTime
	hasID
	hasKey
	hasName
	hasStop
	hasType
	hasUsage
	hasFormat
	isEdited
	// lastField bounds what this version understands.
	lastField
)

// The fields of a packed part. Every text is followed by a bit that says that it is in the message's Raw, and one that says that
// it is written there as in a JSON string.
const (
	partIsError uint64 = 1 << iota
	partRaw
	// partRawRef says that the part's Raw is a piece of the message's.
	partRawRef
	// partTexts is the first of three bits for each of the texts.
	partTexts
)

const (
	textBits            = 3
	hasText      uint64 = 1
	textRef      uint64 = 2
	textQuoted   uint64 = 4
	partTextsAt         = 3 // log2 of partTexts
	texts               = 5
	lastPartBits        = partTexts << (texts * textBits)
)

// partFields returns the texts of a part, in the order in which they are packed.
func partFields(p *message.Part) [texts]*string {
	return [texts]*string{&p.Text, &p.CallID, &p.Name, &p.Args, &p.Signature}
}

// kinds are packed as their number plus one; others as 0 and their name.
func kinds() []message.Kind {
	return []message.Kind{message.Text, message.Thinking, message.ToolCall, message.ToolResult, message.Image, message.Other}
}

// messageFields returns the names of a message beside their flags.
func messageFields(m *message.Message) [6]struct {
	flag  uint64
	field *string
} {
	return [6]struct {
		flag  uint64
		field *string
	}{{hasFormat, &m.Format}, {hasID, &m.ID}, {hasKey, &m.Key}, {hasName, &m.Name}, {hasStop, &m.Stop}, {hasType, &m.Type}}
}

// Home is what an entry says about its message already.
func Home(e *core.Entry) message.Message { return message.Message{Role: e.Role, Time: e.Time.UTC()} }

// Message encodes m. home is what its entry says about it already: the role and the time.
func Message(m *message.Message, home message.Message) []byte {
	var flags uint64
	set := func(flag uint64, on bool) {
		if on {
			flags |= flag
		}
	}
	fields := messageFields(m)
	for _, f := range fields {
		set(f.flag, *f.field != "")
	}
	set(hasRaw, m.Raw != nil)
	set(isEdited, m.Edited)
	set(hasRole, m.Role != home.Role)
	set(hasUsage, m.Usage != message.Usage{})
	set(hasTime, !m.Time.IsZero())
	set(hasEntryTime, !m.Time.IsZero() && m.Time.Equal(home.Time))

	p := Writer{B: make([]byte, 0, 128+len(m.Raw))}
	p.Uint(flags)
	if flags&hasRaw != 0 {
		p.Bytes(m.Raw)
	}
	if flags&hasRole != 0 {
		p.Str(string(m.Role))
	}
	for _, f := range fields {
		if flags&f.flag != 0 {
			p.Str(*f.field)
		}
	}
	if flags&(hasTime|hasEntryTime) == hasTime {
		p.Time(m.Time)
	}
	if flags&hasUsage != 0 {
		for _, n := range []int{m.Usage.Input, m.Usage.Output, m.Usage.CacheRead, m.Usage.CacheWrite} {
			p.Int(int64(n))
		}
	}
	// The number of parts plus one; 0 is nil.
	if m.Parts == nil {
		p.Uint(0)
		return p.B
	}
	p.Uint(uint64(len(m.Parts)) + 1)
	for i := range m.Parts {
		p.part(&m.Parts[i], m.Raw)
	}
	return p.B
}

func (p *Writer) part(part *message.Part, whole []byte) {
	kind := slices.Index(kinds(), part.Kind) + 1
	p.Uint(uint64(kind))
	if kind == 0 {
		p.Str(string(part.Kind))
	}
	var flags uint64
	if part.IsError {
		flags |= partIsError
	}
	at := -1
	if part.Raw != nil {
		flags |= partRaw
		if len(part.Raw) >= minRef {
			at = bytes.Index(whole, part.Raw)
		}
		if at >= 0 {
			flags |= partRawRef
		}
	}
	var refs [texts][2]int
	fields := partFields(part)
	for i, f := range fields {
		if *f == "" {
			continue
		}
		bits := hasText
		from, n, quoted, ok := locate(whole, *f)
		if ok {
			bits |= textRef
			refs[i] = [2]int{from, n}
		}
		if quoted {
			bits |= textQuoted
		}
		flags |= bits << (partTextsAt + i*textBits)
	}
	p.Uint(flags)
	for i, f := range fields {
		switch bits := flags >> (partTextsAt + i*textBits); {
		case bits&textRef != 0:
			p.Uint(uint64(refs[i][0]))
			p.Uint(uint64(refs[i][1]))
		case bits&hasText != 0:
			p.Str(*f)
		}
	}
	switch {
	case at >= 0:
		p.Uint(uint64(at))
		p.Uint(uint64(len(part.Raw)))
	case flags&partRaw != 0:
		p.Bytes(part.Raw)
	}
}
