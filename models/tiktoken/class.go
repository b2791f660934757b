package tiktoken

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is the set of rules of the encodings' expressions that one character fits.
type class uint8

const (
	upper   class = 1 << iota // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]: what o200k_base begins a word with
	lower                     // [\p{Ll}\p{Lm}\p{Lo}\p{M}]: what it goes on with
	letter                    // \p{L}
	number                    // \p{N}
	blank                     // \s
	newline                   // [\r\n]
	visible                   // [^\s\p{L}\p{N}], marks too
	lead                      // [^\r\n\p{L}\p{N}]: what may stand before the letters of a word
)

// tabled is how many characters have an entry in the table: the planes of all scripts in daily use, and of emoji.
const tabled = 0x20000

// classes knows the class of every character. It is immutable.
type classes struct {
	table [tabled]class
}

// loadClasses fills the table once in a process, in less than a millisecond.
var loadClasses = sync.OnceValue(func() *classes {
	t := &classes{}
	for i := range t.table {
		t.table[i] = visible | lead
	}
	for _, kind := range kinds() {
		for _, r := range kind.chars.R16 {
			t.fill(uint32(r.Lo), uint32(r.Hi), uint32(r.Stride), kind.class)
		}
		for _, r := range kind.chars.R32 {
			t.fill(r.Lo, r.Hi, r.Stride, kind.class)
		}
	}
	t.table['\r'] |= newline
	t.table['\r'] &^= lead
	t.table['\n'] |= newline
	t.table['\n'] &^= lead
	return t
})

func (t *classes) fill(from, to, stride uint32, c class) {
	for r := from; r <= to && r < tabled; r += stride {
		t.table[r] = c
	}
}

// kind gives a class to a set of characters.
type kind struct {
	chars *unicode.RangeTable
	class class
}

// kinds divides the characters; one in none of the sets is visible and lead. A test holds it against the expressions.
func kinds() [8]kind {
	return [...]kind{
		{unicode.Lo, upper | lower | letter},
		{unicode.Ll, lower | letter},
		{unicode.Lu, upper | letter},
		{unicode.M, upper | lower | visible | lead},
		{unicode.N, number},
		{unicode.Lm, upper | lower | letter},
		{unicode.Lt, upper | letter},
		{unicode.White_Space, blank | lead},
	}
}

// at returns the class of the character of text, which is valid UTF-8, at i, which is less than len(text), and its length in bytes.
func (t *classes) at(text string, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return t.table[b], 1
	}
	return t.wide(text, i)
}

// wide is at for a character that is not ASCII. The text is valid UTF-8, which takes half of the decoding away.
func (t *classes) wide(text string, i int) (class, int) {
	switch b := rune(text[i]); {
	case b < 0xe0:
		return t.table[b&0x1f<<6|rune(text[i+1]&0x3f)], 2
	case b < 0xf0:
		return t.table[b&0xf<<12|rune(text[i+1]&0x3f)<<6|rune(text[i+2]&0x3f)], 3
	default:
		return t.of(b&7<<18 | rune(text[i+1]&0x3f)<<12 | rune(text[i+2]&0x3f)<<6 | rune(text[i+3]&0x3f)), 4
	}
}

// of returns the class of a character, which is not negative.
func (t *classes) of(r rune) class {
	if r < tabled {
		return t.table[r]
	}
	for _, kind := range kinds() {
		if unicode.Is(kind.chars, r) {
			return kind.class
		}
	}
	return visible | lead
}
