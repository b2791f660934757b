package words

import (
	"strings"
	"unicode"
)

// runLength is how many words in a row are no coincidence.
const runLength = 4

// Pieces yields the runs of words of a text, and its identifiers: words with letters and digits, or long numbers.
func Pieces(text string, yield func(string) bool) {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_", r)
	})
	for i, w := range words {
		if i+runLength <= len(words) && !yield(strings.Join(words[i:i+runLength], " ")) {
			return
		}
		digits := strings.IndexFunc(w, unicode.IsDigit) >= 0
		if name := digits && len(w) >= 4 && strings.IndexFunc(w, unicode.IsLetter) >= 0; (name || digits && len(w) >= 5 && !strings.Contains(w, "-")) && !yield(w) {
			return
		}
	}
}
