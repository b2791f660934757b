// Package packed is the binary encoding that stores, journals and exports share: numbers as varints, texts behind their
// length, and messages that do not repeat what their original bytes hold.
package packed

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
)

// ErrMalformed is what a packed value that ends early or goes on too long is.
var ErrMalformed = errors.New("packed value is malformed")

// Writer appends values to B, each so that Reader finds its end.
type Writer struct{ B []byte }

// Uint appends a number.
func (p *Writer) Uint(v uint64) { p.B = binary.AppendUvarint(p.B, v) }

// Int appends a number that may be negative.
func (p *Writer) Int(v int64) { p.B = binary.AppendVarint(p.B, v) }

// Bool appends 0 or 1.
func (p *Writer) Bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	p.B = append(p.B, b)
}

// Str appends a text.
func (p *Writer) Str(s string) {
	p.Uint(uint64(len(s)))
	p.B = append(p.B, s...)
}

// Hex returns the bytes that lower-case hexadecimal digits stand for; ok is false for other texts.
func Hex(text string) (b []byte, ok bool) {
	b, err := hex.DecodeString(text)
	return b, err == nil && len(b) > 0 && hex.EncodeToString(b) == text
}

// Digest appends a text, in half the room where it is of hexadecimal digits.
func (p *Writer) Digest(s string) {
	b, ok := Hex(s)
	p.Bool(ok)
	if ok {
		p.Bytes(b)
		return
	}
	p.Str(s)
}

// Bytes appends bytes; nil is empty.
func (p *Writer) Bytes(s []byte) {
	p.Uint(uint64(len(s)))
	p.B = append(p.B, s...)
}

// Time keeps the instant; the location is lost.
func (p *Writer) Time(t time.Time) {
	p.Int(t.Unix())
	p.Uint(uint64(t.Nanosecond()))
}

// Reader reads B, which Writer wrote. After an error, which is in Err, all its methods return zero values.
type Reader struct {
	B   []byte
	Err error
}

// Fail says that what was read makes no sense.
func (u *Reader) Fail() {
	if u.Err == nil {
		u.Err = ErrMalformed
	}
	u.B = nil
}

// Uint reads a number.
func (u *Reader) Uint() uint64 {
	v, n := binary.Uvarint(u.B)
	if n <= 0 {
		u.Fail()
		return 0
	}
	u.B = u.B[n:]
	return v
}

// Int reads a number that may be negative.
func (u *Reader) Int() int64 {
	v, n := binary.Varint(u.B)
	if n <= 0 {
		u.Fail()
		return 0
	}
	u.B = u.B[n:]
	return v
}

// Bool reads 0 or 1.
func (u *Reader) Bool() bool {
	v := u.Uint()
	if v > 1 {
		u.Fail()
	}
	return v == 1
}

// Byte reads one byte.
func (u *Reader) Byte() byte {
	b := u.Next(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

// Next returns the next n bytes without copying them.
func (u *Reader) Next(n uint64) []byte {
	if n > uint64(len(u.B)) {
		u.Fail()
		return nil
	}
	v := u.B[:n:n]
	u.B = u.B[n:]
	return v
}

// View reads bytes without copying them.
func (u *Reader) View() []byte { return u.Next(u.Uint()) }

// Digest reads what Writer.Digest wrote.
func (u *Reader) Digest() string {
	if u.Bool() {
		return hex.EncodeToString(u.View())
	}
	return u.Str()
}

// Str reads a text.
func (u *Reader) Str() string { return string(u.View()) }

// Count returns a number of things that take at least one byte each, so that damage cannot ask for much memory.
func (u *Reader) Count() int {
	n := u.Uint()
	if n > uint64(len(u.B)) {
		u.Fail()
		return 0
	}
	return int(n)
}

// Time reads an instant.
func (u *Reader) Time() time.Time {
	sec, nsec := u.Int(), u.Uint()
	if nsec >= uint64(time.Second) {
		u.Fail()
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
}

// End returns the error, also when something is left.
func (u *Reader) End() error {
	if u.Err == nil && len(u.B) > 0 {
		u.Fail()
	}
	return u.Err
}
