package exact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scan calls yield for every word of text that is worth keeping exactly, in order and each time it appears, with its place: word == text[at:at+len(word)].
// It stops when yield returns false.
func Scan(text string, yield func(word string, kind Kind, at int) bool) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !begins(r) {
			i += size
			continue
		}
		end := wordEnd(text, i)
		from, to := trim(text, i, end)
		if k := KindOf(text[from:to]); k != None && !yield(text[from:to], k, from) {
			return
		}
		i = max(end, i+size)
	}
}

// Words returns the distinct words that Scan finds, in the order of their first appearance.
func Words(text string) []string {
	var out []string
	seen := make(map[string]bool)
	Scan(text, func(w string, _ Kind, _ int) bool {
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
		return true
	})
	return out
}

func begins(r rune) bool {
	if r < 128 {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_./@~#$-", r)
	}
	return joins(r)
}

// joins reports whether a character outside ASCII can be part of a word with a telling shape. Scripts without blanks
// between words cannot: what stands next to an identifier there is not part of it.
func joins(r rune) bool {
	if r == utf8.RuneError {
		return false
	}
	const scripts = 0x0E00 // none of these is below it
	if r >= scripts && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
		return false
	}
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}

// wordEnd returns where the word that begins at i ends.
func wordEnd(text string, i int) int {
	start, address := i, false
	for i < len(text) {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if !joins(r) {
				return i
			}
			i += size
			continue
		}
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '.', c == '/', c == '-':
		case c == '@', c == '~', c == '#', c == '$', c == '+':
		case c == ':':
			if strings.HasPrefix(text[i:], "://") {
				address = true
				i += 3
				continue
			}
			inside := follows(text, i+1, isDigit) || strings.HasPrefix(text[i:], "::") || i > start && text[i-1] == ':' || drive(text, start, i)
			if !inside {
				return i
			}
		case c == '\\':
			if i-start < 2 || text[start+1] != ':' || !follows(text, i+1, alnum) {
				return i
			}
		case c == ',' || c == '\'':
			// 12,345.67 and 12'345
			grouped := i > start && isDigit(text[i-1]) && digitsFollow(text, i+1, 3)
			if !grouped || address {
				return i
			}
		case address && strings.IndexByte("?&=%;!*", c) >= 0:
		default:
			return i
		}
		i++
	}
	return i
}

func follows(text string, i int, is func(byte) bool) bool { return i < len(text) && is(text[i]) }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func alnum(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// digitsFollow reports whether exactly n digits stand at i.
func digitsFollow(text string, i, n int) bool {
	for j := range n {
		if !follows(text, i+j, isDigit) {
			return false
		}
	}
	return !follows(text, i+n, isDigit)
}

// drive reports whether the colon at i belongs to a Windows path.
func drive(text string, start, i int) bool {
	return i == start+1 && follows(text, i+1, func(c byte) bool { return c == '\\' }) && alnum(text[start])
}

// trim takes off what belongs to the sentence around the word text[from:to].
func trim(text string, from, to int) (int, int) {
	for to > from && strings.IndexByte(".:-+#$~@;!*?&=%", text[to-1]) >= 0 {
		to--
	}
	for ; from < to; from++ {
		word := text[from:to]
		switch word[0] {
		case '.':
			if strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") || len(word) > 1 && alnum(word[1]) {
				return from, to
			}
		case '-':
			if strings.HasPrefix(word, "--") && len(word) > 2 && alnum(word[2]) {
				return from, to
			}
		case '#', '$', '@', '~', '+':
			if len(word) > 1 && (alnum(word[1]) || word[1] == '/') {
				return from, to
			}
		default:
			return from, to
		}
	}
	return from, to
}

// IsKey reports whether the word at text[at:at+n] is the key of a JSON object.
func IsKey(text string, at, n int) bool {
	if at == 0 || text[at-1] != '"' || !strings.HasPrefix(text[at+n:], `"`) {
		return false
	}
	return strings.HasPrefix(strings.TrimLeft(text[at+n+1:min(len(text), at+n+4)], " "), ":")
}
