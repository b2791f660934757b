package postgres

import (
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/packed"
)

// unpackFirst reads the first layout of a body, behind the byte that says so and without its checksum. Nothing it returns refers to what u reads.
func unpackFirst(u packed.Reader) (m message.Message, fingerprint string, err error) {
	// A number more than there are bytes tells nil from empty.
	view := func() []byte {
		n := u.Uint()
		if n == 0 {
			return nil
		}
		return append([]byte{}, u.Next(n-1)...)
	}
	fingerprint = u.Str()
	m.Role = message.Role(u.Str())
	for _, to := range []*string{&m.ID, &m.Key, &m.Name, &m.Stop, &m.Type, &m.Format} {
		*to = u.Str()
	}
	m.Raw = view()
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
		part.Raw = view()
	}
	return m, fingerprint, u.End()
}
