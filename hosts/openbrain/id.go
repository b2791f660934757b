package openbrain

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Ids have the form of a UUID of version 8. The first 32 bits are a hash of the source, so that an id alone leads to
// the few sources it can be of; the rest is a hash of the idempotency key, or random.

// tagOf returns the part of an id that stands for the source.
func tagOf(source string) uint32 {
	sum := sha256.Sum256([]byte("openbrain source\x00" + source))
	return binary.BigEndian.Uint32(sum[:4])
}

// keyedID returns the id of the thought that was created with an idempotency key.
func keyedID(source, key string) string {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(source)))
	h.Write(n[:])
	h.Write([]byte(source))
	h.Write([]byte(key))
	return makeID(source, h.Sum(nil))
}

// randomID returns an id that nobody had before.
func randomID(source string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	return makeID(source, b[:])
}

func makeID(source string, rest []byte) string {
	var b [16]byte
	binary.BigEndian.PutUint32(b[:4], tagOf(source))
	copy(b[4:], rest)
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// tagIn returns the source's part of an id; ok is false for what is no id of ours.
func tagIn(id string) (tag uint32, ok bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return 0, false
	}
	for i := range len(id) {
		c := id[i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return 0, false
		}
	}
	b, err := hex.DecodeString(id[:8])
	if err != nil {
		return 0, false
	}
	return binary.BigEndian.Uint32(b), true
}
