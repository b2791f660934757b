package asking

import (
	"slices"
	"strings"
	"time"
)

const (
	// maxDates bounds the words added for all that a prompt says about time: a fortnight and a little more.
	maxDates = 16
	// wakes is the hour at which a day begins for whoever looks back at it: what is said after midnight belongs to the day before.
	wakes = 8 * time.Hour

	dayWord, monthWord, yearWord = "2006-01-02", "2006-01", "2006"
)

// Dates returns what English expressions of time in a text mean at a moment, in the words that entries are dated with: days ("2026-05-05"),
// months ("2026-05") and years ("2025"), at most 16 of them, none twice, none that the text says itself. Among the expressions are "yesterday",
// "this morning", "last Tuesday", "on Friday", "Monday last week", "two weeks ago", "the past three days", "last weekend", "last month", "in May", "May 3rd" and
// "last year". A date with its year stands for itself and adds nothing. What lies ahead ("next week"), what only bounds ("before Friday"), what
// is counted from another day ("the last week of May") and what a sentence does not clearly use as a time ("we may 3 times") adds nothing either.
// Weeks begin on Monday. A day or month without its year is the latest that has begun, in a text that names no year at all.
//
// Entries are dated in UTC: a day of the moment's own zone is each date on which its waking hours fall, one or two.
func Dates(text string, now time.Time) []string {
	if now.IsZero() {
		return nil
	}
	s := scanner{words: split(text), now: now, text: text}
	year, month, day := now.Date()
	s.today = time.Date(year, month, day, 0, 0, 0, 0, now.Location())
	for i := range s.words {
		s.dated = s.dated || s.year(i, i)
	}
	for i := 0; i < len(s.words); {
		n, before := 0, len(s.out)
		if !s.bounds(i - 1) {
			n = s.expression(i)
		}
		if n > 0 && s.relates(i, i+n) {
			s.out = s.out[:before]
		}
		i += max(n, 1)
	}
	return s.out
}

// word is a word of a text in lower case, without punctuation around it and without a possessive's end.
type word struct {
	text    string
	capital bool
	// ends says that a sentence or a clause ends behind it.
	ends bool
}

func split(text string) []word {
	var out []word
	for f := range strings.FieldsSeq(text) {
		bare := strings.Trim(f, `.,;:!?"'()[]{}<>*_“”‘’…`)
		if bare == "" {
			continue
		}
		w := word{capital: bare[0] >= 'A' && bare[0] <= 'Z', ends: strings.ContainsAny(f[len(f)-1:], ".;:!?)")}
		w.text = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(bare, "'s"), "’s"))
		if _, _, month := monthOf(w.text); month && strings.HasSuffix(f, ".") {
			w.ends = false // "Sept. 3"
		}
		out = append(out, w)
	}
	return out
}

// scanner goes through a text once.
type scanner struct {
	words      []word
	text       string
	now, today time.Time
	// dated says that the text names a year: what it says without one is a part of that date sooner than the latest of its name.
	dated bool
	out   []string
}

// at returns a word, and "" outside of the text and beyond the end of the sentence that word from is in.
func (s *scanner) at(from, i int) string {
	if i < 0 || i >= len(s.words) {
		return ""
	}
	for k := from; k < i; k++ {
		if s.words[k].ends {
			return ""
		}
	}
	return s.words[i].text
}

// bounds reports whether a word says that the time behind it is only an end of the time meant.
func (s *scanner) bounds(i int) bool {
	switch s.at(i, i) {
	case "before", "until", "till", "after", "than", "by":
		return s.at(i-1, i-1) != "day" && !s.words[i].ends // "the day before yesterday" is a day
	}
	return false
}

// relates reports whether what is read from word i on is counted from another time than now, as the word behind it at end says: "the last week of May".
func (s *scanner) relates(i, end int) bool {
	switch s.at(i, end) {
	case "of", "before", "prior", "after", "earlier":
		return true
	}
	return false
}

// back returns how many days ago, negative, the latest such day is that is at least so many days over.
func (s *scanner) back(d time.Weekday, least int) int {
	n := (int(s.today.Weekday()) - int(d) + 7) % 7
	for n < least {
		n += 7
	}
	return -n
}

// days adds the days from so many before today to so many before today, both negative or 0.
func (s *scanner) days(from, to int) {
	for n := to; n >= from; n-- {
		s.day(s.today.AddDate(0, 0, n))
	}
}

// day adds the dates of a day.
func (s *scanner) day(t time.Time) {
	begin, end := t.Add(wakes), t.AddDate(0, 0, 1).Add(-time.Nanosecond)
	if t.Equal(s.today) {
		end = s.now
		if end.Before(begin) {
			begin = end
		}
	}
	s.add(begin.UTC().Format(dayWord))
	s.add(end.UTC().Format(dayWord))
}

// month adds the month that is so many after this one.
func (s *scanner) month(n int) {
	s.add(s.today.AddDate(0, n, 1-s.today.Day()).Format(monthWord))
}

// monthNamed adds the latest such month that has begun by a day.
func (s *scanner) monthNamed(m time.Month, by time.Time) {
	if s.dated {
		return
	}
	year := by.Year()
	if m > by.Month() {
		year--
	}
	s.add(time.Date(year, m, 1, 0, 0, 0, 0, time.UTC).Format(monthWord))
}

func (s *scanner) add(date string) {
	if len(s.out) < maxDates && !slices.Contains(s.out, date) && !strings.Contains(s.text, date) {
		s.out = append(s.out, date)
	}
}
