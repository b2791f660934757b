package asking

import (
	"strings"
	"time"
)

// expression adds what the expression that begins at word i means, and returns how many words it has; 0 when there is none.
func (s *scanner) expression(i int) int {
	switch w := s.at(i, i); w {
	case "today":
		s.days(0, 0)
		return 1
	case "yesterday":
		if s.at(i-1, i-1) == "before" {
			s.days(-2, -2)
		} else {
			s.days(-1, -1)
		}
		return 1
	case "this":
		return s.this(i)
	case "last", "past", "previous":
		return s.last(i)
	case "on":
		if d, ok := weekdayOf(s.at(i, i+1)); ok && s.at(i, i+2) != "last" {
			s.days(s.back(d, 0), s.back(d, 0))
			return 2
		}
	case "in", "during":
		return s.in(i)
	}
	if n := s.ago(i); n > 0 {
		return n
	}
	if n := s.dayOfMonth(i); n > 0 {
		return n
	}
	return s.dayOfWeek(i)
}

// this reads "this morning", "this week", "this Tuesday", "this past Tuesday".
func (s *scanner) this(i int) int {
	next := s.at(i, i+1)
	switch next {
	case "morning", "afternoon", "evening":
		s.days(0, 0)
	case "week":
		s.days(s.back(time.Monday, 0), 0)
	case "weekend":
		if s.back(time.Saturday, 0) < -1 {
			return 2 // it is ahead
		}
		s.days(s.back(time.Saturday, 0), 0)
	case "month":
		s.add(s.today.Format(monthWord))
	case "year":
		s.add(s.today.Format(yearWord))
	case "past":
		return 1 + s.last(i+1)
	default:
		d, ok := weekdayOf(next)
		if !ok || s.back(d, 0) < s.back(time.Monday, 0) {
			return 0 // no day, or one that is ahead
		}
		s.days(s.back(d, 0), s.back(d, 0))
	}
	return 2
}

// last reads "last week", "last Tuesday", "last May", "the past three days".
func (s *scanner) last(i int) int {
	next := s.at(i, i+1)
	rolling := s.at(i, i) == "past"
	switch next {
	case "night":
		s.days(-1, -1)
	case "week":
		monday := s.back(time.Monday, 0)
		switch d, n := s.weekdayBehind(i + 2); {
		case n > 0: // "last week on Tuesday"
			at := monday - 7 + (int(d)+6)%7
			s.days(at, at)
			return 2 + n
		case rolling:
			s.days(-7, 0)
		default:
			s.days(monday-7, monday-1)
		}
	case "weekend":
		saturday := s.back(time.Saturday, 2) // it is over
		s.days(saturday, saturday+1)
	case "month":
		s.month(-1)
		if rolling {
			s.month(0)
		}
	case "year":
		s.add(s.today.AddDate(-1, 1-int(s.today.Month()), 1-s.today.Day()).Format(yearWord))
	default:
		if d, ok := weekdayOf(next); ok {
			s.days(s.back(d, 1), s.back(d, 1))
			return 2
		}
		if m, _, ok := monthOf(next); ok && !s.year(i, i+2) {
			s.monthNamed(m, s.today.AddDate(0, 0, -s.today.Day()))
			return 2
		}
		n, _, used := s.number(i + 1)
		if used == 0 || !s.stretch(n, s.at(i, i+1+used)) {
			return 0
		}
		return 2 + used
	}
	return 2
}

// stretch adds the last n days, weeks or months.
func (s *scanner) stretch(n int, unit string) bool {
	switch strings.TrimSuffix(unit, "s") {
	case "day":
	case "week":
		n *= 7
	case "month":
		for k := 0; k <= n && n <= 6; k++ {
			s.month(-k)
		}
		return n <= 6
	default:
		return false
	}
	if n >= maxDates {
		return false
	}
	s.days(-n, 0)
	return true
}

// in reads "in May", "during late May".
func (s *scanner) in(i int) int {
	at := i + 1
	switch s.at(i, at) {
	case "early", "mid", "late":
		at++
	}
	m, _, ok := monthOf(s.at(i, at))
	if !ok || s.year(i, at+1) {
		return 0
	}
	s.monthNamed(m, s.today)
	return at + 1 - i
}

// ago reads "two weeks ago", "a couple of days ago".
func (s *scanner) ago(i int) int {
	n, about, used := s.number(i)
	if used == 0 || s.at(i, i+used+1) != "ago" {
		return 0
	}
	switch strings.TrimSuffix(s.at(i, i+used), "s") {
	case "hour":
		if n <= 48 {
			s.add(s.now.Add(-time.Duration(n) * time.Hour).UTC().Format(dayWord))
		}
	case "day":
		s.days(-n-about, -n+about)
	case "week": // nobody counts days then
		if about < 2 {
			s.days(-7*n-3, -7*n+3)
		}
	case "month":
		for k := n - about; k <= n+about; k++ {
			s.month(-k)
		}
	case "year":
		if about > 0 {
			break
		}
		s.add(s.today.AddDate(-n, 1-int(s.today.Month()), 1-s.today.Day()).Format(yearWord))
	default:
		return 0
	}
	return used + 2
}

// dayOfMonth reads "3 May", "the 3rd of May", "May 3". With a year behind it, it stands for itself.
func (s *scanner) dayOfMonth(i int) int {
	day, used := ordinal(s.at(i, i)), 0
	var month time.Month
	if m, verb, ok := monthOf(s.at(i, i)); ok {
		day, month, used = ordinal(s.at(i, i+1)), m, 2
		if verb && !s.words[i].capital && s.at(i-1, i-1) != "on" {
			return 0
		}
	} else if day > 0 {
		used = 2
		if s.at(i, i+1) == "of" {
			used = 3
		}
		if month, _, ok = monthOf(s.at(i, i+used-1)); !ok {
			return 0
		}
	}
	if day == 0 || month == 0 {
		return 0
	}
	if s.year(i, i+used) {
		return used + 1
	}
	for year := s.today.Year(); !s.dated && year > s.today.Year()-2; year-- {
		t := time.Date(year, month, day, 0, 0, 0, 0, s.today.Location())
		if t.Day() == day && !t.After(s.today) {
			s.day(t)
			return used
		}
	}
	return used
}

// dayOfWeek reads "Tuesday last week", "Tuesday of last week".
func (s *scanner) dayOfWeek(i int) int {
	d, ok := weekdayOf(s.at(i, i))
	if !ok {
		return 0
	}
	at := i + 1
	if s.at(i, at) == "of" {
		at++
	}
	if s.at(i, at) != "last" || s.at(i, at+1) != "week" {
		return 0
	}
	n := s.back(time.Monday, 0) - 7 + (int(d)+6)%7
	s.days(n, n)
	return at + 2 - i
}

// weekdayBehind reads a day of the week with or without "on", and says how many words it has.
func (s *scanner) weekdayBehind(i int) (time.Weekday, int) {
	n := 1
	if s.at(i-1, i) == "on" {
		n = 2
	}
	d, ok := weekdayOf(s.at(i-1, i+n-1))
	if !ok {
		return 0, 0
	}
	return d, n
}
