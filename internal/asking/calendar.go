package asking

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// weekdayOf returns the day that a word in lower case names in English. Short forms are left alone: "sat" and "sun" are words.
func weekdayOf(w string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if w == strings.ToLower(d.String()) {
			return d, true
		}
	}
	return 0, false
}

// monthOf returns the month that a word in lower case names in English, in full or shortened. verb says that the word is another one more often.
func monthOf(w string) (m time.Month, verb, ok bool) {
	if w == "sept" {
		w = "sep"
	}
	if len(w) < 3 {
		return 0, false, false
	}
	for m = time.January; m <= time.December; m++ {
		if name := m.String(); strings.EqualFold(w, name) || strings.EqualFold(w, name[:3]) {
			return m, w == "may" || w == "march" || w == "mar", true
		}
	}
	return 0, false, false
}

// year reports whether a year stands at i; from is where the expression begins.
func (s *scanner) year(from, i int) bool {
	w := s.at(from, i)
	if w == "of" {
		w = s.at(from, i+1)
	}
	n, err := strconv.Atoi(w)
	return err == nil && n >= 1900 && n < 3000
}

// number reads a number in digits or words, and says how many words it has; about is how far off a vague one may be.
func (s *scanner) number(i int) (n, about, used int) {
	w := s.at(i, i)
	if w == "a" || w == "the" {
		switch s.at(i, i+1) {
		case "couple", "few":
			n, about, used = s.number(i + 1)
			return n, about, used + 1
		}
	}
	switch w {
	case "a", "an":
		return 1, 0, 1
	case "couple":
		if s.at(i, i+1) == "of" {
			return 2, 1, 2
		}
		return 2, 1, 1
	case "few":
		return 4, 2, 1
	}
	if k := slices.Index([]string{
		"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
	}, w); k >= 0 {
		return k + 1, 0, 1
	}
	if v, err := strconv.Atoi(w); err == nil && v > 0 && v < 1000 {
		return v, 0, 1
	}
	return 0, 0, 0
}

// ordinal reads a day of a month: "3", "3rd"; 0 when it is none.
func ordinal(w string) int {
	for _, suffix := range []string{"st", "nd", "rd", "th"} {
		w = strings.TrimSuffix(w, suffix)
	}
	n, err := strconv.Atoi(w)
	if err != nil || n < 1 || n > 31 {
		return 0
	}
	return n
}
