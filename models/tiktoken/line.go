package tiktoken

import "bytes"

// cut is bytes.Cut without what nobody asks for.
func cut(b []byte, sep byte) (before, after []byte) {
	if i := bytes.IndexByte(b, sep); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// digit64 is the value of each letter of base64, and notDigit for all other bytes.
var digit64 = func() (table [256]byte) {
	for i := range table {
		table[i] = notDigit
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		table[c] = byte(i)
	}
	return table
}()

const notDigit = 0x80

// decodeToken decodes padded base64, for which buf has room, and returns the number of bytes.
func decodeToken(buf *[maxToken + 3]byte, coded []byte) (n int, ok bool) {
	if len(coded)%4 != 0 {
		return 0, false
	}
	pad := 0
	for i := 0; i < len(coded); i += 4 {
		q := coded[i : i+4 : i+4]
		c, d := digit64[q[2]], digit64[q[3]]
		if i+4 == len(coded) && q[3] == '=' {
			pad, d = 1, 0
			if q[2] == '=' {
				pad, c = 2, 0
			}
		}
		a, b := digit64[q[0]], digit64[q[1]]
		if (a|b|c|d)&notDigit != 0 {
			return 0, false
		}
		buf[n], buf[n+1], buf[n+2] = a<<2|b>>4, b<<4|c>>2, c<<6|d
		n += 3
	}
	return n - pad, true
}

// parseRank reads a decimal number of at most rankBits bits.
func parseRank(digits []byte) (rank uint32, ok bool) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		if rank = rank*10 + uint32(c-'0'); rank >= 1<<rankBits {
			return 0, false
		}
	}
	return rank, len(digits) > 0
}
