package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
)

// calendar is a number of years after which weekdays and leap years are the same.
const calendar = 28

// retrieveClock asks the same of retrievers over the same entries, said and asked today by the machine's clock, and one calendar earlier and later.
func retrieveClock(r *retrieverRun) string {
	r.steps = nil
	entries := r.aged()
	var asked []core.Query
	r.remember(entries)
	for who := range 3 {
		for n, prompt := range queries {
			q := r.query(who, prompt)
			wider[n%len(wider)](&q)
			asked = append(asked, q)
		}
	}
	now := asked[0].Now
	today := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	answers := func(by time.Duration) (out [][]string, text string) {
		retriever, store := r.open(r.tb)
		if a, ok := retriever.(core.Attacher); ok {
			if err := a.Attach(store); err != nil {
				return nil, fmt.Sprintf("Attach: error %v, want none", err)
			}
		}
		moved := cloneEntries(entries)
		for i := range moved {
			moved[i].Time = moved[i].Time.Add(by)
		}
		if _, err := store.Append(r.ctx(), cloneEntries(moved)); err != nil {
			return nil, fmt.Sprintf("Append of entries of several ages: error %v, want none", err)
		}
		if o, ok := retriever.(core.Observer); ok {
			if err := o.Appended(r.ctx(), moved); err != nil {
				return nil, fmt.Sprintf("Appended: error %v, want none", err)
			}
		}
		for _, q := range asked {
			q.Now, q.Recent = q.Now.Add(by), cloneEntries(q.Recent)
			for i := range q.Recent {
				q.Recent[i].Time = q.Recent[i].Time.Add(by)
			}
			got, err := r.answer(retriever, q)
			if err != nil {
				return nil, fmt.Sprintf("Retrieve(%q): error %v, want none", q.Prompt, err)
			}
			out = append(out, candidateIDs(got))
		}
		return out, ""
	}
	at := []time.Time{today.AddDate(-calendar, 0, 0), today.AddDate(calendar, 0, 0), today}
	return r.settled(func() string {
		var first [][]string
		for n, day := range at {
			got, text := answers(day.Sub(now))
			if text != "" {
				return text
			}
			if n == 0 {
				first = got
			}
			for i, q := range asked {
				if !slices.Equal(got[i], first[i]) {
					return fmt.Sprintf("Retrieve(%q in %+v) on %s, of entries up to 500 days old, against the same on %s: %s",
						q.Prompt, q.Scopes(), day.Format(time.DateOnly), at[0].Format(time.DateOnly), sameIDs(got[i], first[i]))
				}
			}
		}
		return ""
	})
}
