package lexical

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dates returns the months ("2023-05") and days ("2023-05-20") that a text names in English, as in "May 20, 2023" or "the 20th of May 2023".
// Dates written in digits, year first, need no help: they are terms as they stand.
func dates(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r > 'z' || !isAlnum(byte(r))
	})
	number := func(i, lo, hi int) int {
		if i < 0 || i >= len(words) {
			return 0
		}
		w := words[i]
		for _, suffix := range []string{"st", "nd", "rd", "th"} {
			w = strings.TrimSuffix(w, suffix)
		}
		n, err := strconv.Atoi(w)
		if err != nil || n < lo || n > hi {
			return 0
		}
		return n
	}
	var out []string
	for i, w := range words {
		month := monthOf(w)
		if month == 0 {
			continue
		}
		before := i - 1
		if before >= 0 && words[before] == "of" {
			before--
		}
		day, year := number(before, 1, 31), number(i+1, 1900, 2999)
		if n := number(i+1, 1, 31); n > 0 {
			day, year = n, number(i+2, 1900, 2999)
		}
		if year == 0 {
			continue
		}
		out = append(out, fmt.Sprintf("%04d-%02d", year, month))
		if day > 0 {
			out = append(out, fmt.Sprintf("%04d-%02d-%02d", year, month, day))
		}
	}
	return out
}

// nextDay is what the day after one that a query names counts: what happens on a day is told on the next as often ("yesterday I went bowling").
const nextDay = 0.5

// dayAfter returns the day after one that dates returned, "" after a month.
func dayAfter(date string) string {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return ""
	}
	return day.AddDate(0, 0, 1).Format(time.DateOnly)
}

// monthOf returns the number of an English month, 0 when the word is none.
func monthOf(word string) int {
	if len(word) < 3 {
		return 0
	}
	for i, name := range []string{
		"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
	} {
		if word == name || len(word) <= 4 && strings.HasPrefix(name, word) {
			return i + 1
		}
	}
	return 0
}
