package postgres

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/packed"
)

// errPacked is what a packed value that ends early, goes on too long or was changed is.
var errPacked = errors.New("stored bytes are not what was written")

// layout is the first byte of a body: the version of its layout.
const layout byte = 1

// appendBytes tells nil from empty.
func appendBytes(p *packed.Writer, s []byte) {
	if s == nil {
		p.Uint(0)
		return
	}
	p.Uint(uint64(len(s)) + 1)
	p.B = append(p.B, s...)
}

func readBytes(u *packed.Reader) []byte {
	n := u.Uint()
	if n == 0 {
		return nil
	}
	return append([]byte{}, u.Next(n-1)...)
}

// packBody encodes a message and its fingerprint, with a checksum at the end.
func packBody(m *message.Message, fingerprint string) []byte {
	n := 128 + len(m.Raw)
	for i := range m.Parts {
		n += 32 + len(m.Parts[i].Text) + len(m.Parts[i].Args) + len(m.Parts[i].Raw)
	}
	p := packed.Writer{B: append(make([]byte, 0, n), layout)}
	p.Str(fingerprint)
	for _, s := range []string{string(m.Role), m.ID, m.Key, m.Name, m.Stop, m.Type, m.Format} {
		p.Str(s)
	}
	appendBytes(&p, m.Raw)
	p.Bool(m.Edited)
	p.Bool(!m.Time.IsZero())
	if !m.Time.IsZero() {
		p.Time(m.Time)
	}
	for _, n := range []int{m.Usage.Input, m.Usage.Output, m.Usage.CacheRead, m.Usage.CacheWrite} {
		p.Int(int64(n))
	}
	// The number of parts plus one; 0 is nil.
	if m.Parts == nil {
		p.Uint(0)
	} else {
		p.Uint(uint64(len(m.Parts)) + 1)
	}
	for i := range m.Parts {
		part := &m.Parts[i]
		for _, s := range []string{string(part.Kind), part.Text, part.CallID, part.Name, part.Args, part.Signature} {
			p.Str(s)
		}
		p.Bool(part.IsError)
		appendBytes(&p, part.Raw)
	}
	return binary.LittleEndian.AppendUint32(p.B, checksum(p.B))
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// unpackBody is the inverse of packBody. Nothing it returns refers to b.
func unpackBody(b []byte) (m message.Message, fingerprint string, err error) {
	const sum = 4
	if len(b) < 1+sum || b[0] != layout || binary.LittleEndian.Uint32(b[len(b)-sum:]) != checksum(b[:len(b)-sum]) {
		return message.Message{}, "", errPacked
	}
	u := packed.Reader{B: b[1 : len(b)-sum]}
	fingerprint = u.Str()
	m.Role = message.Role(u.Str())
	for _, to := range []*string{&m.ID, &m.Key, &m.Name, &m.Stop, &m.Type, &m.Format} {
		*to = u.Str()
	}
	m.Raw = readBytes(&u)
	m.Edited = u.Bool()
	if u.Bool() {
		m.Time = u.Time()
	}
	for _, to := range []*int{&m.Usage.Input, &m.Usage.Output, &m.Usage.CacheRead, &m.Usage.CacheWrite} {
		*to = int(u.Int())
	}
	if n := u.Uint(); n > 0 {
		// Each takes some bytes, so damage cannot ask for much memory.
		if n-1 > uint64(len(u.B)) {
			u.Fail()
			n = 1
		}
		m.Parts = make([]message.Part, n-1)
	}
	for i := range m.Parts {
		part := &m.Parts[i]
		part.Kind = message.Kind(u.Str())
		for _, to := range []*string{&part.Text, &part.CallID, &part.Name, &part.Args, &part.Signature} {
			*to = u.Str()
		}
		part.IsError = u.Bool()
		part.Raw = readBytes(&u)
	}
	if err := u.End(); err != nil {
		return message.Message{}, "", err
	}
	return m, fingerprint, nil
}

// packMeta returns nil for no metadata.
func packMeta(meta map[string]string) []byte {
	if len(meta) == 0 {
		return nil
	}
	return packed.Meta(meta)
}
