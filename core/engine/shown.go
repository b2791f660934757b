package engine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// shownSet is the ids and the fingerprints of items that are not hidden. It is never written to once it is made: a retriever that was left behind may
// still ask it.
type shownSet struct {
	ids, prints map[string]struct{}
}

func newShownSet(items []item) *shownSet {
	set := &shownSet{ids: make(map[string]struct{}, len(items)), prints: make(map[string]struct{}, len(items))}
	for i := range items {
		if it := &items[i]; !it.hidden() {
			set.ids[it.entry.ID], set.prints[it.entry.Fingerprint] = struct{}{}, struct{}{}
		}
	}
	return set
}

// newShown is how many items may have come since the set of the others was made.
const newShown = 128

// shownSets returns two sets that together hold the frame's items. The one of most of them is kept from call to call: looking up ids and fingerprints of
// a thousand items anew took 0.16 ms of every turn, and 50 KB.
func (f *frame) shownSets() [2]*shownSet {
	s := f.s
	if len(f.items) != len(s.items) { // there was a step since
		return [2]*shownSet{newShownSet(f.items), newShownSet(nil)}
	}
	if s.most == nil || len(s.items)-s.inMost > newShown {
		s.most, s.inMost = newShownSet(s.items), len(s.items)
	}
	return [2]*shownSet{s.most, newShownSet(s.items[s.inMost:])}
}

// inWindow returns the test for entries whose content the prompt shows: what is masked may be recalled.
func (f *frame) inWindow(sets [2]*shownSet) func(id string) bool {
	lead := make(map[string]struct{}, len(f.s.lead)+1)
	for i := range f.s.lead {
		lead[f.s.lead[i].entry.ID] = struct{}{}
	}
	if p := f.s.pinned; p != nil {
		lead[p.entry.ID] = struct{}{}
	}
	stubs := f.v.Stubs // nobody writes to those of a view that was made
	return func(id string) bool {
		for _, set := range sets {
			if _, ok := set.ids[id]; ok {
				return stubs[id].Kind != window.Masked
			}
		}
		_, ok := lead[id]
		return ok
	}
}

// seen holds the candidates' fingerprints that the window shows.
func (f *frame) seen(sets [2]*shownSet, candidates []core.Candidate) map[string]bool {
	seen := make(map[string]bool, 2*len(candidates))
	if p := f.s.pinned; p != nil {
		seen[p.entry.Fingerprint] = true
	}
	for i := range candidates {
		for _, fp := range []string{candidates[i].Entry.Fingerprint, f.wordsOf(&candidates[i].Entry)} {
			for _, set := range sets {
				if _, ok := set.prints[fp]; ok {
					seen[fp] = false // it may be masked
				}
			}
		}
	}
	if len(seen) == 0 {
		return seen
	}
	for n := range f.visible {
		it := f.item(n)
		if _, ok := seen[it.entry.Fingerprint]; ok && f.v.Stubs[it.entry.ID].Kind != window.Masked {
			seen[it.entry.Fingerprint] = true
		}
	}
	return seen
}

// wordsOf is the fingerprint of what another session's entry says in words alone, as a subagent hands it back; empty where there is no more to the entry.
func (f *frame) wordsOf(entry *core.Entry) string {
	said := entry.Message.Text()
	if entry.SessionID() == f.s.id || window.Blank(said) || len(entry.Message.Parts) < 2 {
		return ""
	}
	return message.Fingerprint(message.New(entry.Role, said))
}

// ownership says what became of numbered messages under the history rules, which drop, merge, move and make messages.
type ownership struct {
	// of is the message that each number became part of, or follows when a rule dropped it, -1 where nothing stands before; first is the number that begins each message, -1 for one that a rule
	// made.
	of, first []int
	// all lists the numbers by message: those of message i are all[from[i]:from[i+1]].
	all, from []int
	room      []int
	// gone are the numbers that a rule dropped, in order: of says what they follow.
	gone []int
}

// dropped reports whether a rule dropped a number.
func (o *ownership) dropped(n int) bool {
	_, is := slices.BinarySearch(o.gone, n)
	return is
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
	o.gone = o.gone[:0]
	for i := range o.of {
		if o.of[i] < 0 {
			if o.gone = append(o.gone, i); i > 0 {
				o.of[i] = o.of[i-1]
			}
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
