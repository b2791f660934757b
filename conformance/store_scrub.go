package conformance

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/core/vector"
)

// again closes and opens the store, where that can be, and hands it to those who follow it.
func (r *storeRun) again(followers []*follower) bool {
	if r.reopen == nil {
		return false
	}
	r.store = r.reopen(r.tb, r.store)
	for _, f := range followers {
		f.feed, _ = core.As[core.ChangeFeed](r.store)
	}
	return true
}

func scrubKeeps(r *storeRun) string {
	s, _ := core.As[upkeep.Scrubber](r.store)
	if err := s.Scrub(r.ctx()); unsupported(err) {
		return ""
	} else if err != nil {
		return fmt.Sprintf("Scrub of an empty store: error %v, want none", err)
	}
	r.steps = append(r.steps, ordinary(12))
	if text := r.fill(); text != "" {
		return text
	}
	vectors, v, text := r.embeds()
	if text != "" {
		return text
	}
	if r.views() != nil {
		if text := r.publish(sessionOf(0), 2); text != "" {
			return text
		}
	}
	if text := inTurn(r.eraseSome, r.eachType, r.bulk); text != "" {
		return text
	}
	vectors = r.untouched(vectors)
	followers := r.followers()
	if text := r.everybody(followers, "some were erased"); text != "" {
		return text
	}
	for round := range 6 {
		w, text := r.scrubbed(round)
		if text != "" {
			return text
		}
		holds := func() string {
			text := cmp.Or(r.readAll(), w.holds())
			if text == "" && r.views() != nil {
				text = r.holds(sessionOf(0), 2)
			}
			if text == "" && v != nil {
				v, _ = core.As[vector.Store](r.store)
				text = r.vectorsStill(v, vectors)
			}
			return cmp.Or(text, r.everybody(followers, "a scrub, from marks of before it"))
		}
		if text := holds(); text != "" {
			return "after a scrub: " + text
		}
		if !r.again(followers) {
			continue
		}
		if text := holds(); text != "" {
			return "after a scrub during which somebody wrote, and reopening: " + text
		}
	}
	return ""
}

// bulk appends so much that writing all of it anew takes a while.
func (r *storeRun) bulk() string {
	const many, size = 24, 8000
	b := make([]core.Entry, many)
	for i := range b {
		b[i] = plainEntry(9000+i, core.SessionID{Agent: "agent-bulk", Session: "bulk"}, int64(i))
		b[i].Message = message.New(message.User, makeText(markOf(0, 9000+i), textPlain, size, i, nil))
		b[i].Fingerprint = message.Fingerprint(b[i].Message)
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(b)); err != nil {
		return fmt.Sprintf("Append of %d long entries: error %v, want none", many, err)
	}
	r.remember(b)
	return ""
}

// writesMeanwhile is what somebody writes while a scrub is under way.
type writesMeanwhile struct {
	r  *storeRun
	id core.SessionID
	// first numbers the entries; left are those that were not deleted again.
	first, made int
	left        []core.Entry
	version     uint64
	vectors     []vector.Vector
}

// write makes one more change: appends, and now and then updates or deletes what it appended before, and publishes a view.
func (w *writesMeanwhile) write() string {
	r := w.r
	e := plainEntry(w.first+w.made, w.id, int64(w.made))
	w.made++
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
		return fmt.Sprintf("Append during a scrub: error %v, want none", err)
	}
	w.left = append(w.left, e)
	last := len(w.left) - 1
	switch w.made % 5 {
	case 1:
		return r.change(&w.left[last], core.Change{Meta: map[string]string{"meanwhile": "yes"}})
	case 2:
		if n, err := r.store.Delete(r.ctx(), w.id.Scope(), []string{e.ID}); err != nil || n != 1 {
			return fmt.Sprintf("Delete(%q) during a scrub: %d, error %v, want 1 and none", e.ID, n, err)
		}
		w.left = w.left[:last]
	case 3:
		if r.views() != nil {
			w.version++
			if err := r.views().SwapView(r.ctx(), richView(w.id, w.version)); err != nil {
				return fmt.Sprintf("SwapView during a scrub: error %v, want none", err)
			}
		}
	case 4:
		if v, ok := core.As[vector.Store](r.store); ok {
			one := vector.Vector{ID: e.ID, End: 4, Hash: uint64(w.made), Values: []float32{float32(w.made), 1, 2}}
			if err := v.PutVectors(r.ctx(), "one/3", []vector.Vector{one}); err == nil {
				w.vectors = append(w.vectors, one)
			} else if !unsupported(err) {
				return fmt.Sprintf("PutVectors during a scrub: error %v, want none", err)
			}
		}
	}
	return ""
}

// holds looks for the view and the vectors; the entries are remembered like all others.
func (w *writesMeanwhile) holds() string {
	if w.version > 0 {
		if text := w.r.holds(w.id, w.version); text != "" {
			return text
		}
	}
	if len(w.vectors) > 0 {
		v, _ := core.As[vector.Store](w.r.store)
		return w.r.vectorsStill(v, w.vectors)
	}
	return ""
}

// scrubbed scrubs, while somebody writes, a store of which something was erased just before.
func (r *storeRun) scrubbed(round int) (*writesMeanwhile, string) {
	s, _ := core.As[upkeep.Scrubber](r.store)
	w := &writesMeanwhile{r: r, id: core.SessionID{Agent: "agent-a", Session: fmt.Sprint("meanwhile-", round)}, first: 1000 * (round + 1)}
	for range 5 { // the second of them is deleted again
		if text := w.write(); text != "" {
			return nil, text
		}
	}
	var over atomic.Bool
	begun := make(chan struct{})
	text := atOnce(2, func(who int) string {
		if who == 0 {
			<-begun
			defer over.Store(true)
			if err := s.Scrub(r.ctx()); err != nil {
				return fmt.Sprintf("Scrub: error %v, want none", err)
			}
			return ""
		}
		for i := range 500 {
			if i == 1 {
				close(begun)
			}
			if i >= 10 && over.Load() {
				break
			}
			if text := w.write(); text != "" {
				if i == 0 {
					close(begun)
				}
				return text
			}
		}
		return ""
	})
	r.remember(w.left)
	return w, text
}

// erasedWord is what must not be found any more; no table of words makes it shorter.
const erasedWord = "Qz7xkJw9vPtR"

// secretEntry holds erasedWord in every field that says something.
func secretEntry(i int) core.Entry {
	e := plainEntry(i, sessionOf(i%3), int64(i))
	e.Key = fmt.Sprint("key-", erasedWord, "-", i)
	e.Message = message.New(message.User, fmt.Sprint(strings.Repeat(erasedWord+" ", 20), "number ", i))
	e.Meta = map[string]string{"note": erasedWord}
	e.Fingerprint = message.Fingerprint(e.Message)
	return e
}

func scrubGone(r *storeRun) string {
	s, _ := core.As[upkeep.Scrubber](r.store)
	for i := range 16 {
		e := plainEntry(i, sessionOf(i%3), int64(i))
		if i%2 == 0 {
			e = secretEntry(i)
		}
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		switch i % 4 {
		case 0:
			if text := r.empty(e); text != "" {
				return text
			}
		case 2:
			if text := r.erases(e); text != "" {
				return text
			}
		default:
			r.remember([]core.Entry{e})
		}
	}
	if err := s.Scrub(r.ctx()); unsupported(err) {
		return ""
	} else if err != nil {
		return fmt.Sprintf("Scrub: error %v, want none", err)
	}
	if text := cmp.Or(r.lies(), r.getAll()); text != "" {
		return "after a scrub: " + text
	}
	return r.goneEachWay()
}

// erases deletes an entry.
func (r *storeRun) erases(e core.Entry) string {
	if n, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err != nil || n != 1 {
		return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", e.ID, n, err)
	}
	return ""
}

// erasing is one way to erase what an entry, or the view of its session, says.
type erasing struct {
	what string
	do   func(e core.Entry) string
}

// erasings are the ways that a store has.
func (r *storeRun) erasings() []erasing {
	out := []erasing{
		{"deleted", r.erases},
		{"emptied", r.empty},
		{"changed to say something else", func(e core.Entry) string {
			m := message.New(e.Role, "something else")
			c := core.Change{Message: &m, Tokens: 3, Fingerprint: "else", Key: "else:" + e.ID, Meta: map[string]string{"note": "else"}}
			return r.change(&e, c)
		}},
	}
	if offers[core.SessionEraser](r.store) {
		out = append(out, erasing{"erased with its session", func(e core.Entry) string {
			s, _ := core.As[core.SessionEraser](r.store)
			if err := s.EraseSession(r.ctx(), e.SessionID()); err != nil && !unsupported(err) {
				return fmt.Sprintf("EraseSession: error %v, want none", err)
			} else if err != nil {
				return r.erases(e)
			}
			return ""
		}})
	}
	if r.views() != nil {
		view := func(e core.Entry, version uint64, pinned string) string {
			v := richView(e.SessionID(), version)
			v.Pinned = pinned
			if err := r.views().SwapView(r.ctx(), v); err != nil {
				return fmt.Sprintf("SwapView: error %v, want none", err)
			}
			return ""
		}
		viewed := func(e core.Entry) string { return cmp.Or(r.erases(e), view(e, 1, strings.Repeat(erasedWord+" ", 20))) }
		out = append(out, erasing{"in a view that was deleted", func(e core.Entry) string {
			if text := viewed(e); text != "" {
				return text
			}
			if err := r.views().DeleteView(r.ctx(), e.SessionID()); err != nil {
				return fmt.Sprintf("DeleteView: error %v, want none", err)
			}
			return ""
		}}, erasing{"in a view that was replaced", func(e core.Entry) string { return cmp.Or(viewed(e), view(e, 2, "nothing")) }})
	}
	return out
}

// goneEachWay erases in one way alone, and scrubs at once, after the store was opened again, or after a scrub that was broken off.
func (r *storeRun) goneEachWay() string {
	for way := range r.erasings() {
		for _, then := range []string{"", "and the store opened again", "and a scrub broken off", "through another opening"} {
			if then == "and the store opened again" && r.reopen == nil || then == "through another opening" && r.another == nil {
				continue
			}
			r.store, r.all, r.entries = r.open(r.tb), nil, nil
			how := r.erasings()[way]
			kept, gone := plainEntry(1, sessionOf(1), 0), secretEntry(0)
			if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{kept, gone})); err != nil {
				return fmt.Sprintf("Append: error %v, want none", err)
			}
			r.remember([]core.Entry{kept})
			scrubber := r.store
			if then == "through another opening" {
				scrubber = r.another(r.tb, r.store)
				if s, ok := core.As[upkeep.Scrubber](scrubber); ok {
					_ = s.Scrub(r.ctx())
				}
			}
			// There was nothing to remove yet, and that is no answer for later.
			text := cmp.Or(r.scrubs(), how.do(gone))
			switch {
			case text != "" || then == "":
			case then == "through another opening":
				r.store = scrubber // it erased nothing itself
			case then == "and the store opened again":
				r.again(nil)
			default:
				ctx, cancel := cancellable(r.ctx())
				cancel()
				s, _ := core.As[upkeep.Scrubber](r.store)
				_ = s.Scrub(r.watch.calling(ctx))
			}
			if text := cmp.Or(text, r.scrubs(), r.lies(), r.getAll()); text != "" {
				return fmt.Sprintf("what was %s %s, after a scrub: %s", how.what, then, text)
			}
		}
	}
	return ""
}

// scrubs is a scrub that must succeed.
func (r *storeRun) scrubs() string {
	s, _ := core.As[upkeep.Scrubber](r.store)
	if err := s.Scrub(r.ctx()); err != nil && !unsupported(err) {
		return fmt.Sprintf("Scrub: error %v, want none", err)
	}
	return ""
}

// lies looks for erasedWord on the store's media.
func (r *storeRun) lies() string {
	err := filepath.WalkDir(r.media(r.tb, r.store), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if at := bytes.Index(b, []byte(erasedWord)); err == nil && at >= 0 {
			return fmt.Errorf("%s holds at byte %d what was erased", filepath.Base(path), at)
		}
		return err
	})
	if err != nil {
		return err.Error()
	}
	return ""
}
