package summary

import (
	"regexp"
	"slices"
	"strings"
)

const (
	houseNumber = `(\d{1,4}(?: ?[a-zA-Z]\b)?)`
	capital     = `\p{Lu}[\p{L}\p{M}.'’-]*`
	kinds       = `[Rr]ue|[Bb]oulevard|[Bb]d|[Aa]venue|[Aa]v\.|[Qq]uai|[Cc]hemin|[Ii]mpasse|[Aa]llée|[Cc]alle|C/|[Aa]venida|Plaza|Paseo|Via|Viale|Piazza|Corso|Rua|rua|Praça|ul\.|[Uu]lic[aey]|al\.|Strada|` +
		`Bulevardul|[Уу]лиц[аеыу]|ул\.|[Пп]роспект|пр\.|[Пп]ереулок|شارع|[Đđ]ường|[Pp]hố`
	number = `,? (?:n[.ºr°o]+ ?|№ ?|[Nn]o[:.] ?|д\. ?|дом )?`
)

// The forms of a house's number with its street, with the groups that hold them.
var streetForms = []struct {
	form         *regexp.Regexp
	name, number int
}{
	{regexp.MustCompile(`\b(\d{1,5}[A-Za-z]?) ((?:(?:` + capital + `|\d+(?:st|nd|rd|th)) ){1,3})(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Boulevard|Blvd|Drive|Dr|Court|Place|Square|Terrace|Crescent|Way|Highway|Parkway|Quay)\b`), 2, 1},
	{regexp.MustCompile(`(\p{Lu}[\p{L}\p{M}-]{2,}?)(?:straße|strasse|str\.|weg|allee|gasse|platz|damm|ufer|straat|laan|gracht|vej|veien|gaten|gatan|vägen|katu)[ ,]{1,2}` + houseNumber + `\b`), 1, 2},
	{regexp.MustCompile(`(\p{Lu}[\p{L}\p{M}-]+) (?:Straße|Strasse|Str\.|Allee|Weg|Platz|Damm|Ufer|[Uu]tca|út|tér|Caddesi|Cad\.|Sokak|Sokağı|Bulvarı|[Уу]лица|[Пп]роспект)` + number + houseNumber + `\b`), 1, 2},
	{regexp.MustCompile(`(?:` + kinds + `) (?:(?:de|du|des|del|della|da|do|dos|la|le|les|los) |d')*((?:` + capital + ` ?){1,3}|\p{Arabic}+)` + number + houseNumber + `\b`), 1, 2},
	{regexp.MustCompile(`\b(\d{1,4}(?: bis| ter)?),? (?:rue|boulevard|bd|avenue|av\.|place|quai|chemin|impasse|allée|đường|phố) (?:(?:de|du|des|la|le|les) |d'|de l')*(` + capital + `)`), 2, 1},
	{regexp.MustCompile(`(\p{Han}{2})(?:大?[路街道巷弄]|胡同)(\d{1,5})[号號]`), 1, 2},
	{regexp.MustCompile(`(\p{Han}{2})町?(\d{1,3})(?:丁目|番地)`), 1, 2},
	{regexp.MustCompile(`(\p{Hangul}{2,})(?:대로|번길|길) (\d{1,4})`), 1, 2},
}

// streetsIn yields houses with their place in a text, the name of their street and their number.
func streetsIn(text string, yield func(from, to int, name, number string)) {
	for _, f := range streetForms {
		for _, m := range f.form.FindAllStringSubmatchIndex(text, -1) {
			// "3 Google Drive files" are no house.
			if f.number == 1 && strings.HasPrefix(text[m[1]:], " ") && counted(text[m[1]:]) && !stands.MatchString(text[m[1]:]) {
				continue
			}
			name := longest(text[m[2*f.name]:m[2*f.name+1]])
			yield(m[0], m[1], name, digitsOf(text[m[2*f.number]:m[2*f.number+1]]))
		}
	}
}

// stands finds words that may follow an address and are no nouns, beside those that joins finds.
var stands = regexp.MustCompile(`^ (?:is|was|has|near|since|until|where|which|that|\p{Lu})`)

// longest returns the longest word, which says most about a street.
func longest(name string) (word string) {
	for w := range strings.FieldsSeq(name) {
		if len(w) > len(word) {
			word = w
		}
	}
	return strings.Trim(word, ".'’-")
}

// nearby is how far from the name of its street a house's number may stand in the source, in bytes.
const nearby = 100

// lives reports whether the source says a house's number near the name of its street.
func (c *claims) lives(name, number string) bool {
	if c.folded == "" {
		c.folded = strings.ToLower(c.source())
	}
	name = strings.ToLower(name)
	for at := 0; ; {
		i := strings.Index(c.folded[at:], name)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(name)
		if slices.Contains(digitRows.FindAllString(c.folded[max(at-nearby, 0):min(end+nearby, len(c.folded))], -1), number) {
			return true
		}
		at = end
	}
}

var digitRows = regexp.MustCompile(`\d+`)
