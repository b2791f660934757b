package sqlite

import (
	"encoding/binary"
	"errors"
	"time"
)

// errPacked is what a packed value that ends early or goes on too long is.
var errPacked = errors.New("packed value is malformed")

// packer appends values to a buffer, each so that unpacker finds its end.
type packer struct{ b []byte }

func (p *packer) uint(v uint64) { p.b = binary.AppendUvarint(p.b, v) }

func (p *packer) int(v int64) { p.b = binary.AppendVarint(p.b, v) }

func (p *packer) str(s string) {
	p.uint(uint64(len(s)))
	p.b = append(p.b, s...)
}

func (p *packer) bytes(s []byte) {
	p.uint(uint64(len(s)))
	p.b = append(p.b, s...)
}

// time keeps the instant; the location is lost.
func (p *packer) time(t time.Time) {
	p.int(t.Unix())
	p.uint(uint64(t.Nanosecond()))
}

// unpacker reads what packer wrote. After an error all its methods return zero values.
type unpacker struct {
	b   []byte
	err error
}

func (u *unpacker) fail() {
	u.b, u.err = nil, errPacked
}

func (u *unpacker) uint() uint64 {
	v, n := binary.Uvarint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

func (u *unpacker) int() int64 {
	v, n := binary.Varint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

// view returns the next bytes without copying them.
func (u *unpacker) view() []byte {
	n := u.uint()
	if n > uint64(len(u.b)) {
		u.fail()
		return nil
	}
	v := u.b[:n:n]
	u.b = u.b[n:]
	return v
}

func (u *unpacker) str() string { return string(u.view()) }

// count returns a number of things that take at least one byte each, so that damage cannot ask for much memory.
func (u *unpacker) count() int {
	n := u.uint()
	if n > uint64(len(u.b)) {
		u.fail()
		return 0
	}
	return int(n)
}

func (u *unpacker) time() time.Time {
	sec, nsec := u.int(), u.uint()
	if nsec >= uint64(time.Second) {
		u.fail()
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
}

// end returns the error, also when something is left.
func (u *unpacker) end() error {
	if u.err == nil && len(u.b) > 0 {
		u.fail()
	}
	return u.err
}
