package packed

import (
	"github.com/contextengine/contextengine/core/message"
)

// ReadMessage is the inverse of Message. What is raw in the message shares memory with b, and a part with the message, as with one that a codec
// has decoded: copies of them made up a tenth of what reading an entry takes.
func ReadMessage(b []byte, home message.Message) (message.Message, error) {
	u := Reader{B: b}
	flags := u.Uint()
	if flags >= lastField {
		return message.Message{}, ErrMalformed
	}
	m := message.Message{Role: home.Role, Edited: flags&isEdited != 0}
	if flags&hasRaw != 0 {
		m.Raw = u.View()
	}
	if flags&hasRole != 0 {
		m.Role = message.Role(u.Str())
	}
	for _, f := range messageFields(&m) {
		if flags&f.flag != 0 {
			*f.field = u.Str()
		}
	}
	switch {
	case flags&hasEntryTime != 0:
		m.Time = home.Time
	case flags&hasTime != 0:
		m.Time = u.Time()
	}
	if flags&hasUsage != 0 {
		for _, n := range []*int{&m.Usage.Input, &m.Usage.Output, &m.Usage.CacheRead, &m.Usage.CacheWrite} {
			*n = int(u.Int())
		}
	}
	m.Parts = u.parts(m.Raw)
	if err := u.End(); err != nil {
		return message.Message{}, err
	}
	return m, nil
}

func (u *Reader) parts(whole []byte) []message.Part {
	n := u.Uint()
	if n == 0 {
		return nil
	}
	n--
	if n > uint64(len(u.B)) {
		u.Fail()
		return nil
	}
	parts := make([]message.Part, n)
	for i := range parts {
		u.part(&parts[i], whole)
	}
	return parts
}

func (u *Reader) part(part *message.Part, whole []byte) {
	known := kinds()
	switch kind := u.Uint(); {
	case kind == 0:
		part.Kind = message.Kind(u.Str())
	case kind <= uint64(len(known)):
		part.Kind = known[kind-1]
	default:
		u.Fail()
	}
	flags := u.Uint()
	if flags >= lastPartBits {
		u.Fail()
		return
	}
	part.IsError = flags&partIsError != 0
	for i, f := range partFields(part) {
		switch bits := flags >> (partTextsAt + i*textBits); {
		case bits&textQuoted != 0:
			text, ok := unquote(u.piece(whole))
			if !ok {
				u.Fail()
			}
			*f = text
		case bits&textRef != 0:
			*f = string(u.piece(whole))
		case bits&hasText != 0:
			*f = u.Str()
		}
	}
	switch {
	case flags&partRawRef != 0:
		part.Raw = u.piece(whole)
	case flags&partRaw != 0:
		part.Raw = u.View()
	}
}

// piece returns a part of the message's Raw.
func (u *Reader) piece(whole []byte) []byte {
	at, n := u.Uint(), u.Uint()
	size := uint64(len(whole))
	if at > size || n > size-at {
		u.Fail()
		return nil
	}
	return whole[at : at+n : at+n]
}
