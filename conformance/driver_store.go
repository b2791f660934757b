package conformance

import (
	"fmt"
	"strings"
)

// compareStored compares, for every message, how often it is stored with how often it was handed over, and describes
// the first one for which wrong holds.
func (d *driver) compareStored(wrong func(have, want int) bool) string {
	for _, t := range d.tracks {
		if t == nil {
			continue
		}
		have := d.storedWires(t)
		want := map[string]int{}
		for _, it := range t.stored {
			want[it.wire]++
		}
		least := func(wire string) int {
			if d.plan.Managed {
				// A host's transcript may show what a turn repeats: then both are the same message.
				return min(want[wire], 1)
			}
			return want[wire]
		}
		for _, it := range t.stored {
			if n := have[it.wire]; len(it.marks) > 0 && (wrong(n, least(it.wire)) && n < least(it.wire) || wrong(n, want[it.wire]) && n > want[it.wire]+t.loose[it.wire]) {
				return fmt.Sprintf("session %s: a message handed over %d times is stored %d times: %s", t.id, want[it.wire], n, shorten(it.wire))
			}
		}
	}
	return ""
}

func shorten(s string) string {
	const enough = 200
	if len(s) <= enough {
		return s
	}
	return strings.ToValidUTF8(s[:enough], "") + "…"
}
