package lexical

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// kind says how a term came about.
type kind uint8

const (
	// plain is a run of ASCII letters: a stopword perhaps, and to be stemmed.
	plain kind = iota
	// literal is any other piece of text: it counts as a word and stays as it is.
	literal
	// foreign is a run of letters that are not all ASCII.
	foreign
	// whole is an identifier in one piece, besides the pieces it is made of; it adds nothing to a passage's length.
	whole
)

const (
	// maxTerm bounds a term in bytes; longer ones are cut, in queries as in passages, so that they still meet.
	maxTerm = 64
	// maxWhole bounds an identifier that is indexed as a whole, in bytes.
	maxWhole = 128
)

// analyzer takes text apart into lower-cased terms. It keeps nothing but scratch space, and serves one goroutine.
type analyzer struct {
	emit  func(term []byte, k kind)
	buf   []byte
	units []int
	iter  *words.Iterator[string]
}

// run emits the terms of text in order.
func (a *analyzer) run(text string) {
	for i := 0; i < len(text); {
		if isSpace(text[i]) {
			i++
			continue
		}
		start, ascii := i, true
		for i < len(text) && !isSpace(text[i]) {
			ascii = ascii && text[i] < utf8.RuneSelf
			i++
		}
		if ascii {
			a.ascii(text[start:i])
		} else {
			a.chunk(text[start:i])
		}
	}
}

// chunk takes apart text that is not all ASCII: runs of scripts written without spaces become bigrams, the rest words.
func (a *analyzer) chunk(s string) {
	for len(s) > 0 {
		dense, n, ascii := false, 0, true
		for i, r := range s {
			d := isDense(r)
			if d || (!unicode.Is(unicode.M, r) && !isJoinMark(r)) {
				if i > 0 && d != dense {
					break
				}
				dense = d
			}
			n = i + utf8.RuneLen(r)
			if r == utf8.RuneError {
				_, w := utf8.DecodeRuneInString(s[i:])
				n = i + w
			}
			ascii = ascii && r < utf8.RuneSelf
		}
		switch {
		case dense:
			a.bigrams(s[:n])
		case ascii:
			a.ascii(s[:n])
		default:
			a.words(s[:n])
		}
		s = s[n:]
	}
}

// bigrams emits each two neighbouring characters; marks belong to the character before them. A single character
// is a term of its own.
func (a *analyzer) bigrams(s string) {
	u := a.units[:0]
	for i, r := range s {
		if isDense(r) && (len(u) == 0 || !unicode.Is(unicode.M, r)) {
			u = append(u, i)
		}
	}
	u = append(u, len(s))
	a.units = u
	if len(u) == 2 {
		a.put(s[u[0]:u[1]], literal)
		return
	}
	for i := 0; i+2 < len(u); i++ {
		a.put(s[u[i]:u[i+2]], literal)
	}
}

// words takes apart text of other scripts at the word borders of UAX #29.
func (a *analyzer) words(s string) {
	if a.iter == nil {
		a.iter = words.FromString(s)
	} else {
		a.iter.SetText(s)
	}
	for a.iter.Next() {
		w := a.iter.Value()
		pieces, start := 0, -1
		for i, r := range w {
			if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r) || isJoinMark(r) {
				if start < 0 {
					start = i
				}
				continue
			}
			if start >= 0 {
				a.piece(w[start:i])
				pieces++
				start = -1
			}
		}
		if start >= 0 {
			a.piece(w[start:])
			pieces++
		}
		if pieces > 1 && len(w) <= maxWhole {
			a.put(w, whole)
		}
	}
}

// piece emits a run of letters, digits and marks.
func (a *analyzer) piece(s string) {
	if s == "s" { // what is left of a possessive with a typographic apostrophe
		return
	}
	k := plain
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf && isLetter(byte(r)):
		case r < utf8.RuneSelf, unicode.IsNumber(r), r == utf8.RuneError:
			a.put(s, literal)
			return
		default:
			k = foreign
		}
	}
	a.put(s, k)
}

// put lower-cases a term and hands it on.
func (a *analyzer) put(s string, k kind) {
	b := a.buf[:0]
	for _, r := range s {
		if r < utf8.RuneSelf {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			b = append(b, byte(r))
		} else {
			if 0xFF01 <= r && r <= 0xFF5E { // full-width forms of ASCII
				r -= 0xFEE0
			}
			b = utf8.AppendRune(b, unicode.ToLower(r))
		}
		if len(b) >= maxTerm && k != whole {
			break
		}
	}
	a.buf = b
	a.emit(b, k)
}

func isSpace(c byte) bool  { return c == ' ' || '\t' <= c && c <= '\r' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isAlnum(c byte) bool  { return isLetter(c) || isDigit(c) }

// isSeparator reports what divides an identifier into parts that are identifiers themselves.
func isSeparator(c byte) bool { return c == '/' || c == '\\' || c == ':' || c == '@' || c == '#' }

// isJoiner reports what may stand inside an identifier.
func isJoiner(c byte) bool {
	return c == '.' || c == '_' || c == '-' || c == '\'' || c == '+' || isSeparator(c)
}

// isJoinMark reports the joiners that the scripts of India and Persia write inside of words.
func isJoinMark(r rune) bool { return r == '\u200c' || r == '\u200d' }

// isDense reports characters of scripts that put no spaces between words, and Hangul, whose words carry their grammar with them.
func isDense(r rune) bool {
	switch {
	case r < 0x0E00:
		return false
	case 0x4E00 <= r && r <= 0x9FFF, 0xAC00 <= r && r <= 0xD7A3:
		return true
	case r == 0x30FC || r == 0xFF70: // the long-vowel mark is in no script's table
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
