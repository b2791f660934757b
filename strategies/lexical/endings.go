package lexical

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// minStem is how many letters a word keeps when an ending is taken off.
const minStem = 3

// endings are what is taken off words before a stemmer sees them: those of verbs, of which some stemmers know nothing, and all of languages that have no
// stemmer. Longer ones come first.
var endings = map[language][]string{
	turkish:   endingsOf("mak mek dı di du dü tı ti tu tü"),
	hungarian: endingsOf("ni ott ett ött"),
	polish:    endingsOf("iami ami ach owie owi iem ów om em ie ia ią ię iu iła ił ić ała ał ać yła ył yć ęła ęli eć ła ł ć li ły y i a e ę ą u o"),
	indic:     endingsOf("ना ने नी"),
}

func endingsOf(list string) []string {
	out := strings.Fields(list)
	slices.SortStableFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

// withoutEnding takes off the longest ending of a language that leaves enough of the word.
func (l language) withoutEnding(word string) string {
	for _, e := range endings[l] {
		if short, ok := strings.CutSuffix(word, e); ok && utf8.RuneCountInString(short) >= minStem {
			return short
		}
	}
	return word
}

// stemIndic takes off what stands for the vowels at a word's end: that is where number and case are.
func stemIndic(word string) string {
	short := strings.TrimRightFunc(word, isMark)
	for _, vowel := range []string{"य", "ई", "ए", "ओ"} {
		if s, ok := strings.CutSuffix(short, vowel); ok {
			short = strings.TrimRightFunc(s, isMark)
			break
		}
	}
	if utf8.RuneCountInString(short) < 2 {
		return word
	}
	return short
}

// afterFinnish takes off what the stemmer leaves: the sign of the plural, the vowel in front of it, which it changes, and one of two consonants: words have one
// in some forms and two in others.
func afterFinnish(stem string) string {
	short := strings.TrimRight(strings.TrimSuffix(stem, "ej"), "ij")
	for _, vowel := range []string{"a", "ä", "o", "ö", "e"} {
		if s, ok := strings.CutSuffix(short, vowel); ok {
			short = s
			break
		}
	}
	if n := len(short); n > minStem && short[n-1] == short[n-2] && short[n-1] < utf8.RuneSelf {
		short = short[:n-1]
	}
	if utf8.RuneCountInString(short) < minStem {
		return stem
	}
	return short
}

// afterArabic takes off the letter that begins most verbs of the present.
func afterArabic(stem string) string {
	if short, ok := strings.CutPrefix(stem, "ي"); ok && utf8.RuneCountInString(short) == 3 {
		return short
	}
	return stem
}
