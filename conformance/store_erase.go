package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// eraseSome empties and deletes a part of the entries.
func (r *storeRun) eraseSome() string {
	if text := r.rework(); text != "" {
		return text
	}
	for i := len(r.all) - 1; i >= 0; i -= 3 {
		e := r.all[i]
		if n, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err != nil || n != 1 {
			return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", e.ID, n, err)
		}
		r.all = slices.Delete(r.all, i, i+1)
	}
	return ""
}

// untouched are the vectors of entries that were neither changed nor erased by rework and eraseSome.
func (r *storeRun) untouched(vectors []vector.Vector) []vector.Vector {
	return slices.DeleteFunc(vectors, func(v vector.Vector) bool {
		i := slices.IndexFunc(r.all, func(e core.Entry) bool { return e.ID == v.ID })
		return i < 0 || r.all[i].Type == core.TypeErased || r.all[i].Fingerprint == "reworked"
	})
}

// vectorsStill looks that the vectors of what was not touched are there.
func (r *storeRun) vectorsStill(v vector.Store, want []vector.Vector) string {
	for _, agent := range []string{"agent-a", "agent-b"} {
		got, text := r.vectorsOf(v, "one/3", agent, core.MaxPage)
		if text != "" {
			return text
		}
		for _, w := range r.agentsVectors(want, agent) {
			if !slices.ContainsFunc(got, func(g vector.Vector) bool { return differs(g, w) == "" }) {
				return fmt.Sprintf("the vector of %q, part %d, is gone or changed", w.ID, w.Part)
			}
		}
	}
	return r.lengthHolds(v, "one/3", want)
}

// likeMain are sessions whose names are nearly that of one that is erased: patterns that it fits, then such as it is a part of, or that differ in case and blanks.
var likeMain = []string{
	"m%n", "m_in", "m.in", "m*n", "m?in", "m[a]in", "ma.*", "^main$", "main%", "main|other", "*", "%", "_",
	"mai", "Main", "MAIN", "main ", " main", "main\\", "main/x", "main2", "m-in", "m\\_in",
}

func eraseSession(r *storeRun) string {
	s, _ := core.As[core.SessionEraser](r.store)
	r.steps = append(r.steps, ordinary(9))
	if text := inTurn(r.fill, r.eachType); text != "" {
		return text
	}
	agent := sessionOf(0).Agent
	var gone []core.SessionID
	for _, name := range likeMain {
		gone = append(gone, core.SessionID{Agent: agent, Session: name})
	}
	for _, name := range []string{"agent_a", "agent%", "agent?a", "agent.a", "Agent-a", "agent"} {
		gone = append(gone, core.SessionID{Agent: name, Session: "main"})
	}
	for i, id := range gone {
		e := plainEntry(i, id, 0)
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		r.remember([]core.Entry{e})
	}
	for _, none := range []core.SessionID{{Agent: "agent-a"}, {Session: "main"}, {}} {
		err := s.EraseSession(r.ctx(), none)
		if unsupported(err) {
			return ""
		}
		if !errors.Is(err, core.ErrInvalid) {
			return fmt.Sprintf("EraseSession(%+v): error %v, want ErrInvalid", none, err)
		}
	}
	if text := r.readAll(); text != "" {
		return "after erasing no session at all: " + text
	}
	followers := r.followers()
	vectors, embedding, text := r.embeds()
	if text == "" {
		text = r.everybody(followers, "appends")
	}
	if text != "" {
		return text
	}
	id := sessionOf(0)
	erased := r.in(id.Scope())
	if text := r.empty(erased[0]); text != "" {
		return text
	}
	for _, e := range erased { // each is read before it goes, by itself
		if _, err := r.store.Get(r.ctx(), core.Scope{Agent: agent}, []string{e.ID}); err != nil {
			return fmt.Sprintf("Get(%q): error %v, want none", e.ID, err)
		}
	}
	gone = append(gone, core.SessionID{Agent: agent, Session: "ma"}, core.SessionID{Agent: "nobody", Session: "main"}, id)
	for round := range 2 {
		for _, gone := range gone {
			if err := s.EraseSession(r.ctx(), gone); err != nil {
				return fmt.Sprintf("EraseSession(%+v), round %d: error %v, want none", gone, round+1, err)
			}
			r.all = slices.DeleteFunc(r.all, func(e core.Entry) bool { return e.SessionID() == gone })
			delete(r.entries, gone)
			// Each by itself: what it takes with it may be the next one's turn.
			for _, scope := range []core.Scope{{Agent: agent}, {Agent: "agent-b"}} {
				if text := r.settled(func() string { return r.sameSet(core.ScanQuery{Scope: scope, Limit: core.MaxPage}) }); text != "" {
					return fmt.Sprintf("agent %q after session %q of agent %q was erased: %s", scope.Agent, gone.Session, gone.Agent, text)
				}
			}
		}
		text := r.isGone(id, erased)
		if text == "" {
			text = r.readAll()
		}
		if text == "" && embedding != nil {
			text = r.vectorsHold(embedding, "one/3", vectors)
		}
		if text == "" {
			text = r.everybody(followers, fmt.Sprintf("round %d", round+1))
		}
		if text != "" {
			return "after a session was erased: " + text
		}
	}
	// The keys and positions are free again.
	if res, err := r.store.Append(r.ctx(), cloneEntries(erased)); err != nil || res.Duplicates != 0 {
		return fmt.Sprintf("Append of what was erased with its session: %d duplicates, error %v, want it stored", res.Duplicates, err)
	}
	r.remember(erased)
	return r.readAll()
}

// sameSet compares what a scan visits, in whatever order, with what is in its scope.
func (r *storeRun) sameSet(q core.ScanQuery) string {
	got, text := r.scan(q)
	ids, want := idsOf(got), idsOf(r.in(q.Scope))
	slices.Sort(ids)
	slices.Sort(want)
	return cmp.Or(text, sameIDs(ids, want))
}

// isGone looks that nothing of a session is left.
func (r *storeRun) isGone(id core.SessionID, erased []core.Entry) string {
	text := r.settled(func() string {
		got, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: 100})
		if text == "" && len(got) > 0 {
			text = fmt.Sprintf("Scan shows %d entries of it", len(got))
		}
		return text
	})
	for _, e := range erased {
		if text != "" {
			break
		}
		for _, scope := range []core.Scope{{Agent: id.Agent}, id.Scope()} {
			if _, err := r.store.Get(r.ctx(), scope, []string{e.ID}); !errors.Is(err, core.ErrNotFound) {
				text = fmt.Sprintf("Get(%q) in %+v: error %v, want ErrNotFound", e.ID, scope, err)
			}
		}
	}
	return text
}

// eraseLong erases a session that no single page shows.
func eraseLong(r *storeRun) string {
	const n, batch = core.MaxPage + 100, 550
	s, _ := core.As[core.SessionEraser](r.store)
	id, other := core.SessionID{Agent: "agent-a", Session: "long"}, plainEntry(n, sessionOf(0), 0)
	all := []core.Entry{other}
	for i := range n {
		all = append(all, plainEntry(i, id, int64(i)))
	}
	for some := range slices.Chunk(all, batch) {
		if _, err := r.store.Append(r.ctx(), cloneEntries(some)); err != nil {
			return fmt.Sprintf("Append of %d entries: error %v, want none", len(some), err)
		}
	}
	if err := s.EraseSession(r.ctx(), id); unsupported(err) {
		return ""
	} else if err != nil {
		return fmt.Sprintf("EraseSession of %d entries: error %v, want none", n, err)
	}
	r.remember(all[:1])
	text := r.isGone(id, []core.Entry{all[1], all[n/2], all[n]})
	if text == "" {
		text = r.readAll()
	}
	if text != "" {
		return fmt.Sprintf("after a session of %d entries was erased: %s", n, text)
	}
	return ""
}
