package lexical

import (
	"unicode"
	"unicode/utf8"
)

// maxPassageBytes cuts text that has no borders at all.
const maxPassageBytes = 2000

// span is a stretch of a text, in bytes.
type span struct{ start, end, words int }

// passages cuts text into stretches of at most limit words, at the ends of lines and sentences where there are any. A text
// that is no longer than that stays whole. Of texts with more than keep passages the first three quarters of keep and the last
// quarter remain: results of tools tend to say what matters at their ends.
func passages(text string, limit, keep int) []span {
	var out []span
	cur := span{}
	for s := range sentences(text, limit) {
		if cur.words+s.words > limit || s.end-cur.start > maxPassageBytes {
			if cur.words > 0 {
				out = append(out, cur)
			}
			cur = span{start: s.start}
		}
		cur.end = s.end
		cur.words += s.words
	}
	if cur.words > 0 {
		out = append(out, cur)
	}
	if len(out) > keep {
		tail := keep / 4
		out = append(out[:keep-tail], out[len(out)-tail:]...)
	}
	return out
}

// sentences yields the sentences and lines of text one after the other, without gaps, longer ones cut between words.
func sentences(text string, limit int) func(yield func(span) bool) {
	return func(yield func(span) bool) {
		var s span
		inWord := false
		cut := func(at int) bool {
			s.end = at
			ok := s.end == s.start || yield(s)
			s = span{start: at}
			inWord = false
			return ok
		}
		for i := 0; i < len(text); {
			r, size := rune(text[i]), 1
			if r >= utf8.RuneSelf {
				r, size = utf8.DecodeRuneInString(text[i:])
			}
			next := i + size
			class := classOf(r)
			if class == alone || class == inside && !inWord {
				if s.words >= limit && !cut(i) {
					return
				}
				s.words++
			}
			if class != attached {
				inWord = class == inside
			}
			if next-s.start >= maxPassageBytes || r == '\n' || endsSentence(r, text[next:]) {
				if !cut(next) {
					return
				}
			}
			i = next
		}
		if s.start < len(text) {
			cut(len(text))
		}
	}
}

// The classes of characters that count words.
const (
	between  = iota // ends a word
	inside          // part of a word
	alone           // counts as a word
	attached        // belongs to what it follows
)

func classOf(r rune) int {
	switch {
	case r < utf8.RuneSelf && isAlnum(byte(r)):
		return inside
	case r == '\'' || r == '’' || isJoinMark(r) || r >= utf8.RuneSelf && unicode.Is(unicode.M, r):
		return attached
	case r < utf8.RuneSelf:
		return between
	case isDense(r):
		return alone
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		return inside
	}
	return between
}

// endsSentence reports whether a sentence ends with r when rest follows.
func endsSentence(r rune, rest string) bool {
	switch r {
	case '。', '！', '？', '；', '।':
		return true
	case '.', '!', '?', '…':
		return rest != "" && isSpace(rest[0])
	}
	return false
}
