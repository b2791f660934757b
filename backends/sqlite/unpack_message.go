package sqlite

import (
	"bytes"

	"github.com/contextengine/contextengine/core/message"
)

// unpackMessage is the inverse of packMessage. Nothing it returns refers to b.
func unpackMessage(b []byte) (m message.Message, nanos int, err error) {
	u := unpacker{b: b}
	flags := u.uint()
	if flags >= lastField {
		return message.Message{}, 0, errPacked
	}
	var format string
	var raw []byte
	if flags&hasFormat != 0 {
		format = u.str()
	}
	if flags&hasRaw != 0 {
		raw = append([]byte{}, u.view()...)
	}
	if flags&hasDerived != 0 {
		if u.err != nil {
			return message.Message{}, 0, u.err
		}
		if m, err = decodeRaw(format, raw); err != nil {
			return message.Message{}, 0, err
		}
	}
	m.Format, m.Raw, m.Edited = format, raw, flags&isEdited != 0
	if flags&hasRole != 0 {
		m.Role = message.Role(u.str())
	}
	for _, f := range []struct {
		flag  uint64
		field *string
	}{{hasID, &m.ID}, {hasKey, &m.Key}, {hasName, &m.Name}, {hasStop, &m.Stop}, {hasType, &m.Type}} {
		if flags&f.flag != 0 {
			*f.field = u.str()
		}
	}
	if flags&hasTime != 0 {
		m.Time = u.time()
	}
	if flags&hasUsage != 0 {
		for _, n := range []*int{&m.Usage.Input, &m.Usage.Output, &m.Usage.CacheRead, &m.Usage.CacheWrite} {
			*n = int(u.int())
		}
	}
	if flags&hasNanos != 0 {
		nanos = int(u.uint())
	}
	if flags&hasDerived == 0 {
		m.Parts = u.parts(raw)
	}
	if err := u.end(); err != nil {
		return message.Message{}, 0, err
	}
	return m, nanos, nil
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
	part.Kind = message.Kind(u.str())
	flags := u.uint()
	if flags >= lastPartField {
		u.fail()
		return
	}
	for _, f := range []struct {
		flag  uint64
		field *string
	}{
		{partText, &part.Text}, {partCallID, &part.CallID}, {partName, &part.Name}, {partArgs, &part.Args}, {partSignature, &part.Signature},
	} {
		if flags&f.flag != 0 {
			*f.field = u.str()
		}
	}
	part.IsError = flags&partIsError != 0
	switch {
	case flags&partRawRef != 0:
		at, n := u.uint(), u.uint()
		size := uint64(len(whole))
		if at > size || n > size-at {
			u.fail()
			return
		}
		part.Raw = bytes.Clone(whole[at : at+n])
	case flags&partRaw != 0:
		part.Raw = append([]byte{}, u.view()...)
	}
}
