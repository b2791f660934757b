package conformance

import (
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// recognisesChanged asks for entries by what they said before they were changed, emptied and deleted, and by what they say now.
func (r *storeRun) recognisesChanged(s core.Recogniser) string {
	for who := range 3 {
		id := sessionOf(who)
		b := r.make(batch{Entries: []entrySpec{{Who: who, Size: 5}, {Who: who, Size: 5}, {Who: who, Size: 5}}})
		if _, err := r.store.Append(r.ctx(), cloneEntries(b)); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		// recognised looks for an entry by a message, which it says or not.
		recognised := func(e core.Entry, m message.Message, says bool, after string) string {
			return r.settled(func() string {
				got, err := s.Recognise(r.ctx(), id, []message.Message{m})
				if err != nil {
					return fmt.Sprintf("Recognise after %s: error %v, want none", after, err)
				}
				there := slices.Contains(idsOf(got), e.ID)
				if !says && there {
					return fmt.Sprintf("Recognise after %s: %q is recognised by what it said before", after, e.ID)
				}
				if i := slices.Index(idsOf(got), e.ID); there {
					if d := sameEntry(got[i], e); d != "" {
						return fmt.Sprintf("Recognise after %s: %s", after, d)
					}
				}
				if !says || there {
					return ""
				}
				shown, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: 100})
				if text == "" && !slices.Contains(idsOf(shown), e.ID) {
					text = fmt.Sprintf("after %s %q is neither shown by Scan nor recognised by what it says now", after, e.ID)
				}
				return text
			})
		}
		for i := range b {
			e, before := &b[i], b[i].Message
			if text := recognised(*e, before, true, "an append"); text != "" {
				return text
			}
			m := message.New(e.Role, "said better: "+e.Text())
			if text := r.change(e, core.Change{Message: &m, Tokens: 9, Fingerprint: message.Fingerprint(m)}); text != "" {
				return text
			}
			if text := inTurn(func() string { return recognised(*e, before, false, "an update") }, func() string { return recognised(*e, m, true, "an update") }); text != "" {
				return text
			}
			switch i {
			case 0:
				if text := inTurn(func() string { return r.empty(*e) }, func() string { return recognised(*e, m, false, "an erasure") }); text != "" {
					return text
				}
			case 1:
				if text := inTurn(func() string { return r.erases(*e) }, func() string { return recognised(*e, m, false, "a deletion") }); text != "" {
					return text
				}
			default:
				r.remember(b[i:])
			}
		}
		if text := r.erases(b[0]); text != "" { // what is left of it
			return text
		}
	}
	return ""
}
