package conformance

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
)

func deterministicPatch(r *compactorRun) string { return r.deterministic(r.compactor, r.compactor) }

// deterministic asks two for the same, or one twice.
func (r *compactorRun) deterministic(of ...core.Compactor) string {
	var texts [2]string
	var all [2][]core.Patch
	days := daysNow()
	for i := range texts {
		if i > 0 {
			r.host.advance(40 * 24 * time.Hour) // the host's clock goes on, the task's time does not
		}
		c := r.task(true)
		r.aged(&c)
		patches, text := r.answers(of[i], c)
		if text != "" {
			return text
		}
		b, err := json.Marshal(patches)
		if err != nil {
			return err.Error()
		}
		all[i], texts[i] = patches, string(b)
	}
	if d := differs(all[1], all[0]); d != "" {
		return fmt.Sprintf("the second time, on a later day of the host, the patch's %s: %s, then %s", d, texts[0], texts[1])
	}
	for _, day := range append(days, daysNow()...) {
		if strings.Contains(texts[1], day) {
			return fmt.Sprintf("the patch holds the machine's time, %q: it is a function of the task, whose Now is in 2001: %.200s", day, texts[1])
		}
	}
	return ""
}

// aged puts a task into a time that no machine's clock shows.
func (*compactorRun) aged(c *core.Compaction) {
	c.Now = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for i := range c.Entries {
		c.Entries[i].Time = c.Now.Add(time.Duration(i-len(c.Entries)) * time.Second)
	}
}

// daysNow is the machine's day as programs write it, and the first digits of what counts seconds.
func daysNow() []string {
	now := time.Now()
	days := []string{strconv.FormatInt(now.Unix()/100, 10)}
	for _, layout := range []string{
		time.DateOnly, "20060102", "2006/01/02", "02.01.2006", "01/02/2006", "Jan 2, 2006", "January 2, 2006", "2 Jan 2006", "2 January 2006", "02 Jan 2006", "02-Jan-06",
		"Jan _2 15:04",
	} {
		days = append(days, now.Format(layout), now.UTC().Format(layout))
	}
	return days
}
