package transcript

import (
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Step is one entry of the new path: a known one (index into Plan.Hard) or a new message (index into Plan.Host); the other is -1.
type Step struct{ Known, Host int }

// links are the messages of a host's transcript that count. match[i] is the known entry that host message i is, in the same order as before, or -1;
// linked holds besides those that stand elsewhere now.
type links struct {
	host, match, linked []int
	// own says which of them show a known entry in the engine's own words, and are never new; same of which the host says that they are what they are linked with.
	own, same []bool
	// gap says that known entries right before a message are only not shown; fillers are the roles of the host's own lines there, and, behind the last, of
	// those at the end.
	gap     []bool
	fillers [][]message.Role
	// roles are those of the known entries; strays say which of them are no anchors.
	roles  []message.Role
	strays []bool
	// The first output host messages are what the engine returned; the first reach known entries are in force whether they are among them or not.
	output, reach int
}

// first returns the host message from which on the transcript is compared with what is known, -1 when they have nothing in common. What stands in front of
// it is the transcript's head.
func (l *links) first(t *core.Transcript) int {
	first := slices.IndexFunc(l.match, func(k int) bool { return k >= 0 && !l.strays[k] })
	if first != 0 || t.Whole {
		return first
	}
	// One known message, then a gap: the line may be the host's, or be kept at the top of a list that was cut. As many messages for as many that are
	// missing are an edit, and so are known ones that stood elsewhere.
	next := 1 + slices.IndexFunc(l.match[1:], func(k int) bool { return k >= 0 && !l.strays[k] })
	if next == 0 || l.match[next] == l.match[0]+1 {
		return first
	}
	var missing int
	for k := l.match[0] + 1; k < l.match[next]; k++ {
		if !l.strays[k] {
			missing++
		}
	}
	elsewhere := slices.ContainsFunc(l.linked[1:next], func(k int) bool { return k >= 0 && !l.strays[k] })
	if missing == 0 || elsewhere || missing == next-1 && len(l.fillers[next]) == 0 {
		return first
	}
	return next
}

// saidAgain takes messages for new ones that say what an entry said which the host does not show, of those in front of the first one it shows: two said the
// same. Where the host shows all of those it has put them elsewhere, and so it has what it knows by one name.
func (l *links) saidAgain(first, hidden int) {
	top := slices.IndexFunc(l.match, func(k int) bool { return k >= 0 && !l.strays[k] })
	if top >= 0 && first == top+1 && !l.gap[first] {
		first, hidden = top, l.match[top] // nothing says that something was left out between the two
	}
	var again []int
	left, shown := 0, make([]bool, len(l.strays))
	for _, k := range l.match {
		if k >= 0 {
			shown[k] = true
		}
	}
	for k := range hidden {
		if !l.strays[k] && !shown[k] {
			left++
		}
	}
	for i := first; i < len(l.host); i++ {
		if k := l.linked[i]; k >= 0 && k < hidden && l.match[i] < 0 && !l.strays[k] {
			if l.same[i] {
				left--
			} else {
				again = append(again, i)
			}
		}
	}
	if len(again) == left {
		return
	}
	for _, i := range again {
		l.linked[i] = -1
	}
}

// Course is how a path goes on after a transcript was matched with it.
type Course struct {
	Order []Step
	// Front is the number of leading steps that the host does not show, because it compacted them away itself; -1 when it did not.
	Front int
	// Superseded is how many known entries at the beginning a whole list has others for.
	Superseded int
	// Strays are host messages that go in front of a known entry each, At, in the order given.
	Strays, At []int
}

// compose decides the new path.
func compose(l links, t *core.Transcript) Course {
	c := Course{Front: -1}
	known := len(l.roles)
	first := l.first(t)
	summary := len(l.host) > 0 && t.Messages[l.host[0]].Type == message.CompactionSummary
	if summary && l.gap[0] && l.match[0] >= 0 {
		summary = false // it was said before, and a note of the engine's stands in front of it
	}
	hidden := 0 // how many known entries the host does not show any more, but which are in force
	switch {
	case first >= 0:
		hidden = l.match[first]
	case summary, len(l.gap) > 0 && l.gap[0] && len(l.fillers[0]) == 0: // the engine itself said that what is in front is only not shown
		hidden = known
	}
	l.saidAgain(max(first, 0), hidden)
	begin := 0
	// What is known of the head stays where it is, unless it stands in another order now.
	if first > 0 && !summary && slices.IsSorted(append(slices.DeleteFunc(slices.Clone(l.linked[:first]), func(k int) bool { return k < 0 }), hidden)) {
		for i := range first {
			if l.linked[i] < 0 && !l.own[i] {
				at := hidden
				if next := slices.IndexFunc(l.linked[i:first], func(k int) bool { return k >= 0 }); next >= 0 {
					at = l.linked[i+next]
				}
				c.Strays, c.At = append(c.Strays, i), append(c.At, at)
			}
		}
		begin = first
		if t.Whole && len(c.Strays) > 0 && hidden > 0 {
			c.Superseded = hidden
			begin, hidden, c.Strays = 0, 0, nil
		}
	}
	// With nothing in common it is a new beginning: what was before stays stored, but is not part of this conversation.
	again := make(map[int]bool)
	for _, k := range l.linked[begin:] {
		again[k] = true
	}
	show := func(from, to int) {
		for k := from; k < to; k++ {
			if !again[k] {
				c.Order = append(c.Order, Step{Known: k, Host: -1})
			}
		}
	}
	show(0, hidden)
	if summary {
		c.Front = len(c.Order)
	}
	last, gap := -1, false
	for i := begin; i <= len(l.host); i++ {
		gap = gap || i < len(l.host) && l.gap[i]
		if i < len(l.host) && l.match[i] >= 0 {
			if last >= 0 {
				for k := last + 1; k < l.match[i]; k++ {
					if gap || k < l.reach && !l.strays[k] { // a line that came since stands where the host shows it
						show(k, k+1)
					}
				}
			}
			last, gap = l.match[i], false
		} else if last >= 0 {
			if i >= l.output && last+1 < l.reach && !slices.ContainsFunc(l.match[i:], func(k int) bool { return k >= 0 }) {
				show(last+1, l.reach)
				last = l.reach - 1
			}
			// A line of the host's stands for the known message that it took the place of.
			for _, role := range l.fillers[i] {
				if last+1 < known && l.roles[last+1] == role {
					last++
					show(last, last+1)
				}
			}
		}
		switch {
		case i == len(l.host):
		case l.linked[i] >= 0:
			c.Order = append(c.Order, Step{Known: l.linked[i], Host: -1})
		case !l.own[i]:
			c.Order = append(c.Order, Step{Known: -1, Host: i})
		}
	}
	return c
}
