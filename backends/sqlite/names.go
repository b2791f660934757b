package sqlite

import (
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/internal/packed"
)

// What names entries is stored in the file and once more in its indexes, so the usual forms are made short: a text in a column is the name itself, a
// blob one of those. Different names stay different and each has one form, so they are compared as they are stored.

const (
	// idMark is what the ids that the engine makes begin with; the rest are 16 bytes in letters.
	idMark  = "e"
	idBytes = 16
	// digestDigits is the length of the digests in keys that the engine makes.
	digestDigits = 32
)

// idLetters keeps the order of ids: an index of them grows at its end.
var idLetters = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// shortID returns an id as the column has it.
func shortID(id string) any {
	text, ok := strings.CutPrefix(id, idMark)
	if !ok || len(text) != idLetters.EncodedLen(idBytes) {
		return id
	}
	b := make([]byte, idBytes)
	if _, err := idLetters.Decode(b, []byte(text)); err != nil || idLetters.EncodeToString(b) != text {
		return id
	}
	return b
}

// storedID is an id that is read from a column. It is empty where there is none.
type storedID string

// Scan implements sql.Scanner.
func (id *storedID) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*id = ""
	case string:
		*id = storedID(v)
	case []byte:
		var text [len(idMark) + (idBytes*8+4)/5]byte
		if len(v) != idBytes {
			*id = storedID(v) // which no checksum takes
			return nil
		}
		idLetters.Encode(text[copy(text[:], idMark):], v)
		*id = storedID(text[:])
	default:
		return fmt.Errorf("an id is a %T", v)
	}
	return nil
}

// The forms of keys that are blobs, by their first byte. Keys of places are in the order of these.
const (
	// keyPlace is "s:", a number, ":" and anything.
	keyPlace byte = 1 + iota
	// keyPlaceDigest is the same with a digest behind the ":".
	keyPlaceDigest
	// keyDigest is anything with a digest at the end.
	keyDigest
)

// shortKey returns a key as the column has it.
func shortKey(key string) any {
	if place, ok := strings.CutPrefix(key, "s:"); ok {
		digits, rest, ok := strings.Cut(place, ":")
		if n, err := strconv.ParseUint(digits, 10, 64); ok && err == nil && strconv.FormatUint(n, 10) == digits {
			b := append(make([]byte, 0, 10+len(rest)), keyPlace)
			b = appendNumber(b, n)
			if len(rest) >= digestDigits {
				if digest, ok := packed.Hex(rest[:digestDigits]); ok {
					b[0] = keyPlaceDigest
					b, rest = append(b, digest...), rest[digestDigits:]
				}
			}
			return append(b, rest...)
		}
	}
	if at := len(key) - digestDigits; at >= 0 {
		if digest, ok := packed.Hex(key[at:]); ok {
			return append(append(append(make([]byte, 0, 1+at+len(digest)), keyDigest), key[:at]...), digest...)
		}
	}
	return key
}

// longKey is the inverse of shortKey. What it did not make is empty.
func longKey(v any) string {
	b, ok := v.([]byte)
	if !ok {
		text, _ := v.(string)
		return text
	}
	if len(b) == 0 {
		return ""
	}
	form, b := b[0], b[1:]
	switch form {
	case keyPlace, keyPlaceDigest:
		n, rest, ok := cutNumber(b)
		if !ok || form == keyPlaceDigest && len(rest) < digestDigits/2 {
			return ""
		}
		key := append(strconv.AppendUint(append(make([]byte, 0, 64), "s:"...), n, 10), ':')
		if form == keyPlaceDigest {
			key, rest = hex.AppendEncode(key, rest[:digestDigits/2]), rest[digestDigits/2:]
		}
		return string(append(key, rest...))
	case keyDigest:
		if at := len(b) - digestDigits/2; at >= 0 {
			return string(b[:at]) + hex.EncodeToString(b[at:])
		}
	}
	return ""
}

// appendNumber appends a number so that bytes are in the order of numbers: how many bytes it has, and these, the highest first.
func appendNumber(b []byte, n uint64) []byte {
	size := 0
	for rest := n; rest > 0; rest >>= 8 {
		size++
	}
	b = append(b, byte(size))
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(n>>(8*i)))
	}
	return b
}

func cutNumber(b []byte) (n uint64, rest []byte, ok bool) {
	if len(b) == 0 || b[0] > 8 || len(b) <= int(b[0]) {
		return 0, nil, false
	}
	for _, c := range b[1 : 1+b[0]] {
		n = n<<8 | uint64(c)
	}
	return n, b[1+b[0]:], true
}

// shortFingerprint stores a fingerprint in hexadecimal digits as half as many bytes, any other as it is.
func shortFingerprint(f string) any {
	if b, ok := packed.Hex(f); ok {
		return b
	}
	return f
}

func longFingerprint(v any) string {
	switch f := v.(type) {
	case []byte:
		return hex.EncodeToString(f)
	case string:
		return f
	}
	return ""
}
