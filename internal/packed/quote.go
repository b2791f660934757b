package packed

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// minRef is the length in bytes from which a text is looked for in the message's original bytes.
const minRef = 8

// locate finds text in raw, as it is or as JSON writes it in a string, so that it need not be stored twice.
func locate(raw []byte, text string) (from, n int, quoted, ok bool) {
	if len(raw) == 0 || len(text) < minRef {
		return 0, 0, false, false
	}
	// All attempts together look at so many bytes, which bounds what hostile texts can cost.
	budget := 4*len(raw) + 64
	for at := 0; budget > 0; {
		i := bytes.IndexByte(raw[at:], '"')
		if i < 0 {
			break
		}
		at += i + 1
		n, seen, plain := match(raw[at:], text)
		if n > 0 {
			return at, n, !plain, true
		}
		budget -= seen + 1
	}
	// Arguments and the like stand in raw without quotes.
	if i := bytes.Index(raw, []byte(text)); i >= 0 {
		return i, len(text), false, true
	}
	return 0, 0, false, false
}

// match returns how many bytes of raw, the inside of a JSON string, say text; 0 when they say something else. plain means that
// they are the very bytes of text.
func match(raw []byte, text string) (n, seen int, plain bool) {
	plain = true
	for len(text) > 0 {
		if n >= len(raw) {
			return 0, n, false
		}
		if raw[n] != '\\' {
			if raw[n] != text[0] {
				return 0, n, false
			}
			text = text[1:]
			n++
			continue
		}
		plain = false
		var buf [utf8.UTFMax]byte
		said, used := unescape(buf[:0], raw[n:])
		if used == 0 || len(said) > len(text) || string(said) != text[:len(said)] {
			return 0, n, false
		}
		text = text[len(said):]
		n += used
	}
	return n, n, plain
}

// unquote returns what the inside of a JSON string says.
func unquote(raw []byte) (string, bool) {
	var out strings.Builder
	out.Grow(len(raw))
	var buf [utf8.UTFMax]byte
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			out.Write(raw)
			break
		}
		out.Write(raw[:i])
		raw = raw[i:]
		said, used := unescape(buf[:0], raw)
		if used == 0 {
			return "", false
		}
		out.Write(said)
		raw = raw[used:]
	}
	return out.String(), true
}

// unescape appends what one escape at the beginning of raw stands for, and returns its length in raw: 0 when it is none.
func unescape(to, raw []byte) ([]byte, int) {
	if len(raw) < 2 {
		return to, 0
	}
	switch raw[1] {
	case '"', '\\', '/':
		return append(to, raw[1]), 2
	case 'b':
		return append(to, '\b'), 2
	case 'f':
		return append(to, '\f'), 2
	case 'n':
		return append(to, '\n'), 2
	case 'r':
		return append(to, '\r'), 2
	case 't':
		return append(to, '\t'), 2
	case 'u':
		r := unit(raw)
		if r < 0 {
			return to, 0
		}
		if !utf16.IsSurrogate(r) {
			return utf8.AppendRune(to, r), 6
		}
		if pair := utf16.DecodeRune(r, unit(raw[6:])); pair != utf8.RuneError {
			return utf8.AppendRune(to, pair), 12
		}
	}
	return to, 0
}

// unit returns the number of an escape of the form \uXXXX, -1 when it is none.
func unit(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	v, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(v)
}
