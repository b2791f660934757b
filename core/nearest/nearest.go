// Package nearest finds the known name that a mistyped one was most likely meant to be. Start with Of.
package nearest

import (
	"slices"
	"strings"
)

// longest is the length, in runes, beyond which a name is not compared: nobody mistypes one that long.
const longest = 64

// Of returns the name of known that is closest to name, and whether it is close enough to be worth suggesting: at
// most a third of its letters differ. Case does not count. Of equally close names the first one wins.
func Of(name string, known []string) (string, bool) {
	near := func(k string) bool {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		return d < longest && d <= max(1, len(k)/3)
	}
	best := To(name, slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !near(k) }))
	return best, best != ""
}

// To returns the name of known that is closest to name, however far that is; "" when none is known. Case does not count. Of equally close names the first one wins.
func To(name string, known []string) string {
	best, least := "", -1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); least < 0 || d < least {
			best, least = k, d
		}
	}
	return best
}

// distance returns the number of insertions, deletions, replacements and swaps of neighbours that make a out of b: Levenshtein's
// measure, with the commonest slip of the keyboard counted once.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s) > longest || len(t) > longest {
		return longest
	}
	before, row, next := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range s {
		next[0] = i + 1
		for j, u := range t {
			replace := row[j]
			if r != u {
				replace++
			}
			next[j+1] = min(replace, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && r == t[j-1] && s[i-1] == u {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(t)]
}
