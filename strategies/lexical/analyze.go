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
	for i := range len(s) {
		if !isLetter(s[i]) {
			if s != "s" {
				a.put(s, literal)
			}
			return
		}
	}
	if s != "s" { // what is left of a possessive with a typographic apostrophe
		a.put(s, plain)
	}
}

// ascii takes apart a chunk of ASCII text without blanks.
func (a *analyzer) ascii(s string) {
	for i := 0; i < len(s); {
		if !isAlnum(s[i]) {
			i++
			continue
		}
		start, end, joined := i, i+1, false
		for j := i + 1; j < len(s); j++ {
			c := s[j]
			if isAlnum(c) {
				joined = joined || end != j
				end = j + 1
				continue
			}
			if !isJoiner(c) && (c != ',' || !isDigit(s[j-1]) || j+1 >= len(s) || !isDigit(s[j+1])) {
				break
			}
		}
		if joined {
			a.compound(s[start:end])
		} else {
			a.simple(s[start:end])
		}
		i = end
	}
}

// compound emits the pieces of an identifier, the identifier as a whole, and the dotted or dashed parts of a path.
func (a *analyzer) compound(s string) {
	if a.contraction(s) {
		return
	}
	start, part, inner, parts := 0, 0, 0, 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && isAlnum(s[i]) {
			continue
		}
		if i > start {
			a.simple(s[start:i])
			inner++
		}
		start = i + 1
		if i == len(s) || isSeparator(s[i]) {
			if inner > 1 && (i < len(s) || parts > 0) && i-part <= maxWhole {
				a.put(s[part:i], whole)
			}
			part, inner, parts = i+1, 0, parts+1
		}
	}
	if len(s) <= maxWhole {
		a.put(s, whole)
		if s[0]|0x20 == 'v' && isDigit(s[1]) { // a version
			a.put(s[1:], whole)
		}
	}
}

// contraction deals with the apostrophes of English: "Ann's" is "ann", "don't" is nothing worth looking for.
func (a *analyzer) contraction(s string) bool {
	for i := 1; i+1 < len(s); i++ {
		if s[i] != '\'' {
			if !isLetter(s[i]) {
				return false
			}
			continue
		}
		switch s[i+1:] {
		case "s", "S", "d", "m", "ll", "re", "ve":
			a.simple(s[:i])
			return true
		case "t", "T":
			return true
		}
		return false
	}
	return false
}

// simple emits a run of ASCII letters and digits: a word, or a name made of words or of letters and a number.
func (a *analyzer) simple(s string) {
	digits, humps := 0, 0
	for i := range len(s) {
		switch {
		case isDigit(s[i]):
			digits++
		case i > 0 && startsHump(s, i):
			humps++
		}
	}
	switch {
	case digits > 0:
		a.put(s, literal)
		a.numbered(s, digits)
	case humps == 0 || len(s) > maxWhole:
		a.put(s, plain)
	default:
		start := 0
		for i := 1; i <= len(s); i++ {
			if i == len(s) || startsHump(s, i) {
				a.put(s[start:i], plain)
				start = i
			}
		}
		a.put(s, whole)
	}
}

// numbered emits the two parts of letters followed by a number, such as E1042 or HTTP404, unless they are too short to be looked for.
func (a *analyzer) numbered(s string, digits int) {
	letters := len(s) - digits
	for i := range digits {
		if !isDigit(s[letters+i]) {
			return
		}
	}
	if digits >= 3 && letters > 0 {
		a.put(s[letters:], whole)
		if letters >= 3 {
			a.put(s[:letters], whole)
		}
	}
}

// startsHump reports whether a word of a camelCase name starts at s[i]: "getUser", "HTTPServer".
func startsHump(s string, i int) bool {
	if !isUpper(s[i]) {
		return false
	}
	return !isUpper(s[i-1]) || i+1 < len(s) && !isUpper(s[i+1]) && i > 1
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
