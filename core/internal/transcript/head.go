package transcript

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/contextengine/contextengine/core"
)

// What the head of a transcript says is little: hosts hand over what fits, put lines of their own in front of it, and write their system prompt anew with
// every turn. The rule is:
//
//   - System messages at the beginning stand in front from then on. Those that did stay stored, and are found.
//   - Where the list begins with a known message, what is known from before it is not shown by the host, and stays in force.
//   - Where it begins with unknown messages and goes on with known ones, the unknown ones are put in front of the first known one. What is known from
//     before that stays in force, unless the host says that its list is whole: then it is superseded.
//
// A list that is nothing but what the conversation began with is a rewind, also where a line stands in it: whoever goes back there sends the same bytes as a
// host that keeps its first message, leaves out the rest, and says the second one anew. What was taken back must not go on being sent; what was only left out is still
// stored. A host that cuts shows something of the end with what it says anew. Where the conversation ends as it began, that says nothing of a list that is said to be
// whole: it is a rewind, too, unless the host calls the messages by the names of those at the end.
//
// What came in that way may be a line that the host puts in front of whatever it shows. Found again later, it says nothing about what stood behind it.

// Keys of core.Entry.Meta about a message's place in a transcript, beside that of who leads.
const (
	// MetaStray names, on a message that stood unknown at the head of a transcript, the place of the entry that it was put in front of.
	MetaStray = "stray"
	// MetaBefore names, on a message that came in the midst of what was known or in front of all of it, the place of the entry that it stands in front of: it
	// is found there when the view that says so was not published any more.
	MetaBefore = "before"
)

// PlaceName names the place of an entry.
func PlaceName(id core.SessionID, seq int64) string {
	return strconv.FormatInt(seq, 10) + "@" + id.String()
}

// claimStrays links the messages of a transcript that strays say: between the same known messages as before, or at the head, wherever the stray stands, or what
// the host calls the same, or was given: the engine may show a line behind the result that it stands in front of.
func claimStrays(strays map[int]string, host []string, match, linked []int, same func(k, i int) bool) {
	if len(strays) == 0 {
		return
	}
	next := func(i int) int {
		for _, k := range match[i:] {
			if k >= 0 {
				return k
			}
		}
		return math.MaxInt
	}
	prev, head := -1, true
	for i, fp := range host {
		switch {
		case match[i] >= 0:
			prev, head = match[i], false
		case linked[i] < 0:
			end := next(i)
			for _, k := range slices.Sorted(maps.Keys(strays)) {
				if strays[k] != fp || !head && (k <= prev || k >= end) && !same(k, i) {
					continue
				}
				linked[i] = k
				if k > prev && k < end {
					match[i], prev = k, k
				}
				delete(strays, k)
				break
			}
		}
	}
}
