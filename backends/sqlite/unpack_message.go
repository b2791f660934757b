package sqlite

import (
	"github.com/contextengine/contextengine/core/message"
)

// unpackMessage is the inverse of packMessage. What is raw in the message shares memory with b, and a part with the message, as with one that a codec
// has decoded: copies of them made up a tenth of what reading an entry takes.
func unpackMessage(b []byte, home message.Message) (message.Message, error) {
	u := unpacker{b: b}
	flags := u.uint()
	if flags >= lastField {
		return message.Message{}, errPacked
	}
	m := message.Message{Role: home.Role, Edited: flags&isEdited != 0}
	if flags&hasRaw != 0 {
		m.Raw = u.view()
	}
	if flags&hasRole != 0 {
		m.Role = message.Role(u.str())
	}
	for _, f := range messageFields(&m) {
		if flags&f.flag != 0 {
			*f.field = u.str()
		}
	}
	switch {
	case flags&hasEntryTime != 0:
		m.Time = home.Time
	case flags&hasTime != 0:
		m.Time = u.time()
	}
	if flags&hasUsage != 0 {
		for _, n := range []*int{&m.Usage.Input, &m.Usage.Output, &m.Usage.CacheRead, &m.Usage.CacheWrite} {
			*n = int(u.int())
		}
	}
	m.Parts = u.parts(m.Raw)
	if err := u.end(); err != nil {
		return message.Message{}, err
	}
	return m, nil
}

func (u *unpacker) parts(whole []byte) []message.Part {
	n := u.uint()
	if n == 0 {
		return nil
	}
	n--
	if n > uint64(len(u.b)) {
		u.fail()
		return nil
	}
	parts := make([]message.Part, n)
	for i := range parts {
		u.part(&parts[i], whole)
	}
	return parts
}

func (u *unpacker) part(part *message.Part, whole []byte) {
	known := kinds()
	switch kind := u.uint(); {
	case kind == 0:
		part.Kind = message.Kind(u.str())
	case kind <= uint64(len(known)):
		part.Kind = known[kind-1]
	default:
		u.fail()
	}
	flags := u.uint()
	if flags >= lastPartBits {
		u.fail()
		return
	}
	part.IsError = flags&partIsError != 0
	for i, f := range partFields(part) {
		switch bits := flags >> (partTextsAt + i*textBits); {
		case bits&textQuoted != 0:
			text, ok := unquote(u.piece(whole))
			if !ok {
				u.fail()
			}
			*f = text
		case bits&textRef != 0:
			*f = string(u.piece(whole))
		case bits&hasText != 0:
			*f = u.str()
		}
	}
	switch {
	case flags&partRawRef != 0:
		part.Raw = u.piece(whole)
	case flags&partRaw != 0:
		part.Raw = u.view()
	}
}

// piece returns a part of the message's Raw.
func (u *unpacker) piece(whole []byte) []byte {
	at, n := u.uint(), u.uint()
	size := uint64(len(whole))
	if at > size || n > size-at {
		u.fail()
		return nil
	}
	return whole[at : at+n : at+n]
}
