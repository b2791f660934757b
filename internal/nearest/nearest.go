// Package nearest finds the known name that a mistyped one was most likely meant to be. Start with Of.
package nearest

import "strings"

// longest is the length, in runes, beyond which a name is not compared: nobody mistypes one that long.
const longest = 64

// Of returns the name of known that is closest to name, and whether it is close enough to be worth suggesting: at
// most a third of its letters differ. Case does not count. Of equally close names the first one wins.
func Of(name string, known []string) (string, bool) {
	best, distance := "", longest
	for _, k := range known {
		if d := levenshtein(strings.ToLower(name), strings.ToLower(k)); d < distance && d <= max(1, len(k)/3) {
			best, distance = k, d
		}
	}
	return best, best != ""
}

// levenshtein returns the number of insertions, deletions and replacements that make a out of b.
func levenshtein(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s) > longest || len(t) > longest {
		return longest
	}
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range s {
		diagonal := row[0]
		row[0] = i + 1
		for j, u := range t {
			replace := diagonal
			if r != u {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(t)]
}
