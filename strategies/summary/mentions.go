package summary

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
)

const (
	// scanBytes bounds what is looked at of one text, mostMentions what is remembered.
	scanBytes    = 1 << 16
	mostMentions = 5000
	// longestMention is longer than a hash in hexadecimal digits and most paths.
	longestMention = 120
)

// mentions counts the words that a reader could not make up: identifiers, paths, addresses, numbers.
type mentions struct {
	index map[string]int
	list  []mention
}

type mention struct {
	text   string
	weight int
}

// scan adds what text mentions, each with this weight.
func (m *mentions) scan(text string, weight int) {
	text = compacting.HeadBytes(text, scanBytes)
	for word := range strings.FieldsFuncSeq(text, separates) {
		word = strings.TrimRight(strings.TrimLeft(word, ":!?*#~-"), ".:!?*…~-")
		if !telling(word) {
			continue
		}
		i, known := m.index[word]
		if !known {
			if len(m.list) >= mostMentions {
				continue
			}
			i = len(m.list)
			m.index[word] = i
			m.list = append(m.list, mention{text: word})
		}
		m.list[i].weight += weight
	}
}

func separates(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("\"'`()[]{}<>,;|=«»“”‘’", r)
}

// telling reports whether a word is worth keeping exactly as it is.
func telling(word string) bool {
	if len(word) < 3 || len(word) > longestMention || !utf8.ValidString(word) {
		return false
	}
	var digit, letter, mark, camel bool
	var prev rune
	for i, r := range word {
		switch {
		case unicode.IsDigit(r):
			digit = true
		case unicode.IsLetter(r):
			letter = true
			camel = camel || unicode.IsUpper(r) && unicode.IsLower(prev)
		case i > 0 && strings.ContainsRune("/\\_.@:-", r):
			// A hyphen alone joins ordinary words.
			mark = mark || r != '-'
		}
		prev = r
	}
	mark = mark || word[0] == '/' && letter
	if len(word) > 64 && !mark {
		return false // encoded data
	}
	return digit || letter && (mark || camel)
}

// line lists the weightiest mentions that fit limit tokens, whole ones only.
func (m *mentions) line(limit int, count core.TokenCounter) string {
	const head, sep = "Mentioned: ", ", "
	list := slices.Clone(m.list)
	// Equal ones stay in the order in which they were first mentioned.
	slices.SortStableFunc(list, func(a, b mention) int { return cmp.Compare(b.weight, a.weight) })
	room := limit - count(head)
	var out []string
	for _, it := range list {
		n := count(it.text+sep) + 1
		if n > room {
			if room < 4 {
				break
			}
			continue
		}
		room -= n
		out = append(out, it.text)
	}
	for len(out) > 0 {
		if s := head + strings.Join(out, sep); count(s) <= limit {
			return s
		}
		out = out[:len(out)-1]
	}
	return ""
}
