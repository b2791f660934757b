package engine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// ownership says what became of numbered messages under the history rules, which drop, merge, move and make messages.
type ownership struct {
	// of is the message that each number became part of, -1 when a rule dropped it; first is the number that begins each message, -1 for one that a rule
	// made.
	of, first []int
	// all lists the numbers by message: those of message i are all[from[i]:from[i+1]].
	all, from []int
	room      []int
}

// read finds the numbers in the messages' Entry. What a rule dropped follows what stood before it.
func (o *ownership) read(out []message.Message, numbers []string) {
	n, m := len(numbers), len(out)
	size := 2*n + 2*m + 2
	o.room = slices.Grow(o.room[:0], size)[:size]
	o.of, o.all, o.first, o.from = o.room[:n], o.room[n:2*n], o.room[2*n:2*n+m], o.room[2*n+m:]
	for i := range o.of {
		o.of[i] = -1
	}
	next := 0
	for i := range out {
		o.first[i] = -1
		// Most messages are as they were, one behind the other: the very same text is their number.
		if next < n && out[i].Entry == numbers[next] {
			o.of[next], o.first[i] = i, next
			next++
			continue
		}
		for rest, more := out[i].Entry, true; more; {
			var number string
			number, rest, more = strings.Cut(rest, ",")
			k, err := strconv.Atoi(number)
			if err != nil {
				continue
			}
			o.of[k], next = i, k+1
			if o.first[i] < 0 {
				o.first[i] = k
			}
		}
	}
	// The sizes are counted one place further, so that they become beginnings while the numbers are put in their places.
	clear(o.from)
	for i := range o.of {
		if o.of[i] < 0 && i > 0 {
			o.of[i] = o.of[i-1]
		}
		if at := o.of[i]; at >= 0 {
			o.from[at+2]++
		}
	}
	for i := 2; i < len(o.from); i++ {
		o.from[i] += o.from[i-1]
	}
	for k, at := range o.of {
		if at >= 0 {
			o.all[o.from[at+1]] = k
			o.from[at+1]++
		}
	}
}

// members lists what became message i, in the order in which it stood before.
func (o *ownership) members(i int) []int { return o.all[o.from[i]:o.from[i+1]] }
