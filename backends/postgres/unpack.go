package postgres

import (
	"encoding/binary"
)

// unpacker reads what packer wrote. After an error all its methods return zero values.
type unpacker struct {
	b   []byte
	err error
}

func (u *unpacker) fail() { u.b, u.err = nil, errPacked }

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

func (u *unpacker) bool() bool {
	v := u.uint()
	if v > 1 {
		u.fail()
	}
	return v == 1
}

// next returns the next n bytes without copying them.
func (u *unpacker) next(n uint64) []byte {
	if n > uint64(len(u.b)) {
		u.fail()
		return nil
	}
	v := u.b[:n:n]
	u.b = u.b[n:]
	return v
}

func (u *unpacker) str() string { return string(u.next(u.uint())) }

func (u *unpacker) bytes() []byte {
	n := u.uint()
	if n == 0 {
		return nil
	}
	return append([]byte{}, u.next(n-1)...)
}

// end returns the error, also when something is left.
func (u *unpacker) end() error {
	if u.err == nil && len(u.b) > 0 {
		u.fail()
	}
	return u.err
}
