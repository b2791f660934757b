package inventory

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting/exact"
)

// Lines returns the labelled sentences that cost at most room tokens together, rules first, in the order in which they were said. What text says
// already is left out.
func (v *Inventory) Lines(room int, text string, count core.TokenCounter) []string {
	ranked := make([]int, len(v.lines))
	for i := range ranked {
		ranked[i] = i
	}
	slices.SortStableFunc(ranked, func(a, b int) int { return cmp.Compare(v.lines[b].rank, v.lines[a].rank) })
	var chosen []int
	for _, i := range ranked {
		if room < 8 {
			break
		}
		l := v.lines[i]
		if strings.Contains(text, l.text) {
			continue
		}
		if n := count(l.label+": "+l.text) + 1; n <= room {
			room -= n
			chosen = append(chosen, i)
		}
	}
	slices.Sort(chosen)
	var out []string
	for _, i := range chosen {
		out = append(out, v.lines[i].label+": "+v.lines[i].text)
	}
	return out
}

// Row returns one line with the words that cost at most room tokens together, the most wanted first, and their number. What text says already
// is left out; "" when nothing is left.
func (v *Inventory) Row(room int, text string, count core.TokenCounter) (string, int) {
	room -= count(WordsRow)
	var out []string
	for _, w := range v.ranked() {
		if room < 2 {
			break
		}
		if strings.Contains(text, w.text) {
			continue
		}
		n := count(" " + w.text)
		if n > room {
			continue
		}
		room -= n
		out = append(out, w.text)
		text += " " + w.text
	}
	if len(out) == 0 {
		return "", 0
	}
	return WordsRow + strings.Join(out, " "), len(out)
}

// ranked returns the words, the most wanted first.
func (v *Inventory) ranked() []*word {
	ranked := slices.Clone(v.order)
	score := make(map[*word]float64, len(ranked))
	for _, w := range ranked {
		score[w] = w.score(v.steps)
	}
	slices.SortStableFunc(ranked, func(a, b *word) int { return cmp.Compare(score[b], score[a]) })
	return ranked
}

// score says how likely a word is needed later.
func (w *word) score(steps int) float64 {
	n := 3*float64(w.short) + 2*float64(w.args) + 2*float64(w.user) + float64(w.said) + 0.5*float64(w.results) + 0.1*float64(min(w.keys, 5))
	s := math.Log1p(n)
	if w.old {
		s += 2 * w.carried
	}
	if w.last > 0 {
		s += 2 * float64(w.last) / float64(max(steps, 1))
	}
	d := digits(w.text)
	if d >= 4 && (w.kind == exact.Symbol || w.kind == exact.Path || d >= 6) {
		s += 0.7 // nobody guesses it
	}
	s /= 1 + 0.025*float64(len(w.text))
	switch w.kind {
	case exact.Weak:
		s /= 3
	case exact.Number:
		if w.user+w.args+w.said == 0 && !w.old && d < 6 {
			s /= 3 // line numbers, sizes, times
		}
		if d < 4 {
			s /= 3
		}
	}
	if w.stays {
		s /= 4
	}
	return s
}

// digits counts the digits of a word.
func digits(word string) int {
	n := 0
	for i := range len(word) {
		if word[i] >= '0' && word[i] <= '9' {
			n++
		}
	}
	return n
}
