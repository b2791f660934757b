package conformance

import (
	"fmt"
	"maps"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// keepsOthers has two change different fields of one entry again and again at the same time: each finds its own change there, whatever the other one did meanwhile.
func (r *storeRun) keepsOthers() string {
	// An update that is undone is so a little later, and the more there is to read and write back, the more often.
	const least, reads, much, lasts = 3, 3, 60, 60 * time.Millisecond
	if r.bound > 0 {
		return "" // a store that is behind cannot be held to this
	}
	users := r.users(2)
	e := plainEntry(1100, core.SessionID{Agent: "agent-a", Session: "keeps others"}, 0)
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	begin, begun := startTogether(len(users)), time.Now()
	return atOnce(len(users), func(who int) string {
		mine := e
		begin()
		for n := 0; n < least || time.Since(begun) < lasts; n++ {
			name := fmt.Sprint("change ", n)
			var c core.Change
			if who == 0 {
				m := message.New(e.Role, name)
				c = core.Change{Message: &m, Tokens: n + 1, Fingerprint: name}
				mine.Message, mine.Tokens, mine.Fingerprint = m, c.Tokens, c.Fingerprint
			} else {
				meta := map[string]string{}
				for i := range much {
					meta[fmt.Sprint("n", i)] = name
				}
				c = core.Change{Meta: maps.Clone(meta), Key: name, Type: []core.EntryType{core.TypeSummary, core.TypeSubagent}[n%2]}
				mine.Meta, mine.Key, mine.Type = meta, c.Key, c.Type
			}
			if err := users[who].Update(r.ctx(), e.SessionID().Scope(), e.ID, c); err != nil {
				return fmt.Sprintf("Update(%q) beside another: error %v, want none", e.ID, err)
			}
			for range reads {
				got, err := users[who].Get(r.ctx(), e.SessionID().Scope(), []string{e.ID})
				if err != nil || len(got) != 1 {
					return fmt.Sprintf("Get of what was just updated: %d entries, error %v", len(got), err)
				}
				want := got[0]
				if who == 0 {
					want.Message, want.Tokens, want.Fingerprint = mine.Message, mine.Tokens, mine.Fingerprint
				} else {
					want.Meta, want.Key, want.Type = mine.Meta, mine.Key, mine.Type
				}
				if d := sameEntry(got[0], want); d != "" {
					return "an update of some fields is undone by one of the others at the same time: " + d
				}
			}
		}
		return ""
	})
}

// startTogether returns what n calls begin with that shall do so at the same moment: a goroutine may start later than a call in memory lasts.
func startTogether(n int) func() {
	var there atomic.Int64
	return func() {
		for there.Add(1); there.Load() < int64(n); {
			runtime.Gosched()
		}
	}
}

// countsOnce has two delete the same entries at the same time: together they count each once.
func (r *storeRun) countsOnce() string {
	const least, n, lasts = 4, 8, 25 * time.Millisecond
	users := r.users(2)
	id := core.SessionID{Agent: "agent-a", Session: "counts once"}
	begun := time.Now()
	for round := 0; round < least || time.Since(begun) < lasts; round++ {
		entries := make([]core.Entry, n)
		for i := range entries {
			entries[i] = plainEntry(50_000+round*n+i, id, int64(i))
		}
		if _, err := r.store.Append(r.ctx(), cloneEntries(entries)); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		begin, counts := startTogether(len(users)), make([]int, len(users))
		text := atOnce(len(users), func(who int) (text string) {
			var err error
			begin()
			if counts[who], err = users[who].Delete(r.ctx(), id.Scope(), idsOf(entries)); err != nil {
				text = fmt.Sprintf("Delete of what another one deletes: error %v, want none", err)
			}
			return text
		})
		if text != "" {
			return text
		}
		if counts[0]+counts[1] != n {
			return fmt.Sprintf("two delete the same %d entries at the same time, and count %d and %d", n, counts[0], counts[1])
		}
	}
	return ""
}
