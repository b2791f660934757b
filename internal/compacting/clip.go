package compacting

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
)

// Clip returns text when it costs at most limit tokens, and otherwise its head and tail around a marker that says how
// much is missing, at limit tokens or less. Cuts lie between runes and, where one is near, at the end of a line or a word. A limit too small for the
// marker gives a piece of the head alone, and 0 gives "".
func Clip(text string, limit int, count core.TokenCounter) string {
	if limit <= 0 || text == "" {
		return ""
	}
	total := count(text)
	if total <= limit {
		return text
	}
	// The number of bytes to keep follows from the share of tokens and shrinks until the result fits.
	keep := int(float64(len(text)) * float64(limit) / float64(total) * 0.97)
	for keep >= 16 {
		head := cutHead(text, keep*3/5)
		tail := cutTail(text[len(head):], keep-keep*3/5)
		end := len(text) - len(tail)
		behind := " " // what is left of a line begins none: it may be somebody's words
		if text[end-1] == '\n' {
			behind = "\n"
		}
		out := head + fmt.Sprintf("\n[... %d bytes left out ...]", end-len(head)) + behind + tail
		n := count(out)
		if n <= limit {
			return out
		}
		keep = min(keep*9/10, int(float64(keep)*float64(limit)/float64(n)))
	}
	return Head(text, limit, count)
}

// Head returns the beginning of text, at limit tokens or less, cut between runes and, where one is near, at the end of a line or a word.
func Head(text string, limit int, count core.TokenCounter) string {
	if limit <= 0 || text == "" {
		return ""
	}
	total := count(text)
	if total <= limit {
		return text
	}
	keep := int(float64(len(text)) * float64(limit) / float64(total))
	for keep > 0 {
		out := strings.TrimRight(cutHead(text, keep), " \n")
		if count(out) <= limit {
			return out
		}
		keep = min(keep-1, keep*9/10)
	}
	return ""
}

// cutHead returns at most n bytes from the beginning of s.
func cutHead(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if i := strings.LastIndexByte(s[:n], '\n'); i > n*4/5 {
		return s[:i]
	}
	if i := strings.LastIndexByte(s[:n], ' '); i > n*3/5 {
		return s[:i]
	}
	return s[:n]
}

// cutTail returns at most n bytes from the end of s.
func cutTail(s string, n int) string {
	from := max(0, len(s)-n)
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	if from == 0 {
		return s
	}
	if i := strings.IndexByte(s[from:], '\n'); i >= 0 && i < n/5 {
		return s[from+i+1:]
	}
	if i := strings.IndexByte(s[from:], ' '); i >= 0 && i < n*2/5 {
		return s[from+i+1:]
	}
	return s[from:]
}

// FirstLine returns the first line of text that is not blank, cut to at most limit bytes between runes.
func FirstLine(text string, limit int) string {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if len(line) <= limit {
			return line
		}
		return strings.TrimRight(cutHead(line, limit-3), " ") + "…"
	}
	return ""
}

// HeadBytes returns at most limit bytes of the beginning of text, cut between runes and, where one is near, at the end of a line or a word.
func HeadBytes(text string, limit int) string { return cutHead(text, max(0, limit)) }
