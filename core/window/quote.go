package window

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core/message"
)

// Blank reports whether nobody can see anything of a text: spaces, controls and characters without a shape.
func Blank(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.M, r) && !unseen(r, 0)
	})
}

// SaysNothing reports whether there is nothing in a message that could be shown.
func SaysNothing(m message.Message) bool {
	return !slices.ContainsFunc(m.Parts, func(p message.Part) bool { return p.Kind != message.Text || !Blank(p.Text) })
}

// Attribute is a text between quotes in a tag.
func Attribute(text string) string {
	text = strings.Map(func(r rune) rune {
		switch r {
		case '"':
			return '\''
		case '>':
			return '›'
		case '\n', '\t':
			return ' '
		}
		return r
	}, Escape(text))
	if len(text) > maxAttribute {
		text = strings.ToValidUTF8(text[:maxAttribute], "") + "…"
	}
	return text
}

// maxAttribute bounds an attribute, in bytes.
const maxAttribute = 200

// Quote makes text unable to be anything but data: every line is marked, and nothing in it can open or close a tag or a
// special token.
func Quote(text string) string {
	var b strings.Builder
	QuoteTo(&b, text)
	return b.String()
}

// QuoteTo writes Quote of a text.
func QuoteTo(b *strings.Builder, text string) {
	text = strings.TrimSpace(Escape(text))
	for more := true; more; {
		var line string
		line, text, more = strings.Cut(text, "\n")
		b.WriteString("> ")
		b.WriteString(line)
		if more {
			b.WriteByte('\n')
		}
	}
}

// opener is how transcripts in plain text let somebody speak.
var opener = regexp.MustCompile(`(?im)^[ \t]*(human|user|assistant|system|developer|tool|ai)[ \t]*:`)

// Speaks reports whether a line of a text lets somebody speak.
func Speaks(text string) bool { return opener.MatchString(text) }

// Neutral makes a text that stands for a conversation unable to speak for anybody in it. Unlike Quote it leaves ordinary lines as they are.
func Neutral(text string) string {
	return opener.ReplaceAllString(Escape(text), "> $0")
}

// Escape neutralises "<" and drops what a terminal or a parser could take for control, and what nobody sees but a model reads: zero-width characters, those
// that turn the direction of text, and tags. Line separators become newlines, so that every line is marked.
func Escape(text string) string {
	if harmless(text) {
		return text
	}
	before := rune(0)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '<':
			r = '‹'
		case r == '\r', r == '\u2028', r == '\u2029', r == '\u0085', r == '\v', r == '\f':
			r = '\n'
		case r == '\n' || r == '\t':
		case unicode.IsControl(r) || unseen(r, before):
			return -1
		}
		before = r
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// unseen reports whether a character has no shape of its own. A joiner shapes the letters and pictures beside it where those are not ASCII, and a variation
// selector the one before it; one of either is let through.
func unseen(r, before rune) bool {
	switch {
	case r == '\u200c' || r == '\u200d' || r >= '\ufe00' && r <= '\ufe0f':
		return before < 0x80 || unseen(before, 0)
	case r >= 0xe0000 && r <= 0xe0fff:
		return true // tags, and selectors that carry bytes
	case r == '\u034f' || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' || r == '\u2800':
		return true // fillers and blanks
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// harmless reports whether text is ASCII in which Escape finds nothing to change, as most text is.
func harmless(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c == '<' || c >= 0x7f {
			return false
		}
	}
	return true
}

// QuoteName is a name as it may stand in front of a quotation: on one line, of at most 64 bytes, and unable to be anything but a name.
func QuoteName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == ']' || r == '[' || r == ':' || r == '#' {
			return ' '
		}
		return r
	}, Escape(name))
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "")
	}
	return strings.TrimSpace(name)
}

// CutRune returns the beginning of a text, at most n bytes of it, without half a character.
func CutRune(text string, n int) string {
	n = min(max(n, 0), len(text))
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// FirstLine returns the first line of a text that is not blank.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
