package conformance

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func raceErased(r *storeRun) string {
	const n = 20
	users, id := r.users(2), sessionOf(0)
	before, after := make([]core.Entry, n), make([]core.Entry, n)
	changes := make([]core.Change, n)
	for i := range n {
		before[i] = plainEntry(i, id, int64(i))
		before[i].Meta = map[string]string{"source": "before"}
		m := message.New(before[i].Role, "")
		changes[i] = core.Change{Message: &m, Fingerprint: "erased", Type: core.TypeErased, Key: "erased:" + before[i].ID, Meta: map[string]string{}}
		e := before[i]
		e.Message, e.Tokens, e.Fingerprint, e.Type, e.Key, e.Meta = m, 0, changes[i].Fingerprint, changes[i].Type, changes[i].Key, nil
		after[i] = e
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(before)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	whole := func(got []core.Entry) string {
		for _, e := range got {
			was := sameEntry(e, before[e.Seq])
			if was == "" {
				continue
			}
			if is := sameEntry(e, after[e.Seq]); is != "" {
				return fmt.Sprintf("it is neither as it was (%s) nor as it is after (%s)", was, is)
			}
		}
		return ""
	}
	read := func(i int64, scan bool) string {
		if scan {
			page, err := users[1].Scan(r.ctx(), core.ScanQuery{Scope: id.Scope(), FromSeq: i, Limit: 2})
			if err != nil {
				return fmt.Sprintf("Scan during an update: error %v, want none", err)
			}
			if text := whole(page.Entries); text != "" {
				return "Scan of an entry that is just erased: " + text
			}
			return ""
		}
		got, err := users[1].Get(r.ctx(), id.Scope(), []string{before[i].ID})
		if err != nil {
			return fmt.Sprintf("Get during an update: error %v, want none", err)
		}
		if text := whole(got); text != "" {
			return "Get of an entry that is just erased: " + text
		}
		return ""
	}
	text := raceReaders(n, func(i int) string {
		if err := users[0].Update(r.ctx(), id.Scope(), before[i].ID, changes[i]); err != nil {
			return fmt.Sprintf("Update(%q): error %v, want none", before[i].ID, err)
		}
		return ""
	}, read)
	if text != "" {
		return text
	}
	text = r.settles(users, after, "erased", func(i int, got []core.Entry, err error) string {
		if err != nil || len(got) != 1 {
			return fmt.Sprintf("%d entries, error %v, want one and none", len(got), err)
		}
		return sameEntry(got[0], after[i])
	})
	if text != "" {
		return text
	}
	return inTurn(func() string { return r.readWhileDeleted(users) }, r.besideOthers, r.keepsOthers)
}

// settles gets each entry alone, by each user, when nothing changes any more.
func (r *storeRun) settles(users []core.Store, entries []core.Entry, what string, is func(i int, got []core.Entry, err error) string) string {
	for _, user := range users {
		for i := range entries {
			text := r.settled(func() string {
				got, err := user.Get(r.ctx(), entries[i].SessionID().Scope(), []string{entries[i].ID})
				return is(i, got, err)
			})
			if text != "" {
				return "Get of an entry that was read while it was " + what + ", when all is over: " + text
			}
		}
	}
	return ""
}

// readWhileDeleted reads entries for the first time while they are deleted.
func (r *storeRun) readWhileDeleted(users []core.Store) string {
	const n = 20
	goes := make([]core.Entry, n)
	for i := range goes {
		goes[i] = plainEntry(100+i, sessionOf(0), int64(100+i))
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(goes)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	scope := goes[0].SessionID().Scope()
	text := raceReaders(n, func(i int) string {
		if gone, err := users[0].Delete(r.ctx(), scope, []string{goes[i].ID}); err != nil || gone != 1 {
			return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", goes[i].ID, gone, err)
		}
		return ""
	}, func(i int64, _ bool) string {
		if got, err := users[1].Get(r.ctx(), scope, []string{goes[i].ID}); err != nil && !errors.Is(err, core.ErrNotFound) || len(got) > 1 {
			return fmt.Sprintf("Get during a deletion: %d entries, error %v, want one and none, or ErrNotFound", len(got), err)
		}
		return ""
	})
	if text != "" {
		return text
	}
	return r.settles(users, goes, "deleted", func(_ int, got []core.Entry, err error) string {
		if !errors.Is(err, core.ErrNotFound) {
			return fmt.Sprintf("%d entries, error %v, want none and ErrNotFound", len(got), err)
		}
		return ""
	})
}

// raceReaders changes n things one after the other while another one reads the newest of them, by turns in one way and the other. A change waits for the reader, not for
// ever, so that both are under way at the same time.
func raceReaders(n int, change func(i int) string, read func(i int64, other bool) string) string {
	// at counts the things whose turn it was, seen those that the reader has begun to read.
	var at, seen atomic.Int64
	var left atomic.Bool
	const waits, pause = 2000, 10 * time.Microsecond
	return atOnce(2, func(who int) string {
		defer left.Store(true)
		if who == 0 {
			for i := range n {
				at.Store(int64(i + 1))
				for wait := 0; wait < waits && seen.Load() <= int64(i) && !left.Load(); wait++ {
					time.Sleep(pause)
				}
				if text := change(i); text != "" {
					return text
				}
			}
			return ""
		}
		for round := 0; !left.Load(); round++ {
			now := at.Load()
			seen.Store(now)
			if text := read(max(now-1, 0), round%2 == 1); text != "" {
				return text
			}
		}
		return read(int64(n-1), false)
	})
}
