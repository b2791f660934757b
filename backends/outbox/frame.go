package outbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A frame holds the records that were written together: the magic number, the payload's length, its checksum, a
// checksum of these three, and the payload. All numbers are big endian. A length that matches its checksum can be trusted, which tells a
// frame that a crash cut off from one that was damaged later.
const (
	frameMagic  = 0x9c0b0c5e
	frameHeader = 16
	// maxFrame bounds a payload, in bytes.
	maxFrame = 64 << 20
)

// frame appends a frame with these records to b.
func frame(b []byte, records ...record) []byte {
	at := len(b)
	b = append(b, make([]byte, frameHeader)...)
	for i := range records {
		b = records[i].encode(b)
	}
	payload := b[at+frameHeader:]
	binary.BigEndian.PutUint32(b[at:], frameMagic)
	binary.BigEndian.PutUint32(b[at+4:], uint32(len(payload)))
	binary.BigEndian.PutUint32(b[at+8:], checksum(payload))
	binary.BigEndian.PutUint32(b[at+12:], checksum(b[at:at+12]))
	return b
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// reading is what a part of a journal amounts to.
type reading struct {
	records []record
	// end is where the last intact frame ends; what is behind it is cut off.
	end int
	// damage is where bytes are not what was written; intact frames may follow.
	damage []int
}

// read takes a journal apart. Records behind damage are there too. An error means that an intact frame holds what this program
// cannot read.
func read(b []byte) (reading, error) {
	var r reading
	for at := 0; at < len(b); {
		payload, state := frameAt(b, at)
		switch state {
		case frameCut:
			return r, nil
		case frameDamaged:
			r.damage = append(r.damage, at)
			next := nextFrame(b, at+1)
			if next < 0 {
				return r, nil
			}
			at = next
			continue
		}
		records, err := decodeRecords(payload)
		if err != nil {
			return r, fmt.Errorf("offset %d: %w", at, err)
		}
		r.records = append(r.records, records...)
		at += frameHeader + len(payload)
		r.end = at
	}
	return r, nil
}

// The states of what stands at an offset.
const (
	frameIntact = iota
	// frameCut is the beginning of a frame whose end was never written.
	frameCut
	frameDamaged
)

// frameAt looks at one frame.
func frameAt(b []byte, at int) (payload []byte, state int) {
	rest := b[at:]
	// A power failure can leave a file longer than what was written into it.
	if allZero(rest) {
		return nil, frameCut
	}
	if len(rest) < frameHeader {
		magic := binary.BigEndian.AppendUint32(nil, frameMagic)
		n := min(len(rest), len(magic))
		if bytes.Equal(rest[:n], magic[:n]) {
			return nil, frameCut
		}
		return nil, frameDamaged
	}
	size := int(binary.BigEndian.Uint32(rest[4:]))
	if binary.BigEndian.Uint32(rest) != frameMagic || size > maxFrame || checksum(rest[:12]) != binary.BigEndian.Uint32(rest[12:]) {
		return nil, frameDamaged
	}
	rest = rest[frameHeader:]
	if len(rest) < size {
		return nil, frameCut
	}
	if checksum(rest[:size]) != binary.BigEndian.Uint32(b[at+8:]) {
		if size > 0 && len(rest) == size && rest[size-1] == 0 && endsInZeros(rest) {
			return nil, frameCut
		}
		return nil, frameDamaged
	}
	return rest[:size], frameIntact
}

// nextFrame returns where the next intact frame begins, or -1.
func nextFrame(b []byte, from int) int {
	magic := binary.BigEndian.AppendUint32(nil, frameMagic)
	for from < len(b) {
		i := bytes.Index(b[from:], magic)
		if i < 0 {
			return -1
		}
		from += i
		if _, state := frameAt(b, from); state == frameIntact {
			return from
		}
		from++
	}
	return -1
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// endsInZeros reports whether at least a disk sector's worth of the end, or half of it, was never written.
func endsInZeros(b []byte) bool {
	zeros := len(b) - len(bytes.TrimRight(b, "\x00"))
	return zeros >= 512 || 2*zeros >= len(b)
}

// damaged is the error for damage in a file.
func damaged(file string, offsets []int, base int64) error {
	return fmt.Errorf(`%s: offset %d: the journal is not what was written (%d such places): restore it, or go on with its intact records `+
		`with recover: "accept" and call Requeue: %w`, file, base+int64(offsets[0]), len(offsets), ErrDamaged)
}

// errNoHeader is what a file that is no journal gives.
var errNoHeader = errors.New("offset 0: it does not begin like an outbox journal")
