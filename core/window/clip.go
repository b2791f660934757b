package window

import (
	"strings"
	"unicode/utf8"
)

// HeadShare is the share of a clipped text that comes from its beginning; the rest comes from its end, where errors and
// totals tend to stand.
const HeadShare = 0.6

// Clip returns text shortened to at most limit tokens: its head and its tail around marker. Text that fits, given that it costs tokens, comes
// back as it is. The cuts are at line ends where one is near, and never inside a character. When limit leaves no room for text, marker alone
// is returned, even if that costs more than limit.
func Clip(text string, tokens, limit int, marker string, count func(string) int) string {
	if tokens <= limit {
		return text
	}
	room := limit - count(marker)
	if room <= 0 || tokens <= 0 {
		return marker
	}
	// Bytes in proportion first, then less until it fits: text is not evenly dense.
	size := int(float64(len(text)) * float64(room) / float64(tokens))
	for range 12 {
		if size < 8 {
			break
		}
		out := HeadTail(text, size, marker)
		if c := count(out); c <= limit {
			return out
		} else if next := int(float64(size) * float64(limit) / float64(c) * 0.97); next < size {
			size = next
		} else {
			size = size * 9 / 10
		}
	}
	return marker
}

// HeadTail returns about size bytes of text: its head and its tail around marker, cut as Clip cuts.
func HeadTail(text string, size int, marker string) string {
	if size >= len(text) {
		size = len(text) - 1
	}
	h := int(float64(size) * HeadShare)
	head := text[:runeStart(text, h)]
	tail := text[runeStart(text, len(text)-(size-h)):]
	if i := strings.LastIndexByte(head, '\n'); i > len(head)*3/4 {
		head = head[:i+1]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/4 {
		tail = tail[i+1:]
	}
	return head + marker + tail
}

// runeStart moves i back to the beginning of a character.
func runeStart(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return min(max(i, 0), len(s))
}
