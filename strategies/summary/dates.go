package summary

import (
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	monthWord = `([\p{L}\p{M}]+)`
	ordinal   = `(?:st|nd|rd|th|\.|er|º|°|-?го)?`
	of        = `(?: of| de| del| di| من)?`
)

// The forms of dates, with the groups that hold year, month and day; 0 where there is none. A day or a year may be left out, not both.
var dateForms = []struct {
	form             *regexp.Regexp
	year, month, day int
	// first says that the month stands in front, which is done in few languages.
	first bool
}{
	{form: regexp.MustCompile(`\b(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:T|\b)`), year: 1, month: 2, day: 3},
	{form: regexp.MustCompile(`\b(\d{4})\.(\d\d)\.(\d\d)\b`), year: 1, month: 2, day: 3}, // 2026.9.4 is a version
	{form: regexp.MustCompile(`\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b`), year: 3, month: 1, day: 2},
	{form: regexp.MustCompile(`\b([0-3]?\d)/([0-3]?\d)/(\d\d)\b`), year: 3, month: 1, day: 2},
	{form: regexp.MustCompile(monthWord + `\.? (\d{1,2})` + ordinal + `\b(?:,? (\d{4})\b)?`), year: 3, month: 1, day: 2, first: true},
	{form: regexp.MustCompile(`\b(\d{4})\.? ` + monthWord + `(?: (\d{1,2})\b)?`), year: 1, month: 2, day: 3, first: true},
	{form: regexp.MustCompile(`\b(\d{1,2})` + ordinal + of + ` ` + monthWord + `(?:\.?,?` + of + ` (\d{4})\b)?`), year: 3, month: 2, day: 1},
	{form: regexp.MustCompile(monthWord + `\.?,?` + of + ` (\d{4})\b`), year: 2, month: 1},
	{form: regexp.MustCompile(`(?:(\d{4}) ?[年년] ?)?(\d{1,2}) ?[月월](?: ?(\d{1,2}) ?[日号號일])?`), year: 1, month: 2, day: 3},
	{form: regexp.MustCompile(`(?:(\d{1,2}) )?(?i:tháng) (\d{1,2})(?:(?:,? (?i:năm) |/)(\d{4})\b)?`), year: 3, month: 2, day: 1},
}

// date is a day, or a month where the day is 0; the year is 0 where nobody said it.
type date struct{ year, month, day int }

// datesIn yields the dates of a text, in each order of day and month that their form allows, with their place.
func datesIn(text string, yield func(from, to int, readings ...date)) {
	for from, to := range aroundDigits(text, 2, 3) {
		datesOf(text[from:to], func(f, t int, readings ...date) { yield(from+f, from+t, readings...) })
	}
}

// aroundDigits yields the pieces of a text that hold whatever has a digit in it, at most some words in front of that and some behind.
func aroundDigits(text string, front, behind int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		from, to, next := 0, 0, 0
		for {
			at := strings.IndexAny(text[next:], "0123456789")
			if at < 0 {
				break
			}
			at += next
			// The word's beginning, and those of the ones in front of it.
			first := at
			for range front + 1 {
				first = strings.LastIndexByte(text[:max(first, 0)], ' ')
			}
			first++
			if first > to || to == 0 {
				if to > from && !yield(from, to) {
					return
				}
				from = first
			}
			next = wordsOn(text, at, 1)
			to = wordsOn(text, next, behind)
		}
		if to > from {
			yield(from, to)
		}
	}
}

// wordsOn returns where the nth word behind at begins.
func wordsOn(text string, at, n int) int {
	for range n {
		blank := strings.IndexByte(text[at:], ' ')
		if blank < 0 {
			return len(text)
		}
		at += blank + 1
	}
	return at
}

func datesOf(text string, yield func(from, to int, readings ...date)) {
	for _, f := range dateForms {
		for _, m := range f.form.FindAllStringSubmatchIndex(text, -1) {
			group := func(n int) string {
				if n == 0 || m[2*n] < 0 {
					return ""
				}
				return text[m[2*n]:m[2*n+1]]
			}
			var d date
			d.year, _ = strconv.Atoi(group(f.year))
			if len(group(f.year)) == 2 {
				d.year += 2000
			}
			d.day, _ = strconv.Atoi(group(f.day))
			word := group(f.month)
			digits := word[0] <= '9'
			if digits {
				d.month, _ = strconv.Atoi(word)
			} else if named := monthOf(word); named.first || !f.first {
				d.month = named.n
			}
			switch {
			case d.month == 0 || d.year == 0 && d.day == 0:
			case digits && f.year == 3 && f.month == 1:
				yield(m[0], m[1], d, date{d.year, d.day, d.month})
			default:
				yield(m[0], m[1], d)
			}
		}
	}
}

// bareMonths finds months that are written in digits and lack a day, or day and year: group 1 or 4 is the year, 2, 3 or 5 the month.
var bareMonths = regexp.MustCompile(`\b(\d{4})[-/](\d\d)\b|\b(\d\d?)/(\d{4})\b|(\d{1,2}) ?[月월]`)

// allDatesIn yields the dates of a text, and months that it names beside them, with their year or without: few of those are claims, but what they say is known.
func allDatesIn(text string, yield func(...date)) {
	type span struct{ from, to int }
	var spans []span
	datesIn(text, func(from, to int, readings ...date) {
		spans = append(spans, span{from, to})
		yield(readings...)
	})
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	at := 0
	for _, s := range append(spans, span{len(text), len(text)}) {
		if s.from > at {
			monthsIn(text[at:s.from], yield)
		}
		at = max(at, s.to)
	}
}

func monthsIn(text string, yield func(...date)) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !isLetter(r) }) {
		if m := monthOf(word); m.n > 0 {
			yield(date{month: m.n})
		}
	}
	for _, m := range bareMonths.FindAllStringSubmatch(text, -1) {
		var d date
		d.year, _ = strconv.Atoi(m[1] + m[4])
		d.month, _ = strconv.Atoi(m[2] + m[3] + m[5])
		yield(d)
	}
}
