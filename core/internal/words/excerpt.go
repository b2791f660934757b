package words

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWords bounds what a query is taken for.
const maxWords = 256

// Of returns the different words of a query in lower case, at most maxWords; the query itself where it has no blanks.
func Of(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), unicode.IsSpace)
	for i, w := range words {
		if trimmed := strings.TrimFunc(w, unicode.IsPunct); trimmed != "" {
			words[i] = trimmed
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	return words[:min(len(words), maxWords)]
}

// Excerpt returns at most size bytes of text around the place where the query, or most of its words, stand.
func Excerpt(text, query string, size int) string {
	if len(text) <= size {
		return text
	}
	lower := strings.ToLower(text)
	if len(lower) != len(text) {
		lower = text // a script whose lower case has another length: as it stands, then
	}
	at := strings.Index(lower, strings.ToLower(query))
	if at < 0 {
		at = densest(lower, Of(query), size)
	}
	from := max(at-size/4, 0)
	to := min(from+size, len(text))
	from = max(to-size, 0)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && to > from && !utf8.RuneStart(text[to]) {
		to--
	}
	return text[from:to]
}

// densest returns the place from which size bytes hold the most different words.
func densest(text string, words []string, size int) int {
	type place struct{ at, word int }
	var places []place
	for i, w := range words {
		for at, n := 0, 0; n < 200; n++ {
			j := strings.Index(text[at:], w)
			if j < 0 {
				break
			}
			places = append(places, place{at + j, i})
			at += j + len(w)
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.word, b.word)) })
	best, bestAt := 0, 0
	count := make([]int, len(words))
	different, from := 0, 0
	for _, p := range places {
		if count[p.word]++; count[p.word] == 1 {
			different++
		}
		for places[from].at+size*3/4 < p.at {
			if count[places[from].word]--; count[places[from].word] == 0 {
				different--
			}
			from++
		}
		if different > best {
			best, bestAt = different, places[from].at
		}
	}
	return bestAt
}
