package report

import (
	"html/template"
	"strings"
	"unicode/utf8"
)

// Bounds in bytes: of the part of a message that becomes an excerpt, of what is shown of a piece's text whoever made it, and of all texts of
// a report together.
const (
	maxExcerpt = 420
	maxShown   = 4 * maxExcerpt
	maxTexts   = 6 << 20
)

// excerpt returns the head and the tail of a text; it reads no more of it than it shows.
func excerpt(s string) string {
	const tail = 80
	if len(s) <= maxExcerpt {
		return visible(s)
	}
	head := cutAt(s, maxExcerpt-tail)
	end := len(s) - tail
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end++
	}
	return visible(s[:head]) + " […] " + visible(s[end:])
}

// clipLine bounds a text to a number of bytes.
func clipLine(s string, limit int) string {
	if len(s) <= limit {
		return visible(s)
	}
	return visible(s[:cutAt(s, limit)]) + "…"
}

// soft lets a text break behind the signs within names of configurations, which are longer than a phone is wide, and never before a percent sign.
func soft(s string) template.HTML {
	s = template.HTMLEscapeString(strings.ReplaceAll(s, " %", "\u00a0%"))
	return template.HTML(softener.Replace(s)) //nolint:gosec // escaped above
}

var softener = strings.NewReplacer("&#43;", "+<wbr>", "+", "+<wbr>", ")", ")<wbr>", ":", ":<wbr>", "/", "/<wbr>", "_", "_<wbr>")

// cutAt returns the largest start of a character that is no larger than at.
func cutAt(s string, at int) int {
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// visible replaces what a page would swallow or obey: control characters by their pictures, and characters that turn the direction of the
// text around them by a replacement character. The result shares no memory with s.
func visible(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\r':
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune(0x2421)
		case r >= 0x80 && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x2028, r == 0x2029, r == 0xfeff:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
