package conformance_test

import (
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// tableCourses are engines that show another transcript than the host has: how much of it is changed says what to do with the ones before.
func tableCourses() []broken {
	var out []broken
	told := func(name string, change func(lists [][]message.Message, now []message.Message) []message.Message) {
		out = append(out, caughtBy("contract.course", name, recalling(nil), func(w *wrongEngine) {
			lists := map[core.SessionID][][]message.Message{}
			w.before = func(_ string, r any) {
				if r, ok := r.(*core.AssembleRequest); ok && r.Transcript != nil && r.Transcript.Whole {
					now := slices.Clone(r.Transcript.Messages)
					r.Transcript = &core.Transcript{Messages: change(lists[r.Session], slices.Clone(now)), Whole: true}
					lists[r.Session] = append(lists[r.Session], now)
				}
			}
		}))
	}
	told("messages stand in the order in which they came", func(lists [][]message.Message, now []message.Message) []message.Message {
		came := slices.Concat(lists...)
		at := func(m message.Message) int {
			if i := slices.IndexFunc(came, func(o message.Message) bool { return sameText(m, o) }); i >= 0 {
				return i
			}
			return len(came)
		}
		slices.SortStableFunc(now, func(a, b message.Message) int { return at(a) - at(b) })
		return now
	})
	told("what comes back stands behind what is new", func(lists [][]message.Message, now []message.Message) []message.Message {
		if len(lists) == 0 {
			return now
		}
		last, came := lists[len(lists)-1], slices.Concat(lists...)
		back := func(m message.Message) int {
			is := func(o message.Message) bool { return sameText(m, o) }
			if slices.ContainsFunc(came, is) && !slices.ContainsFunc(last, is) {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(now, func(a, b message.Message) int { return back(a) - back(b) })
		return now
	})
	told("what says the same is left out", func(_ [][]message.Message, now []message.Message) []message.Message {
		var once []message.Message
		for _, m := range now {
			if !slices.ContainsFunc(once, func(o message.Message) bool { return sameText(m, o) }) {
				once = append(once, m)
			}
		}
		return once
	})
	told("a message that was deleted stays", func(lists [][]message.Message, now []message.Message) []message.Message {
		if len(lists) == 0 {
			return now
		}
		last := lists[len(lists)-1]
		for i := 1; i < len(last)-1; i++ {
			before := slices.IndexFunc(now, func(m message.Message) bool { return sameText(m, last[i-1]) })
			if before >= 0 && before+1 < len(now) && sameText(now[before+1], last[i+1]) {
				return slices.Insert(now, before+1, last[i])
			}
		}
		return now
	})
	told("a message that was moved stays where it was", func(lists [][]message.Message, now []message.Message) []message.Message {
		if len(lists) == 0 {
			return now
		}
		last := lists[len(lists)-1]
		if len(now) < len(last) {
			return now
		}
		for _, m := range last {
			if !slices.ContainsFunc(now[:len(last)], func(o message.Message) bool { return sameText(m, o) }) {
				return now
			}
		}
		return append(slices.Clone(last), now[len(last):]...)
	})
	return out
}
