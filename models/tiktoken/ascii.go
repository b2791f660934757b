package tiktoken

import (
	"math/bits"
	"unicode/utf8"
)

// Constants of arithmetic on eight bytes at once.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// ascii returns where the word of text at a position ends as the encoding's rule does, for the words that most texts are made of: letters of ASCII with
// at most one capital, in front, and what may stand before them; up to three digits; signs. For any other word, and near
// the end of a text, it returns the position itself, and the rule has to say. Tokens are words that need no look-up.
//
// Ordinary text is counted in 0.7 times the time with it: eight letters are looked at in one step, without a branch.
func (e *encoding) ascii(text string, at int) (end int, token bool) {
	if at+2 > len(text) || text[at] >= utf8.RuneSelf {
		return at, false
	}
	c := e.classes.table[text[at]]
	if c&number != 0 {
		return e.asciiDigits(text, at)
	}
	i := at
	if c&letter == 0 {
		if c&lead == 0 || text[at] == '\'' {
			return at, false // a newline, or perhaps a contraction
		}
		i++
		if b := text[i]; b >= utf8.RuneSelf {
			return at, false
		} else if d := e.classes.table[b]; d&letter == 0 {
			if text[at] == ' ' && d&number != 0 {
				return i, true
			}
			return e.asciiSigns(text, at), false
		}
	}
	if text[i]-'A' < 26 {
		i++
	}
	from := i
	for n := 8; n == 8; i += n {
		if i+8 > len(text) {
			return at, false
		}
		n = smallLetters(load8(text, i))
	}
	last, b := text[i-1], text[i]
	switch {
	case b >= utf8.RuneSelf, i == from && last-'A' >= 26 && last-'a' >= 26: // perhaps more letters; no letters at all
		return at, false
	case b-'A' < 26 && (i == from || !e.cased): // capitals, which may be followed by small letters; letters of any case are one word
		return at, false
	case b == '\'' && e.cased:
		return contraction(text, i), false
	}
	return i, false
}

// asciiDigits is ascii for a text that begins with a digit. All numbers of up to three digits are tokens of the encodings; loading makes sure of it.
func (e *encoding) asciiDigits(text string, at int) (end int, token bool) {
	for end = at + 1; end < at+3 && end < len(text); end++ {
		if b := text[end]; b >= utf8.RuneSelf {
			return at, false
		} else if b-'0' > 9 {
			break
		}
	}
	return end, true
}

// asciiSigns is ascii for a text that begins with a space or a sign, and then no letter.
func (e *encoding) asciiSigns(text string, at int) (end int) {
	end = at
	if text[at] == ' ' {
		end++
	}
	from := end
	for ; end < len(text); end++ {
		if b := text[end]; b >= utf8.RuneSelf || e.classes.table[b]&newline != 0 {
			return at // perhaps more signs; newlines belong to the word
		} else if e.classes.table[b]&visible == 0 {
			break
		}
	}
	if end == from {
		return at // blanks
	}
	return end
}

// smallLetters returns how many of the eight bytes of x are letters from a to z before the first that is not, the lowest byte first.
func smallLetters(x uint64) int {
	low := x &^ highBits
	fromA, afterZ := low+(0x80-'a')*eachByte, low+(0x7f-'z')*eachByte // the high bit of each byte tells
	is := fromA &^ afterZ &^ x & highBits
	return bits.TrailingZeros64(is^highBits) / 8
}

// load8 returns the eight bytes of text at i, the first lowest.
func load8(text string, i int) uint64 {
	b := text[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56 // one load
}
