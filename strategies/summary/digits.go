package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// foreign reports whether a text has digits of other scripts than ours.
func foreign(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf && unicode.Is(unicode.Nd, r) }) >= 0
}

// plain returns a text with the digits of all scripts as ours, and for each of its bytes, and its end, where that stands in the text that it was; none where it is the same.
func plain(text string) (ours string, places []int) {
	if !foreign(text) {
		return text, nil
	}
	out := make([]byte, 0, len(text))
	for i, r := range text {
		from := len(out)
		if r >= utf8.RuneSelf && unicode.Is(unicode.Nd, r) {
			out = append(out, byte('0'+digitOf(r)))
		} else {
			_, size := utf8.DecodeRuneInString(text[i:])
			out = append(out, text[i:i+size]...)
		}
		for j := range out[from:] {
			places = append(places, i+j)
		}
	}
	return string(out), append(places, len(text))
}

// digitOf returns the value of a digit. Those of a script stand in a row, from zero to nine (Unicode, 4.6).
func digitOf(r rune) int {
	for _, row := range unicode.Nd.R16 {
		if r >= rune(row.Lo) && r <= rune(row.Hi) {
			return int(r-rune(row.Lo)) % 10
		}
	}
	for _, row := range unicode.Nd.R32 {
		if r >= rune(row.Lo) && r <= rune(row.Hi) {
			return int(r-rune(row.Lo)) % 10
		}
	}
	return 0
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }
