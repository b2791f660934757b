package summary

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/asking"
)

// claim is a sum of money, a date, a house or a telephone number in a text, at text[from:to]. A model that gets one wrong gets it wrong plausibly: only the source can tell.
type claim struct {
	from, to int
	known    bool
}

// claims are the sums, dates, houses and telephone numbers that a source holds. Each kind is looked for when a text first says one: most texts say none. It is not safe
// for concurrent use.
type claims struct {
	text    string
	entries []core.Entry
	// ours is the text with the digits of our script; empty until it is asked for. folded is that in lower case.
	ours, folded string
	// numbers and dates are nil until they are asked for.
	numbers map[string]bool
	dates   []date
	// digits are all of the source, one behind the other; empty until they are asked for, or where there are none.
	digits string
}

func claimsOf(text string, entries []core.Entry) *claims {
	return &claims{text: text, entries: entries}
}

// source is the text with the digits of our script.
func (c *claims) source() string {
	if c.ours == "" {
		c.ours, _ = plain(c.text)
	}
	return c.ours
}

// counts reports whether the source holds a number, times what stands behind it.
func (c *claims) counts(n, times string) bool {
	if c.numbers == nil {
		c.numbers = make(map[string]bool)
		for _, m := range numbers.FindAllStringSubmatch(c.source(), -1) {
			c.numbers[bare(m[1])] = true
			c.numbers[amount(m[1], m[2])] = true
			for _, part := range blank.Split(m[1], -1) { // two numbers, perhaps
				c.numbers[bare(part)] = true
			}
		}
	}
	return c.numbers[amount(n, times)] || times == "" && blank.MatchString(n) && strings.Contains(c.source(), n)
}

// blank finds what may separate numbers, and the groups of one.
var blank = regexp.MustCompile(`[ \x{a0}\x{202f}]`)

// lists reports whether the source holds each number of what may be a list, such as 100,200, or all of it.
func (c *claims) lists(n string) bool {
	return strings.Contains(c.source(), n) || !slices.ContainsFunc(digitRows.FindAllString(n, -1), func(part string) bool { return !c.counts(part, "") })
}

// dials reports whether the source holds these digits in a row.
func (c *claims) dials(digits string) bool {
	if c.digits == "" {
		c.digits = digitsOf(c.source())
	}
	return strings.Contains(c.digits, digits)
}

// days are the dates of the source.
func (c *claims) days() []date {
	if c.dates != nil {
		return c.dates
	}
	c.dates = []date{}
	add := func(list ...date) { c.dates = append(c.dates, list...) }
	allDatesIn(c.source(), add)
	for i := range c.entries {
		e := &c.entries[i]
		if e.Time.IsZero() || e.Hidden() {
			continue
		}
		// A summary may well say on which day something was said, what "yesterday" was, and which month comes next.
		allDatesIn(e.Time.Format(time.DateOnly), add)
		allDatesIn(e.Time.UTC().Format(time.DateOnly), add)
		for n := -1; n <= 1; n++ {
			m := time.Date(e.Time.Year(), e.Time.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
			add(date{year: m.Year(), month: int(m.Month())})
		}
		allDatesIn(strings.Join(asking.Dates(asking.Head(e.Text(), maxDated), e.Time), " "), add)
	}
	return c.dates
}

// maxDated bounds how much of an entry is read for what it says about time, in bytes.
const maxDated = 4000

// holds reports whether a date, in one of its readings, is one of the source.
func (c *claims) holds(readings []date) bool {
	return slices.ContainsFunc(readings, func(d date) bool {
		return slices.ContainsFunc(c.days(), func(s date) bool {
			return s.month == d.month && (s.day == d.day || d.day == 0) && (s.year == d.year || d.year == 0 || s.year == 0 && c.nears(d.year))
		})
	})
}

// nears reports whether a day or month of which the source does not say the year may be in this one: that is said, or next to one that is, or none is.
func (c *claims) nears(year int) bool {
	none := true
	for _, d := range c.days() {
		if d.year > 0 && d.year >= year-1 && d.year <= year+1 {
			return true
		}
		none = none && d.year == 0
	}
	return none || c.counts(strconv.Itoa(year), "")
}

// check takes the sums, dates, houses and telephone numbers out of a text that the source does not hold, and returns how many those were.
func (c *claims) check(text string) (checked string, invented int) {
	said, places := plain(text)
	place := func(at int) int {
		if places == nil {
			return at
		}
		return places[at]
	}
	var b strings.Builder
	at, judged := 0, 0
	for _, f := range c.made(said) {
		if f.from < judged {
			continue // "May 5, 2026" is also "5, 2026"
		}
		judged = f.to
		if f.known {
			continue
		}
		invented++
		b.WriteString(text[place(at):place(f.from)])
		b.WriteString(unverified)
		at = f.to
	}
	b.WriteString(text[place(at):])
	return b.String(), invented
}

// mostWords is how many words of a sum or of a house may stand on each side of its number.
const mostWords = 6

// made returns the claims of a text, in their order.
func (c *claims) made(text string) []claim {
	var found []claim
	for at, end := range aroundDigits(text, mostWords, mostWords) {
		piece := text[at:end]
		sumsIn(piece, func(from, to int, n, times string, grouped bool) {
			found = append(found, claim{at + from, at + to, c.counts(n, times) || grouped && c.lists(n)})
		})
		streetsIn(piece, func(from, to int, name, number string) {
			found = append(found, claim{at + from, at + to, c.lives(name, number)})
		})
	}
	for _, m := range phone.FindAllStringIndex(text, -1) {
		digits := digitsOf(text[m[0]:m[1]])
		found = append(found, claim{m[0], m[1], c.dials(digits[max(len(digits)-9, 0):])}) // the country may be left out, or added
	}
	datesIn(text, func(from, to int, readings ...date) {
		found = append(found, claim{from, to, c.holds(readings)})
	})
	slices.SortFunc(found, func(a, b claim) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	return found
}

// address is a mail address, a host's name or an IP address, with or without a port.
var address = regexp.MustCompile(`(?i)^(?:[^@\s/]+@)?(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|org|net|io|dev|app|ai|edu|gov|info|biz|cloud|local|localdomain|internal|lan|example|test|invalid|eu|de|fr|uk|us|cn|jp|ch|at|nl|es|it)(?::\d+)?(?:/.*)?$` +
	`|^[^@\s/]+@[^@\s/]+\.[a-z]+$|^(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:/.*)?$`)
