package postgres

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// errPacked is what a packed value that ends early, goes on too long or was changed is.
var errPacked = errors.New("stored bytes are not what was written")

// packed is the first byte of a body: the version of its layout.
const packed byte = 1

// packer appends values to a buffer, each so that unpacker finds its end.
type packer struct{ b []byte }

func (p *packer) uint(v uint64) { p.b = binary.AppendUvarint(p.b, v) }

func (p *packer) int(v int64) { p.b = binary.AppendVarint(p.b, v) }

func (p *packer) bool(v bool) {
	if v {
		p.uint(1)
		return
	}
	p.uint(0)
}

func (p *packer) str(s string) {
	p.uint(uint64(len(s)))
	p.b = append(p.b, s...)
}

// bytes tells nil from empty.
func (p *packer) bytes(s []byte) {
	if s == nil {
		p.uint(0)
		return
	}
	p.uint(uint64(len(s)) + 1)
	p.b = append(p.b, s...)
}

// packBody encodes a message and its fingerprint, with a checksum at the end.
func packBody(m *message.Message, fingerprint string) []byte {
	n := 128 + len(m.Raw)
	for i := range m.Parts {
		n += 32 + len(m.Parts[i].Text) + len(m.Parts[i].Args) + len(m.Parts[i].Raw)
	}
	p := packer{b: append(make([]byte, 0, n), packed)}
	p.str(fingerprint)
	for _, s := range []string{string(m.Role), m.ID, m.Key, m.Name, m.Stop, m.Type, m.Format} {
		p.str(s)
	}
	p.bytes(m.Raw)
	p.bool(m.Edited)
	p.bool(!m.Time.IsZero())
	if !m.Time.IsZero() {
		p.int(m.Time.Unix())
		p.uint(uint64(m.Time.Nanosecond()))
	}
	for _, n := range []int{m.Usage.Input, m.Usage.Output, m.Usage.CacheRead, m.Usage.CacheWrite} {
		p.int(int64(n))
	}
	// The number of parts plus one; 0 is nil.
	if m.Parts == nil {
		p.uint(0)
	} else {
		p.uint(uint64(len(m.Parts)) + 1)
	}
	for i := range m.Parts {
		part := &m.Parts[i]
		for _, s := range []string{string(part.Kind), part.Text, part.CallID, part.Name, part.Args, part.Signature} {
			p.str(s)
		}
		p.bool(part.IsError)
		p.bytes(part.Raw)
	}
	return binary.LittleEndian.AppendUint32(p.b, checksum(p.b))
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// unpackBody is the inverse of packBody. Nothing it returns refers to b.
func unpackBody(b []byte) (m message.Message, fingerprint string, err error) {
	const sum = 4
	if len(b) < 1+sum || b[0] != packed || binary.LittleEndian.Uint32(b[len(b)-sum:]) != checksum(b[:len(b)-sum]) {
		return message.Message{}, "", errPacked
	}
	u := unpacker{b: b[1 : len(b)-sum]}
	fingerprint = u.str()
	m.Role = message.Role(u.str())
	for _, to := range []*string{&m.ID, &m.Key, &m.Name, &m.Stop, &m.Type, &m.Format} {
		*to = u.str()
	}
	m.Raw = u.bytes()
	m.Edited = u.bool()
	if u.bool() {
		sec, nsec := u.int(), u.uint()
		if nsec >= uint64(time.Second) {
			u.fail()
		}
		m.Time = time.Unix(sec, int64(nsec)).UTC()
	}
	for _, to := range []*int{&m.Usage.Input, &m.Usage.Output, &m.Usage.CacheRead, &m.Usage.CacheWrite} {
		*to = int(u.int())
	}
	if n := u.uint(); n > 0 {
		// Each takes some bytes, so damage cannot ask for much memory.
		if n-1 > uint64(len(u.b)) {
			u.fail()
			n = 1
		}
		m.Parts = make([]message.Part, n-1)
	}
	for i := range m.Parts {
		part := &m.Parts[i]
		part.Kind = message.Kind(u.str())
		for _, to := range []*string{&part.Text, &part.CallID, &part.Name, &part.Args, &part.Signature} {
			*to = u.str()
		}
		part.IsError = u.bool()
		part.Raw = u.bytes()
	}
	if err := u.end(); err != nil {
		return message.Message{}, "", err
	}
	return m, fingerprint, nil
}

// packMeta returns nil for no metadata.
func packMeta(meta map[string]string) []byte {
	if len(meta) == 0 {
		return nil
	}
	var p packer
	p.uint(uint64(len(meta)))
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		p.str(k)
		p.str(meta[k])
	}
	return p.b
}

func unpackMeta(b []byte) (map[string]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	u := unpacker{b: b}
	n := u.uint()
	if n > uint64(len(u.b)) {
		return nil, errPacked
	}
	meta := make(map[string]string, n)
	for range n {
		k := u.str()
		meta[k] = u.str()
	}
	return meta, u.end()
}
