package exact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says what a word looks like.
type Kind uint8

// The kinds.
const (
	None    Kind = iota
	URL          // a scheme and "://"
	Path         // folders and files
	Symbol       // camelCase, snake_case, dotted names, letters mixed with digits
	Hash         // hexadecimal digits, seven or more, and ids made of them
	Version      // 1.2.3, v2.0.0-rc1
	Code         // ECONNREFUSED, SIGKILL, E0308
	Number       // digits, dates, amounts
	Weak         // one slash or dots between ordinary words
)

func (k Kind) String() string {
	names := [...]string{"none", "url", "path", "symbol", "hash", "version", "code", "number", "weak"}
	if int(k) >= len(names) {
		return "none"
	}
	return names[k]
}

const (
	// shortest and longest bound a word, in bytes. What is longer is data.
	shortest, longest = 3, 160
	// longestPlain bounds a word without a mark in it.
	longestPlain = 64
)

// shape is what KindOf looks at.
type shape struct {
	letters, digits, upper, lower, hex, other int
	camel, slash, dot, under, hyphen, colon   bool
	at, backslash                             bool
	slashes                                   int
}

func shapeOf(word string) shape {
	var s shape
	prev := rune(0)
	for _, r := range word {
		switch {
		case r >= '0' && r <= '9' || r > 127 && unicode.IsDigit(r):
			s.digits++
			s.hex++
		case r < 128 && unicode.IsLetter(r) || r > 127 && (unicode.IsLetter(r) || unicode.IsMark(r)):
			s.letters++
			if unicode.IsUpper(r) {
				s.upper++
				s.camel = s.camel || unicode.IsLower(prev)
			} else if unicode.IsLower(r) {
				s.lower++
			}
			if r < 128 && strings.ContainsRune("abcdefABCDEF", r) {
				s.hex++
			}
		case r == '/':
			s.slash = true
			s.slashes++
		case r == '\\':
			s.backslash = true
		case r == '.':
			s.dot = true
		case r == '_':
			s.under = true
		case r == '-':
			s.hyphen = true
		case r == ':':
			s.colon = true
		case r == '@':
			s.at = true
		default:
			s.other++
		}
		prev = r
	}
	return s
}

// KindOf returns what a word looks like; None when it is an ordinary one.
func KindOf(word string) Kind {
	if len(word) < 2 || len(word) < shortest && !isDigit(word[0]) || len(word) > longest || !utf8.ValidString(word) {
		return None
	}
	s := shapeOf(word)
	if i := strings.Index(word, "://"); i > 0 && s.letters > 0 {
		return URL
	}
	if s.letters == 0 {
		if strings.Count(word, ".") > 1 && isVersion(word) {
			return Version
		}
		if s.digits >= 2 && s.digits*2 >= len(word)-s.other {
			return Number
		}
		return None
	}
	if len(word) > longestPlain && !s.slash && !s.dot && !s.under && !s.hyphen && !s.backslash {
		return None // encoded data
	}
	switch {
	case s.slash || s.backslash:
		return pathKind(word, s)
	case isHash(word, s):
		return Hash
	case isVersion(word):
		return Version
	case s.digits > 0 || s.camel || s.under || s.at:
		return Symbol
	case s.dot:
		return dotted(word)
	case s.upper >= 4 && s.lower == 0 && s.letters == len(word) && (word[0] == 'E' || strings.HasPrefix(word, "SIG")):
		return Code
	case strings.HasPrefix(word, "--") && s.letters > 2, strings.HasPrefix(word, "$") && s.letters > 2, s.colon && strings.Contains(word, "::"):
		return Symbol
	}
	return None
}

func pathKind(word string, s shape) Kind {
	last := word[strings.LastIndexAny(word, `/\`)+1:]
	switch {
	case s.slashes > 1, s.under, s.digits > 0, s.backslash, s.at, word[0] == '/', word[0] == '~', word[0] == '.', word[0] == '$':
		return Path
	case strings.Contains(last, ".") && last[0] != '.', s.camel, s.hyphen:
		return Path
	}
	return Weak // read/write, and/or
}

// isHash recognises UUIDs and runs of hexadecimal digits; one with digits only is a number.
func isHash(word string, s shape) bool {
	digits := strings.TrimPrefix(strings.TrimPrefix(word, "0x"), "#")
	if s.slash || s.dot || s.under || s.digits == 0 || s.upper > 0 && s.lower > 0 && !strings.HasPrefix(word, "0x") {
		return false
	}
	n := 0
	for _, r := range digits {
		switch {
		case strings.ContainsRune("0123456789abcdefABCDEF", r):
			n++
		case r != '-':
			return false
		}
	}
	return n >= 6 && (!s.hyphen || n >= 16)
}

// isVersion recognises at least two numbers joined by dots, with what may stand around them.
func isVersion(word string) bool {
	w := strings.TrimLeft(word, "v^~=")
	if w == "" || w[0] < '0' || w[0] > '9' {
		return false
	}
	core, _, _ := strings.Cut(w, "-")
	core, _, _ = strings.Cut(core, "+")
	parts := strings.Split(core, ".")
	if len(parts) < 2 {
		return false
	}
	for _, p := range parts {
		if p == "" || strings.Trim(p, "0123456789x*") != "" {
			return false
		}
	}
	return true
}

// dotted tells names (theme.fg, package.json) from words that a full stop joins.
func dotted(word string) Kind {
	parts := strings.Split(word, ".")
	for i, p := range parts {
		if p == "" {
			if i == 0 {
				continue
			}
			return None
		}
	}
	if len(parts[0]) < 2 && len(parts) == 2 {
		return None // e.g, i.e
	}
	if r, _ := utf8.DecodeRuneInString(parts[len(parts)-1]); len(parts) == 2 && unicode.IsUpper(r) && !unicode.IsUpper([]rune(parts[0])[0]) {
		return Weak // the blank behind a sentence is missing
	}
	return Symbol
}
