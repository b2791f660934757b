package stats

import (
	"fmt"
	"math"
	"strconv"
)

// Fewest is the number of clusters (conversations, or sessions of each arm) below which a comparison decides nothing. With fewer, intervals rest on what can hardly
// be known: how much conversations differ.
const Fewest = 5

// Decision is what a comparison shows.
type Decision string

// The decisions, from the weakest.
const (
	// TooFew: there are fewer than Fewest clusters.
	TooFew Decision = "too few"
	// Same: nothing differs anywhere.
	Same Decision = "same"
	// NotShown: the interval holds zero.
	NotShown Decision = "not shown"
	// Differs: the interval leaves out zero, and neither direction is better.
	Differs Decision = "differs"
	// Better and Worse: the interval leaves out zero, and the second of the two is better, or worse.
	Better Decision = "better"
	Worse  Decision = "worse"
)

// Shown reports whether a difference is shown.
func (d Decision) Shown() bool { return d == Differs || d == Better || d == Worse }

// Measure says what a figure is: how it is written, which direction is better, and what range it cannot leave.
type Measure struct {
	// Unit is "share" (0 to 1, told in points of a hundred), "tokens", "ms", or "" for a plain number.
	Unit string
	// Better is 1 where more is better, -1 where less is, 0 where neither is.
	Better int
	// Low and High are the range; both 0 means that there is none.
	Low, High float64
}

// Share is a share of 0 to 1.
func Share(better int) Measure { return Measure{Unit: "share", Better: better, High: 1} }

// Amount is a number that is not negative.
func Amount(unit string, better int) Measure {
	return Measure{Unit: unit, Better: better, High: math.Inf(1)}
}

// MeasureOf is the measure of figures of which nothing is known but what they are: those that lie in 0 to 1 stay there, those that are not negative stay so.
func MeasureOf(values ...[]float64) Measure {
	low, high := math.Inf(1), math.Inf(-1)
	for _, list := range values {
		for _, v := range list {
			low, high = min(low, v), max(high, v)
		}
	}
	switch {
	case low >= 0 && high <= 1:
		return Measure{High: 1}
	case low >= 0:
		return Amount("", 0)
	}
	return Measure{}
}

func (m Measure) bounded() bool { return m.Low != 0 || m.High != 0 }

// Mean moves the ends of a mean's interval into the range.
func (m Measure) Mean(i Interval) Interval {
	if m.bounded() {
		return i.Within(m.Low, m.High)
	}
	return i
}

// Verdict is what a comparison of two shows, in numbers and in words. The words say no more than the numbers.
type Verdict struct {
	// Effect is what the second has more than the first, its interval within what is possible.
	Effect   Interval `json:"effect"`
	Decision Decision `json:"decision"`
	Text     string   `json:"text"`
}

// Judge is the one rule for verdicts. d is what "to" has more than "from":
//
//	too few to tell (3 conversations, 5 are needed): 70.0 points more
//	no difference: the same everywhere
//	no difference shown (0.4 points, 95 % -0.9 to 1.7)
//	B better by 3.1 points, 95 % 1.2 to 5.0
//	B higher by 120 tokens, 95 % 80 to 160
//
// What is decided is decided by the figures as they are written: an end that is written 0 is zero.
func (m Measure) Judge(from, to string, d Interval) Verdict {
	if m.bounded() {
		d = d.Within(m.Low-m.High, m.High-m.Low)
	}
	v := Verdict{Effect: d, Decision: m.decide(d)}
	ends := fmt.Sprintf("%s, 95 %% %s to %s", m.Write(d.Mean), m.number(d.Low), m.number(d.High))
	switch v.Decision {
	case TooFew:
		more := m.more(d.Mean)
		if d.Zero() {
			more = "the same so far"
		}
		v.Text = fmt.Sprintf("too few to tell (%s, %d are needed): %s", clusters(d), Fewest, more)
		if d.N == 0 {
			v.Text = "nothing to compare"
		}
	case Same:
		v.Text = "no difference: the same everywhere"
	case NotShown:
		v.Text = "no difference shown (" + ends + ")"
	default:
		named, word := to, "higher"
		if d.Mean < 0 != (m.Better < 0) {
			named = from
		}
		if m.Better != 0 {
			word = "better"
		}
		if d.Mean < 0 {
			ends = fmt.Sprintf("%s, 95 %% %s to %s", m.Write(-d.Mean), m.number(-d.High), m.number(-d.Low))
		}
		v.Text = fmt.Sprintf("%s %s by %s", named, word, ends)
	}
	return v
}

func (m Measure) decide(d Interval) Decision {
	low, high := m.round(d.Low), m.round(d.High)
	switch {
	case d.N == 0 || d.Clusters < Fewest || d.Basis == "":
		return TooFew
	case d.Zero():
		return Same
	case low <= 0 && high >= 0:
		return NotShown
	case m.Better == 0:
		return Differs
	case (d.Mean > 0) == (m.Better > 0):
		return Better
	}
	return Worse
}

// more says in which direction a difference goes.
func (m Measure) more(v float64) string {
	switch r := m.round(v); {
	case r > 0:
		return m.Write(v) + " more"
	case r < 0:
		return m.Write(-v) + " less"
	}
	return "about the same"
}

func clusters(d Interval) string {
	noun := "conversation"
	if d.Basis == OverSessions {
		noun = "session"
	}
	if d.Clusters != 1 {
		noun += "s"
	}
	if d.Basis == OverSessions {
		noun += " in the smaller arm"
	}
	return fmt.Sprintf("%d %s", d.Clusters, noun)
}

// round gives a figure the precision that it is written with.
func (m Measure) round(v float64) float64 {
	switch m.Unit {
	case "share":
		return math.Round(1000*v) / 1000
	case "tokens":
		return math.Round(v)
	}
	return math.Round(1000*v) / 1000
}

// number writes a figure without its unit.
func (m Measure) number(v float64) string {
	v = m.round(v)
	if v == 0 {
		v = 0 // never "-0"
	}
	if m.Unit == "share" {
		return Points(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Write writes a difference with its unit.
func (m Measure) Write(v float64) string {
	switch m.Unit {
	case "share":
		return m.number(v) + " points"
	case "":
		return m.number(v)
	}
	return m.number(v) + " " + m.Unit
}

// Points writes a share in points of a hundred, with one decimal.
func Points(share float64) string {
	v := math.Round(1000*share) / 10
	if v == 0 {
		v = 0 // never "-0.0"
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
