package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// mismatch says what was expected in a host's bytes and what stood there instead. It never quotes content.
type mismatch struct{ want, found string }

func (e *mismatch) Error() string {
	return ErrMalformed.Error() + ": expected " + e.want + ", found " + e.found
}

func (e *mismatch) Unwrap() error { return ErrMalformed }

func expected(want, found string) error { return &mismatch{want: want, found: found} }

// within adds the place to an error of a nested value.
func within(err error, format string, args ...any) error {
	if m, ok := errors.AsType[*mismatch](err); ok {
		return expected(m.want+" in "+fmt.Sprintf(format, args...), m.found)
	}
	return err
}

// syntax turns an error of the JSON decoder into a mismatch.
func syntax(want string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return expected(want, "the end of the input")
	}
	return expected(want, err.Error())
}

// kindOf returns the first byte of a JSON value, which says what it is; 0 for no value.
func kindOf(raw []byte) byte {
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

func describe(raw []byte) string {
	k := kindOf(raw)
	if k != 0 && k != '{' && k != '[' && !json.Valid(raw) {
		return "text that is not JSON"
	}
	switch k {
	case 0:
		return "nothing"
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		if k == '-' || k >= '0' && k <= '9' {
			return "a number"
		}
		return "text that is not JSON"
	}
}

// unquote reads a JSON string; ok is false for any other value. Bytes that are no UTF-8 become U+FFFD.
func unquote(raw []byte) (s string, ok bool) {
	if kindOf(raw) != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), true
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// str reads a field that is a string, null or absent.
func (o object) str(key string) (string, error) {
	raw := o.get(key)
	if k := kindOf(raw); k == 0 || k == 'n' {
		return "", nil
	}
	s, ok := unquote(raw)
	if !ok {
		return "", expected(strconv.Quote(key)+" to be a string", describe(raw))
	}
	return s, nil
}

// text reads a field that may be a string; anything else is "".
func (o object) text(key string) string {
	s, _ := unquote(o.get(key))
	return s
}

// flag reads a boolean field; anything but true is false.
func (o object) flag(key string) bool { return kindOf(o.get(key)) == 't' }

// count reads a field as a number of tokens: 0 when it is none, is negative or too large.
func (o object) count(key string) int {
	f, ok := number(o.get(key))
	if !ok || f < 0 || f > math.MaxInt32 {
		return 0
	}
	return int(f)
}

func number(raw []byte) (float64, bool) {
	if k := kindOf(raw); k != '-' && (k < '0' || k > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

// timeOf reads a time: milliseconds since 1970 as a number, or a string of RFC 3339. It is zero for everything
// else, for 0 (hosts write it for "unknown") and for years that RFC 3339 cannot write.
func timeOf(raw []byte) time.Time {
	if s, ok := unquote(raw); ok {
		t, err := time.Parse(time.RFC3339, strings.TrimSpace(s))
		if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
			return time.Time{}
		}
		return t.UTC()
	}
	const year9999 = 253402300799999
	f, ok := number(raw)
	if !ok || f == 0 || math.Abs(f) > year9999 {
		return time.Time{}
	}
	t := time.UnixMilli(int64(f)).UTC()
	if t.Year() < 1 {
		return time.Time{}
	}
	return t
}

// milliseconds is the inverse of timeOf.
func milliseconds(t time.Time) []byte {
	if t.IsZero() {
		return []byte("0")
	}
	return strconv.AppendInt(nil, t.UnixMilli(), 10)
}

func boolean(b bool) []byte { return strconv.AppendBool(nil, b) }
