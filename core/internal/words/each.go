// Package words looks at what texts say without knowing their language: which words name something, whether a text asks, whether two say nearly the same, and
// where in a long one a query is answered. Start with Each. Everything here is pure.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// minWord is how many letters or digits a word has that names something, prefixWord how many of them tell words apart. In scripts without blanks
// two letters are a word.
const minWord, prefixWord = 4, 6

// Each visits the words of a text that name something, in lower case and cut, until visit returns false.
func Each(text string, visit func(string) bool) {
	if ascii(text) {
		eachASCII(text, visit)
		return
	}
	text = strings.ToLower(text)
	start, letters, cut, before := -1, 0, 0, -1
	flush := func(end int) bool {
		from := start
		start = -1
		if from < 0 || letters < minWord {
			return true
		}
		if cut > 0 {
			end = cut
		}
		return visit(text[from:end])
	}
	for i, r := range text {
		if dense(r) {
			if !flush(i) || before >= 0 && !visit(text[before:i+utf8.RuneLen(r)]) {
				return
			}
			before = i
			continue
		}
		before = -1
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			if !flush(i) {
				return
			}
			continue
		}
		if start < 0 {
			start, letters, cut = i, 0, 0
		}
		if letters == prefixWord {
			cut = i
		}
		letters++
	}
	flush(len(text))
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// eachASCII is Each of a text as most are: windows are looked through in every turn.
func eachASCII(text string, visit func(string) bool) {
	start, upper := -1, false
	for i := 0; i <= len(text); i++ {
		c := byte(' ')
		if i < len(text) {
			c = text[i]
		}
		capital := c >= 'A' && c <= 'Z'
		if capital || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			if start < 0 {
				start, upper = i, false
			}
			upper = upper || capital
			continue
		}
		if start >= 0 && i-start >= minWord {
			word := text[start:min(i, start+prefixWord)]
			if upper {
				word = strings.ToLower(word)
			}
			if !visit(word) {
				return
			}
		}
		start = -1
	}
}

// dense reports whether a letter belongs to a script that is written without blanks.
func dense(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
