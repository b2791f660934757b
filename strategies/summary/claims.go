package summary

import (
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/asking"
)

// claim is a sum of money, a date or a telephone number in a text, at text[from:to]. A model that gets one wrong gets it wrong plausibly: only the source can tell.
type claim struct {
	from, to int
	known    bool
}

const months = `(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*`

// The forms of dates, with the groups that hold year, month and day; 0 where there is none.
var dateForms = []struct {
	form             *regexp.Regexp
	year, month, day int
}{
	{regexp.MustCompile(`\b(\d{4})[-/](\d{1,2})[-/](\d{1,2})\b`), 1, 2, 3},
	{regexp.MustCompile(`\b(\d{4})\.(\d\d)\.(\d\d)\b`), 1, 2, 3}, // 2026.9.4 is a version
	{regexp.MustCompile(`\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b`), 3, 1, 2},
	{regexp.MustCompile(`\b([0-3]?\d)/([0-3]?\d)/(\d\d)\b`), 3, 1, 2},
	{regexp.MustCompile(`\b` + months + `\.? (\d{1,2})(?:st|nd|rd|th)?\b(?:,? (\d{4})\b)?`), 3, 1, 2},
	{regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ` + months + `(?:\.?,? (\d{4})\b)?`), 3, 2, 1},
	{regexp.MustCompile(`\b(\d{1,2})(?:\.|er|º|°)? (?:de |di )?(` + strings.Join(monthNames, "|") + `)\b(?:,? (?:de |del |di )?(\d{4})\b)?`), 3, 2, 1},
}

// monthNames are those of a year in German, French, Spanish, Italian, Portuguese and Dutch, one year after the other.
var monthNames = strings.Fields(`Januar Februar März April Mai Juni Juli August September Oktober November Dezember
	janvier février mars avril mai juin juillet août septembre octobre novembre décembre
	enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
	gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
	janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
	januari februari maart april mei juni juli augustus september oktober november december`)

// date is a day; the year is 0 where nobody said it.
type date struct{ year, month, day int }

// datesIn yields the dates of a text, in each order of day and month that their form allows, with their place.
func datesIn(text string, yield func(from, to int, readings ...date)) {
	for from, to := range aroundDigits(text) {
		datesOf(text[from:to], func(f, t int, readings ...date) { yield(from+f, from+t, readings...) })
	}
}

// aroundDigits yields the pieces of a text that may hold a date, which has a digit in it, at most one word in front of that and three behind.
func aroundDigits(text string) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		from, to, next := 0, 0, 0
		for {
			at := strings.IndexAny(text[next:], "0123456789")
			if at < 0 {
				break
			}
			at += next
			// The word's beginning, and that of the one in front of it.
			first := strings.LastIndexByte(text[:at], ' ')
			first = 1 + strings.LastIndexByte(text[:max(first, 0)], ' ')
			if first > to || to == 0 {
				if to > from && !yield(from, to) {
					return
				}
				from = first
			}
			next = wordsOn(text, at, 1)
			to = wordsOn(text, next, 3)
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
				if m[2*n] < 0 {
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
			month := group(f.month)
			if at := slices.Index(monthNames, month); at >= 0 {
				d.month = 1 + at%12
			} else if month[0] > '9' {
				d.month = 1 + strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", month)/3
			} else {
				d.month, _ = strconv.Atoi(month)
			}
			if f.year == 3 && f.month == 1 && f.day == 2 && group(1)[0] <= '9' {
				yield(m[0], m[1], d, date{d.year, d.day, d.month})
				continue
			}
			yield(m[0], m[1], d)
		}
	}
}

// claims are the sums, dates and telephone numbers that a source holds. Each kind is looked for when a text first says one: most texts say none. It is not safe for
// concurrent use.
type claims struct {
	text    string
	entries []core.Entry
	// numbers and dates are nil until they are asked for.
	numbers map[string]bool
	dates   []date
	// digits are all of the source, one behind the other; empty until they are asked for, or where there are none.
	digits string
}

func claimsOf(text string, entries []core.Entry) *claims {
	return &claims{text: text, entries: entries}
}

// counts reports whether the source holds a number, times what stands behind it.
func (c *claims) counts(n, times string) bool {
	if c.numbers == nil {
		c.numbers = make(map[string]bool)
		for _, m := range numbers.FindAllStringSubmatch(c.text, -1) {
			c.numbers[bare(m[1])] = true
			c.numbers[amount(m[1], m[2])] = true
		}
	}
	return c.numbers[amount(n, times)]
}

// dials reports whether the source holds these digits in a row.
func (c *claims) dials(digits string) bool {
	if c.digits == "" {
		c.digits = digitsOf(c.text)
	}
	return strings.Contains(c.digits, digits)
}

// days are the dates of the source.
func (c *claims) days() []date {
	if c.dates != nil {
		return c.dates
	}
	c.dates = []date{}
	add := func(_, _ int, readings ...date) { c.dates = append(c.dates, readings...) }
	datesIn(c.text, add)
	for i := range c.entries {
		e := &c.entries[i]
		if e.Time.IsZero() || e.Hidden() {
			continue
		}
		// A summary may well say on which day something was said, and what "yesterday" was.
		datesIn(e.Time.Format(time.DateOnly), add)
		datesIn(e.Time.UTC().Format(time.DateOnly), add)
		datesIn(strings.Join(asking.Dates(asking.Head(e.Text(), maxDated), e.Time), " "), add)
	}
	return c.dates
}

// maxDated bounds how much of an entry is read for what it says about time, in bytes.
const maxDated = 4000

// holds reports whether a date, in one of its readings, is one of the source.
func (c *claims) holds(readings []date) bool {
	return slices.ContainsFunc(readings, func(d date) bool {
		return slices.ContainsFunc(c.days(), func(s date) bool {
			return s.month == d.month && s.day == d.day && (s.year == d.year || s.year == 0 || d.year == 0)
		})
	})
}

// check takes the sums, dates and telephone numbers out of a text that the source does not hold, and returns how many those were.
func (c *claims) check(text string) (checked string, invented int) {
	var found []claim
	for _, m := range money.FindAllStringSubmatchIndex(text, -1) {
		at := 2 // the groups of the number and of what it is times
		if m[at] < 0 {
			at = 6
		}
		from, to, times := m[at], m[at+1], ""
		if m[at+2] >= 0 {
			times = text[m[at+2]:m[at+3]]
		}
		found = append(found, claim{from, to + len(times), c.counts(text[from:to], times)})
	}
	for _, m := range phone.FindAllStringIndex(text, -1) {
		digits := digitsOf(text[m[0]:m[1]])
		found = append(found, claim{m[0], m[1], c.dials(digits[max(len(digits)-9, 0):])}) // the country may be left out, or added
	}
	datesIn(text, func(from, to int, readings ...date) {
		found = append(found, claim{from, to, c.holds(readings)})
	})
	slices.SortFunc(found, func(a, b claim) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, f := range found {
		if f.from < at {
			continue // "May 5, 2026" is also "5, 2026"
		}
		if f.known {
			continue
		}
		invented++
		b.WriteString(text[at:f.from])
		b.WriteString(unverified)
		at = f.to
	}
	b.WriteString(text[at:])
	return b.String(), invented
}

// address is a mail address, a host's name or an IP address, with or without a port.
var address = regexp.MustCompile(`(?i)^(?:[^@\s/]+@)?(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|org|net|io|dev|app|ai|edu|gov|info|biz|cloud|local|localdomain|internal|lan|example|test|invalid|eu|de|fr|uk|us|cn|jp|ch|at|nl|es|it)(?::\d+)?(?:/.*)?$` +
	`|^[^@\s/]+@[^@\s/]+\.[a-z]+$|^(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:/.*)?$`)
