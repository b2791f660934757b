package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
)

const (
	// maxText bounds, in bytes, what is handed to the server's text search of one entry: its result may have a megabyte.
	maxText = 300 << 10
	// maxWord bounds a word in bytes; longer ones are cut, in queries as in entries, so that they still meet.
	maxWord = 64
)

// mark returns the word that all searchable entries of an agent have in common. No text can contain it. It lets the index of
// words leave out other agents' entries by itself.
func mark(agent string) string {
	sum := sha256.Sum256([]byte(agent))
	return "@" + hex.EncodeToString(sum[:8])
}

// searchText returns what an entry can be found by: who spoke, on which day, and what was said, as plain words. It is empty for what must not be found.
func searchText(e *core.Entry) string {
	if e.Type == core.TypeHeartbeat || e.Type == core.TypeErased {
		return ""
	}
	day := ""
	if !e.Time.IsZero() {
		day = e.Time.UTC().Format("2 January 2006")
	}
	return plainWords(e.Message.Name + " " + day + " " + e.Text())
}

// plainWords reduces text to lower-case words with a space between them. The server's parser would otherwise take addresses, paths and tags in
// one piece or leave them out. Scripts without spaces between words become pairs of neighbouring characters, each a word.
func plainWords(text string) string {
	var b strings.Builder
	b.Grow(min(len(text), maxText))
	var w wordWriter
	for _, r := range text {
		if b.Len() > maxText {
			break
		}
		switch {
		case isDense(r):
			w.dense(&b, r)
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			w.letter(&b, r)
		case r == '\u200c' || r == '\u200d': // the joiners that some scripts write inside of words
		default:
			w.end(&b)
		}
	}
	w.end(&b)
	return b.String()
}

// wordWriter is the state of plainWords: the word that is being written, or the character that waits for its neighbour.
type wordWriter struct {
	size int
	last rune
	pair bool
}

func (w *wordWriter) space(b *strings.Builder) {
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
}

func (w *wordWriter) letter(b *strings.Builder, r rune) {
	if w.last != 0 && unicode.IsMark(r) {
		return // it belongs to a character that is written with its neighbour
	}
	if w.last != 0 {
		w.end(b)
	}
	if w.size == 0 {
		w.space(b)
	}
	if 0xFF01 <= r && r <= 0xFF5E { // full-width forms of ASCII
		r -= 0xFEE0
	}
	r = unicode.ToLower(r)
	if w.size += utf8.RuneLen(r); w.size <= maxWord {
		b.WriteRune(r)
	}
}

func (w *wordWriter) dense(b *strings.Builder, r rune) {
	if w.last == 0 {
		w.end(b)
		w.last = r
		return
	}
	w.space(b)
	b.WriteRune(w.last)
	b.WriteRune(r)
	w.last, w.pair = r, true
}

// end ends a word. A single character is a word of its own.
func (w *wordWriter) end(b *strings.Builder) {
	if w.last != 0 && !w.pair {
		w.space(b)
		b.WriteRune(w.last)
	}
	*w = wordWriter{}
}

// isDense reports characters of scripts that put no spaces between words, and Hangul, whose words carry their grammar with them.
func isDense(r rune) bool {
	if r < 0x0E00 || unicode.IsMark(r) {
		return false
	}
	return r == 0x30FC || r == 0xFF70 || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
