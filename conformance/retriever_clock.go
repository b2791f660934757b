package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
)

// calendar is a number of years after which weekdays and leap years are the same.
const calendar = 28

// retrieveClock asks the same of retrievers over the same entries, said and asked today by the machine's clock, and one calendar earlier and later. One that lives
// for long is asked on several days.
func retrieveClock(r *retrieverRun) string {
	r.steps = nil
	c := &clockRun{retrieverRun: r, entries: r.aged()}
	r.remember(c.entries)
	for who := range 3 {
		for n, prompt := range queries {
			q := r.query(who, prompt)
			wider[n%len(wider)](&q)
			c.asked = append(c.asked, q)
		}
	}
	today := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	at := []time.Time{today.AddDate(-calendar, 0, 0), today.AddDate(calendar, 0, 0), today}
	return r.settled(func() string {
		var first [][]string
		for n, day := range at {
			by := day.Sub(c.asked[0].Now)
			got, text := c.anew(by, by)
			if text != "" {
				return text
			}
			if n == 0 {
				first = got
			}
			against := fmt.Sprintf("on %s, of entries up to 500 days old, against the same on %s", day.Format(time.DateOnly), at[0].Format(time.DateOnly))
			if text := c.compare(got, first, against); text != "" {
				return text
			}
		}
		return c.daily()
	})
}

// clockRun asks the same on other days.
type clockRun struct {
	*retrieverRun
	entries []core.Entry
	asked   []core.Query
}

// daily asks one retriever day by day, and in the end for the first day again, and for each day one that was never asked before.
func (c *clockRun) daily() string {
	lasting, text := c.told(0)
	if text != "" {
		return text
	}
	for _, days := range []int{0, 1, 40, 400, 0} {
		later := time.Duration(days) * 24 * time.Hour
		got, text := c.ask(lasting, 0, later)
		if text != "" {
			return text
		}
		want, text := c.anew(0, later)
		if text != "" {
			return text
		}
		if text := c.compare(got, want, fmt.Sprintf("on day %d since it was first asked, against one that was not asked before", days)); text != "" {
			return text
		}
	}
	return ""
}

func (c *clockRun) compare(got, want [][]string, against string) string {
	for i, q := range c.asked {
		if !slices.Equal(got[i], want[i]) {
			return fmt.Sprintf("Retrieve(%q in %+v) %s: %s", q.Prompt, q.Scopes(), against, sameIDs(got[i], want[i]))
		}
	}
	return ""
}

// anew asks a retriever that was never asked before.
func (c *clockRun) anew(said, asked time.Duration) ([][]string, string) {
	retriever, text := c.told(said)
	if text != "" {
		return nil, text
	}
	return c.ask(retriever, said, asked)
}

// told opens another retriever, over entries that were said later by a while.
func (c *clockRun) told(by time.Duration) (core.Retriever, string) {
	retriever, store := c.open(c.tb)
	if a, ok := retriever.(core.Attacher); ok {
		if err := a.Attach(store); err != nil {
			return nil, fmt.Sprintf("Attach: error %v, want none", err)
		}
	}
	moved := moved(c.entries, by)
	if _, err := store.Append(c.ctx(), cloneEntries(moved)); err != nil {
		return nil, fmt.Sprintf("Append of entries of several ages: error %v, want none", err)
	}
	if o, ok := retriever.(core.Observer); ok {
		if err := o.Appended(c.ctx(), moved); err != nil {
			return nil, fmt.Sprintf("Appended: error %v, want none", err)
		}
	}
	return retriever, ""
}

// moved are entries that were said later by a while.
func moved(entries []core.Entry, by time.Duration) []core.Entry {
	out := cloneEntries(entries)
	for i := range out {
		out[i].Time = out[i].Time.Add(by)
	}
	return out
}

// ask asks everything later by a while, of entries that were said later by another.
func (c *clockRun) ask(retriever core.Retriever, said, asked time.Duration) (out [][]string, text string) {
	for _, q := range c.asked {
		q.Now, q.Recent = q.Now.Add(asked), moved(q.Recent, said)
		q.Granted = slices.Clone(q.Granted) // the retriever's own
		got, err := c.answer(retriever, q)
		if err != nil {
			return nil, fmt.Sprintf("Retrieve(%q): error %v, want none", q.Prompt, err)
		}
		scored := candidateIDs(got)
		for i, c := range got {
			scored[i] += fmt.Sprintf(" of score %.9g", c.Score)
		}
		out = append(out, scored)
	}
	return out, ""
}
