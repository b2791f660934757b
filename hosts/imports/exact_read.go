package imports

import (
	"encoding/binary"
	"slices"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// unpacker reads what a packer wrote. After an error all its methods return zero values.
type unpacker struct {
	b   []byte
	err error
}

func (u *unpacker) fail() { u.b, u.err = nil, errPacked }

func (u *unpacker) uint() uint64 {
	v, n := binary.Uvarint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

func (u *unpacker) int() int64 {
	v, n := binary.Varint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

func (u *unpacker) view() []byte {
	n := u.uint()
	if n > uint64(len(u.b)) {
		u.fail()
		return nil
	}
	v := u.b[:n:n]
	u.b = u.b[n:]
	return v
}

func (u *unpacker) str() string { return string(u.view()) }

// end returns the error, also when something is left.
func (u *unpacker) end() error {
	if u.err == nil && len(u.b) > 0 {
		u.fail()
	}
	return u.err
}

// unpackExact is the inverse of packExact. It reads everything that a store's own export may have, also texts that point into the message's bytes.
func unpackExact(b []byte, e *core.Entry) error {
	u := &unpacker{b: b}
	e.ID, e.Agent, e.Session = u.str(), u.str(), u.str()
	e.Role, e.Type = message.Role(u.str()), core.EntryType(u.str())
	e.Key, e.Fingerprint = u.str(), u.str()
	meta, body := u.view(), u.view()
	if err := u.end(); err != nil {
		return err
	}
	e.Meta = nil
	if len(meta) > 0 {
		u = &unpacker{b: meta}
		n := u.uint()
		e.Meta = make(map[string]string)
		for range min(n, uint64(len(meta))) {
			k := u.str()
			e.Meta[k] = u.str()
		}
		if err := u.end(); err != nil {
			return err
		}
	}
	u = &unpacker{b: body}
	e.Message = u.message(e)
	return u.end()
}

func (u *unpacker) message(e *core.Entry) message.Message {
	flags := u.uint()
	if flags >= lastField {
		u.fail()
	}
	m := message.Message{Role: e.Role, Edited: flags&isEdited != 0}
	if flags&hasRaw != 0 {
		m.Raw = append([]byte{}, u.view()...)
	}
	if flags&hasRole != 0 {
		m.Role = message.Role(u.str())
	}
	for _, f := range messageFields(&m) {
		if flags&f.flag != 0 {
			*f.text = u.str()
		}
	}
	switch {
	case flags&hasEntryTime != 0:
		m.Time = e.Time.UTC()
	case flags&hasTime != 0:
		m.Time = u.time()
	}
	if flags&hasUsage != 0 {
		for _, n := range []*int{&m.Usage.Input, &m.Usage.Output, &m.Usage.CacheRead, &m.Usage.CacheWrite} {
			*n = int(u.int())
		}
	}
	if n := u.uint(); n > 0 {
		if n-1 > uint64(len(u.b)) {
			u.fail()
			return m
		}
		m.Parts = make([]message.Part, n-1)
		for i := range m.Parts {
			u.part(&m.Parts[i], m.Raw)
		}
	}
	return m
}

func (u *unpacker) time() time.Time {
	sec, nsec := u.int(), u.uint()
	if nsec >= uint64(time.Second) {
		u.fail()
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
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
	if flags >= lastPart {
		u.fail()
		return
	}
	part.IsError = flags&partIsError != 0
	for i, f := range partFields(part) {
		switch bits := flags >> (partTextsAt + i*textBits); {
		case bits&textQuoted != 0:
			text, ok := unescaped(string(u.piece(whole)))
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
		part.Raw = slices.Clone(u.piece(whole))
	case flags&partRaw != 0:
		part.Raw = append([]byte{}, u.view()...)
	}
}

// piece returns a part of the message's bytes.
func (u *unpacker) piece(whole []byte) []byte {
	from, n := u.uint(), u.uint()
	size := uint64(len(whole))
	if from > size || n > size-from {
		u.fail()
		return nil
	}
	return whole[from : from+n]
}

// unescaped returns what the inside of a JSON string says. Bytes that are no UTF-8 stay as they are, which no JSON decoder grants.
func unescaped(s string) (string, bool) {
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		if s[0] != '\\' {
			out = append(out, s[0])
			s = s[1:]
			continue
		}
		if len(s) < 2 {
			return "", false
		}
		if s[1] == 'u' {
			r, ok := unit(s)
			used := 6
			if ok && utf16.IsSurrogate(r) {
				low, _ := unit(s[6:])
				r = utf16.DecodeRune(r, low)
				used, ok = 12, r != utf8.RuneError
			}
			if !ok {
				return "", false
			}
			out = utf8.AppendRune(out, r)
			s = s[used:]
			continue
		}
		c, ok := map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}[s[1]]
		if !ok {
			return "", false
		}
		out = append(out, c)
		s = s[2:]
	}
	return string(out), true
}

// unit reads an escape of the form \uXXXX.
func unit(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(v), err == nil
}
