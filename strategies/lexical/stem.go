package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	stemarabic "github.com/blevesearch/snowballstem/arabic"
	stemdanish "github.com/blevesearch/snowballstem/danish"
	stemdutch "github.com/blevesearch/snowballstem/dutch"
	stemfinnish "github.com/blevesearch/snowballstem/finnish"
	stemfrench "github.com/blevesearch/snowballstem/french"
	stemgerman "github.com/blevesearch/snowballstem/german"
	stemhungarian "github.com/blevesearch/snowballstem/hungarian"
	stemitalian "github.com/blevesearch/snowballstem/italian"
	stemnorwegian "github.com/blevesearch/snowballstem/norwegian"
	stemportuguese "github.com/blevesearch/snowballstem/portuguese"
	stemromanian "github.com/blevesearch/snowballstem/romanian"
	stemrussian "github.com/blevesearch/snowballstem/russian"
	stemspanish "github.com/blevesearch/snowballstem/spanish"
	stemswedish "github.com/blevesearch/snowballstem/swedish"
	stemturkish "github.com/blevesearch/snowballstem/turkish"
	stemenglish "github.com/kljensen/snowball/english"
)

// cutLetters is how many letters the beginning of a word has that is indexed beside it where the text is not English: what a stemmer does not know, and texts
// whose language was not seen, meet there.
const cutLetters = 5

// stemOf returns what stands for all forms of a word that is in lower case; the word itself where nothing is known of its language.
func (l language) stemOf(word string) string {
	var stem func(*snowballstem.Env) bool
	switch l {
	case english, unsure:
		if !isASCII(word) {
			return word
		}
		return stemenglish.Stem(baseForm(word), true)
	case indic:
		return stemIndic(l.withoutEnding(word))
	case polish:
		return l.withoutEnding(word)
	case arabic:
		stem = stemarabic.Stem
	case danish:
		stem = stemdanish.Stem
	case dutch:
		stem = stemdutch.Stem
	case finnish:
		stem = stemfinnish.Stem
	case french:
		stem = stemfrench.Stem
	case german:
		stem = stemgerman.Stem
	case hungarian:
		stem = stemhungarian.Stem
	case italian:
		stem = stemitalian.Stem
	case norwegian:
		stem = stemnorwegian.Stem
	case portuguese:
		stem = stemportuguese.Stem
	case romanian:
		stem = stemromanian.Stem
	case russian:
		stem = stemrussian.Stem
	case spanish:
		stem = stemspanish.Stem
	case swedish:
		stem = stemswedish.Stem
	case turkish:
		stem = stemturkish.Stem
	default:
		return word
	}
	env := snowballstem.NewEnv(l.withoutEnding(word))
	stem(env)
	out := env.Current()
	switch {
	case out == "":
		return word
	case l == finnish:
		return afterFinnish(out)
	case l == arabic:
		return afterArabic(out)
	}
	return out
}

// skips reports whether a word says nothing about a topic in a language.
func (l language) skips(word string) bool {
	switch l {
	case english, unsure:
		return isStopword(word)
	}
	return functionWords[word]&(1<<l) != 0
}

// foreign reports whether a text is known not to be English.
func (l language) foreign() bool { return l >= other }

// cut returns the first letters of a word without accents, which are often left out.
func (l language) cut(word string) string {
	if l == vietnamese {
		return word
	}
	if l == arabic {
		word = l.stemOf(word) // the article stands in front
	}
	var b strings.Builder
	n := 0
	for _, r := range word {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r < 0x250:
			b.WriteString(plainLetter(r))
		case unicode.Is(unicode.Mn, r):
			if r >= 0x370 { // of a script whose marks are letters
				b.WriteRune(r)
			}
			continue
		case r == 'ё':
			b.WriteRune('е')
		case r == 'ς':
			b.WriteRune('σ')
		default:
			b.WriteRune(r)
		}
		if n++; n == cutLetters {
			break
		}
	}
	return b.String()
}

func isMark(r rune) bool { return unicode.Is(unicode.M, r) }

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// plainLetter returns a letter of the Latin script without its accent.
func plainLetter(r rune) string {
	switch r {
	case 'ß':
		return "ss"
	case 'æ':
		return "ae"
	case 'œ':
		return "oe"
	}
	for i, base := range plainLetters {
		if strings.ContainsRune(accented[i], r) {
			return string(base)
		}
	}
	return string(r)
}

const plainLetters = "acdeghiklnorstuyz"

// accented are letters by the one that they are written with where there is no other, in the order of plainLetters.
var accented = []string{
	"àáâãäåāăą", "çćĉċč", "ďđð", "èéêëēĕėęě", "ĝğġģ", "ĥħ", "ìíîïĩīĭįı", "ķ", "ĺļľŀł", "ñńņňŉ", "òóôõöøōŏő", "ŕŗř", "śŝşšș", "ţťŧț", "ùúûüũūŭůűų", "ýÿŷ", "źżž",
}
