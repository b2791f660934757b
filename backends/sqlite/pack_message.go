package sqlite

import (
	"bytes"
	"slices"

	"github.com/contextengine/contextengine/core/message"
)

// The fields of a packed message. A field that is not there has the value of the message that decoding Raw gives, or
// the zero value when hasDerived is not set.
const (
	hasRaw uint64 = 1 << iota
	// hasDerived says that the parts are those that the codec finds in Raw: they are not stored again.
	hasDerived
	hasRole
	hasTime
	hasID
	hasKey
	hasName
	hasStop
	hasType
	hasUsage
	hasFormat
	isEdited
	// hasNanos is the entry's: what its time has below the millisecond.
	hasNanos
	// lastField bounds what this version understands.
	lastField
)

// The fields of a packed part.
const (
	partText uint64 = 1 << iota
	partCallID
	partName
	partArgs
	partIsError
	partSignature
	partRaw
	// partRawRef says that Raw is a piece of the message's Raw.
	partRawRef
	lastPartField
)

// minRef is the length in bytes from which a part's Raw is looked for in the message's Raw.
const minRef = 8

// derive decodes the original bytes of m, and reports whether that gives the parts of m back.
func derive(m *message.Message) (message.Message, bool) {
	if m.Raw == nil || m.Format == "" || m.Edited {
		return message.Message{}, false
	}
	base, err := decodeRaw(m.Format, m.Raw)
	if err != nil || !bytes.Equal(base.Raw, m.Raw) || !sameParts(base.Parts, m.Parts) {
		return message.Message{}, false
	}
	return base, true
}

func decodeRaw(format string, raw []byte) (message.Message, error) {
	codec, err := message.Lookup(format)
	if err != nil {
		return message.Message{}, err
	}
	return codec.Decode(raw)
}

func sameParts(a, b []message.Part) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y message.Part) bool {
		return x.Kind == y.Kind && x.Text == y.Text && x.CallID == y.CallID && x.Name == y.Name && x.Args == y.Args &&
			x.IsError == y.IsError && x.Signature == y.Signature && (x.Raw == nil) == (y.Raw == nil) && bytes.Equal(x.Raw, y.Raw)
	})
}

// packMessage encodes m, and the nanoseconds that its entry's time has below the millisecond.
func packMessage(m *message.Message, nanos int) []byte {
	base, derived := derive(m)
	var flags uint64
	set := func(flag uint64, on bool) {
		if on {
			flags |= flag
		}
	}
	set(hasRaw, m.Raw != nil)
	set(hasDerived, derived)
	set(isEdited, m.Edited)
	set(hasRole, m.Role != base.Role)
	set(hasTime, !m.Time.Equal(base.Time))
	set(hasID, m.ID != base.ID)
	set(hasKey, m.Key != base.Key)
	set(hasName, m.Name != base.Name)
	set(hasStop, m.Stop != base.Stop)
	set(hasType, m.Type != base.Type)
	set(hasUsage, m.Usage != base.Usage)
	set(hasFormat, m.Format != "")
	set(hasNanos, nanos != 0)

	p := packer{b: make([]byte, 0, 64+len(m.Raw))}
	p.uint(flags)
	if flags&hasFormat != 0 {
		p.str(m.Format)
	}
	if flags&hasRaw != 0 {
		p.bytes(m.Raw)
	}
	for _, f := range []struct {
		flag  uint64
		value string
	}{
		{hasRole, string(m.Role)}, {hasID, m.ID}, {hasKey, m.Key}, {hasName, m.Name}, {hasStop, m.Stop}, {hasType, m.Type},
	} {
		if flags&f.flag != 0 {
			p.str(f.value)
		}
	}
	if flags&hasTime != 0 {
		p.time(m.Time)
	}
	if flags&hasUsage != 0 {
		for _, n := range []int{m.Usage.Input, m.Usage.Output, m.Usage.CacheRead, m.Usage.CacheWrite} {
			p.int(int64(n))
		}
	}
	if flags&hasNanos != 0 {
		p.uint(uint64(nanos))
	}
	if !derived {
		p.parts(m)
	}
	return p.b
}

// parts writes the parts: 0 for nil, else their number plus one.
func (p *packer) parts(m *message.Message) {
	if m.Parts == nil {
		p.uint(0)
		return
	}
	p.uint(uint64(len(m.Parts)) + 1)
	for i := range m.Parts {
		p.part(&m.Parts[i], m.Raw)
	}
}

func (p *packer) part(part *message.Part, whole []byte) {
	var flags uint64
	fields := []struct {
		flag  uint64
		value string
	}{
		{partText, part.Text}, {partCallID, part.CallID}, {partName, part.Name}, {partArgs, part.Args}, {partSignature, part.Signature},
	}
	for _, f := range fields {
		if f.value != "" {
			flags |= f.flag
		}
	}
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
	p.str(string(part.Kind))
	p.uint(flags)
	for _, f := range fields {
		if flags&f.flag != 0 {
			p.str(f.value)
		}
	}
	switch {
	case at >= 0:
		p.uint(uint64(at))
		p.uint(uint64(len(part.Raw)))
	case flags&partRaw != 0:
		p.bytes(part.Raw)
	}
}
