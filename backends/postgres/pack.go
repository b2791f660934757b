package postgres

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/packed"
)

// The first byte of a body: the version of its layout. What was written in the first is read by unpackFirst.
const (
	layoutFirst byte = 1
	layout      byte = 2
)

// sumBytes is how many bytes of a checksum end a body.
const sumBytes = 4

// packBody encodes an entry's message and fingerprint, with a checksum at the end. The entry's other columns are not in it.
func packBody(e *core.Entry) []byte {
	p := packed.Writer{B: []byte{layout}}
	p.Digest(e.Fingerprint)
	p.B = append(p.B, packed.Seal(packed.Message(&e.Message, packed.Home(e)))...)
	return binary.LittleEndian.AppendUint32(p.B, checksum(p.B))
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// unpackBody puts what packBody encoded into an entry whose other fields are set.
func unpackBody(e *core.Entry, body []byte) (err error) {
	end := len(body) - sumBytes
	if end < 1 || binary.LittleEndian.Uint32(body[end:]) != checksum(body[:end]) {
		return packed.ErrMalformed
	}
	u := packed.Reader{B: body[1:end]}
	switch body[0] {
	case layoutFirst:
		e.Message, e.Fingerprint, err = unpackFirst(u)
		return err
	case layout:
		e.Fingerprint = u.Digest()
		if u.Err != nil {
			return u.Err
		}
		plain, err := packed.Unseal(u.B)
		if err == nil {
			e.Message, err = packed.ReadMessage(plain, packed.Home(e))
		}
		return err
	}
	return fmt.Errorf("body of unknown layout %d", body[0])
}

// packMeta returns nil for no metadata.
func packMeta(meta map[string]string) []byte {
	if len(meta) == 0 {
		return nil
	}
	return packed.Meta(meta)
}
