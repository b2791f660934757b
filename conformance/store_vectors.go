package conformance

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// spaceCounts looks that a space has the entries of all agents where none is named.
func (r *storeRun) spaceCounts(v vector.Store, space string, all []vector.Vector) string {
	entries := map[string]bool{}
	for _, w := range all {
		if slices.ContainsFunc(r.all, func(e core.Entry) bool { return e.ID == w.ID }) {
			entries[w.ID] = true
		}
	}
	spaces, err := v.VectorSpaces(r.ctx(), "")
	if err != nil {
		return fmt.Sprintf("VectorSpaces of all agents: error %v, want none", err)
	}
	got := 0
	if at := slices.IndexFunc(spaces, func(s vector.Space) bool { return s.Name == space }); at >= 0 {
		got = spaces[at].Entries
	}
	if got != len(entries) {
		return fmt.Sprintf("VectorSpaces of all agents: %+v, want %d entries in %q", spaces, len(entries), space)
	}
	return ""
}

// vectorEntries appends n entries to a session that has none yet.
func (r *storeRun) vectorEntries(n int, session string) ([]core.Entry, string) {
	out := make([]core.Entry, n)
	for i := range out {
		out[i] = plainEntry(20_000+r.made+i, core.SessionID{Agent: "agent-vectors", Session: session}, int64(i))
	}
	r.made += n
	if _, err := r.store.Append(r.ctx(), cloneEntries(out)); err != nil {
		return nil, fmt.Sprintf("Append of %d entries: error %v, want none", n, err)
	}
	return out, ""
}

// puts stores vectors, and returns those of a space in order.
func (r *storeRun) puts(v vector.Store, space string, vectors []vector.Vector) ([]vector.Vector, string) {
	given := slices.Clone(vectors)
	for i := range given {
		given[i].Values = slices.Clone(given[i].Values)
	}
	if err := v.PutVectors(r.ctx(), space, given); err != nil {
		return nil, fmt.Sprintf("PutVectors of %d: error %v, want none", len(given), err)
	}
	vectors = slices.Clone(vectors)
	slices.SortFunc(vectors, func(a, b vector.Vector) int { return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.Part, b.Part)) })
	return vectors, ""
}

// vectorsMany stores more vectors than a page has, and one entry's in hundreds of parts of a long text.
func (r *storeRun) vectorsMany(v vector.Store) string {
	const many, parts, apart, space = 400, 300, 70_001, "many/2"
	entries, text := r.vectorEntries(many, "many vectors")
	if text != "" {
		return text
	}
	var all []vector.Vector
	for i, e := range entries {
		for part := range map[bool]int{true: parts, false: 2}[i == 1] {
			all = append(all, vector.Vector{ID: e.ID, Part: part, Start: part * apart, End: part*apart + apart - 1, Hash: uint64(part), Values: []float32{float32(i), float32(part)}})
		}
	}
	if all, text = r.puts(v, space, all); text != "" {
		return text
	}
	for _, limit := range []int{core.MaxPage, 128} {
		got, text := r.vectorsOf(v, space, entries[0].Agent, limit)
		if text == "" {
			text = differs(got, all)
		}
		if text != "" {
			return fmt.Sprintf("%d vectors in pages of %d: %s", len(all), limit, text)
		}
	}
	return ""
}

// vectorsExact stores vectors of the usual length, some as models make them and some of any bits that are a number.
func (r *storeRun) vectorsExact(v vector.Store) string {
	const n, length, space = 6, 1024, "exact/1024"
	entries, text := r.vectorEntries(n, "exact vectors")
	if text != "" {
		return text
	}
	seed := uint64(r.drawn(1, math.MaxInt16)[0])
	rnd := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // as all of the suite
	all := make([]vector.Vector, n)
	for i := range all {
		all[i] = vector.Vector{ID: entries[i].ID, End: 4, Values: make([]float32, length)}
		for j := range all[i].Values {
			x := 2*rnd.Float32() - 1
			for i%2 == 1 {
				if x = math.Float32frombits(rnd.Uint32()); x-x == 0 { // neither infinite nor no number
					break
				}
			}
			all[i].Values[j] = x
		}
	}
	if all, text = r.puts(v, space, all); text != "" {
		return text
	}
	got, text := r.vectorsOf(v, space, entries[0].Agent, core.MaxPage)
	if text != "" {
		return text
	}
	if len(got) != n {
		return fmt.Sprintf("%d vectors of %d numbers: %d come back", n, length, len(got))
	}
	for i, w := range all {
		for j, x := range w.Values {
			if got[i].ID != w.ID || len(got[i].Values) != length || math.Float32bits(got[i].Values[j]) != math.Float32bits(x) {
				return fmt.Sprintf("vectors of %d numbers: number %d of that of %q is not %v to the last bit", length, j, w.ID, x)
			}
		}
	}
	return ""
}

// vectorsMoving takes away, between two pages, the vectors that the page ended with, in each way there is: the others come all the same, each once.
func (r *storeRun) vectorsMoving(v vector.Store) string {
	for way, goes := range r.vectorsGo() {
		for at := range 3 {
			space := fmt.Sprintf("moving %d %s/1", at, way)
			entries, text := r.vectorEntries(7, space)
			if text != "" {
				return text
			}
			var all []vector.Vector
			for i, e := range entries {
				for part := range 1 + i%2 {
					all = append(all, vector.Vector{ID: e.ID, Part: part, End: 4, Values: []float32{float32(i + 1)}})
				}
			}
			if all, text = r.puts(v, space, all); text != "" {
				return text
			}
			seen, gone, n := map[string]int{}, "", 0
			for q := (vector.Query{Space: space, Agent: entries[0].Agent, Limit: 2}); n < 2*len(all); n++ {
				page, err := v.ScanVectors(r.ctx(), q)
				if err != nil {
					return fmt.Sprintf("ScanVectors after an entry %s between two pages: error %v, want none", way, err)
				}
				for _, p := range page.Vectors {
					if p.ID == gone {
						return fmt.Sprintf("ScanVectors after an entry %s between two pages: a later page has a vector of it", way)
					}
					seen[fmt.Sprint(p.ID, " ", p.Part)]++
				}
				if n == at && len(page.Vectors) > 0 {
					gone = page.Vectors[len(page.Vectors)-1].ID
					if text := goes(entries[slices.Index(idsOf(entries), gone)]); text != "" {
						return text
					}
				}
				if q.Cursor = page.Next; page.Next == "" {
					break
				}
			}
			for _, w := range all {
				if times := seen[fmt.Sprint(w.ID, " ", w.Part)]; times > 1 || times == 0 && w.ID != gone {
					return fmt.Sprintf("ScanVectors after the entry that page %d ended with %s: visits the vector of %q, part %d, %d times, want once", at+1, way, w.ID, w.Part, times)
				}
			}
		}
	}
	return ""
}

// vectorsGo are the ways in which the vectors of an entry go.
func (r *storeRun) vectorsGo() map[string]func(e core.Entry) string {
	return map[string]func(core.Entry) string{"was deleted": r.erases, "was emptied": r.empty}
}

// freshVectors has one opening look for vectors that another one stores, replaces and drops.
func (r *storeRun) freshVectors(users []core.Store) string {
	const space = "fresh/2"
	for i, reader := range users {
		own, ok := core.As[vector.Store](reader)
		other, too := core.As[vector.Store](users[1-i])
		if !ok || !too {
			return ""
		}
		if _, err := own.VectorSpaces(r.ctx(), ""); unsupported(err) {
			return ""
		}
		r.store = users[1-i]
		entries, text := r.vectorEntries(2, fmt.Sprint("fresh vectors ", i))
		if text != "" {
			return text
		}
		near, far := []float32{1, 0}, []float32{0, 1}
		for _, step := range []struct {
			what string
			put  []vector.Vector
			want []int // the entries that are found, the nearest first
		}{
			{"put one", []vector.Vector{{ID: entries[0].ID, Values: []float32{1, 1}}}, []int{0}},
			{"put another", []vector.Vector{{ID: entries[1].ID, Values: near}}, []int{1, 0}},
			{"replaced it", []vector.Vector{{ID: entries[1].ID, Values: far}}, []int{0, 1}},
			{"dropped them", nil, nil},
			{"put one again", []vector.Vector{{ID: entries[1].ID, Values: far}}, []int{1}},
			{"dropped it", nil, nil},
		} {
			_ = r.settled(func() string { return r.fresh(own, reader, space, entries, nil) }) // who remembers has read it before
			var err error
			if step.put == nil {
				err = other.DropVectors(r.ctx(), space, entries[0].Agent)
			} else {
				_, text = r.puts(other, space, step.put)
			}
			if err != nil {
				text = fmt.Sprintf("DropVectors: error %v, want none", err)
			}
			if text == "" {
				text = r.settled(func() string { return r.fresh(own, reader, space, entries, step.want) })
			}
			if text != "" {
				return fmt.Sprintf("to one who has read vectors, after another %s: %s", step.what, text)
			}
		}
	}
	return ""
}

// fresh reads vectors in each way that a store has.
func (r *storeRun) fresh(v vector.Store, s core.Store, space string, entries []core.Entry, want []int) string {
	agent := entries[0].Agent
	var ids []string
	for _, i := range want {
		ids = append(ids, entries[i].ID)
	}
	got, text := r.vectorsOf(v, space, agent, core.MaxPage)
	if text != "" {
		return text
	}
	if len(got) != len(ids) || slices.ContainsFunc(got, func(g vector.Vector) bool { return !slices.Contains(ids, g.ID) }) {
		return fmt.Sprintf("ScanVectors has %d, want those of %q", len(got), ids)
	}
	spaces, err := v.VectorSpaces(r.ctx(), agent)
	at := slices.IndexFunc(spaces, func(s vector.Space) bool { return s.Name == space })
	if err != nil || at >= 0 && spaces[at].Entries != len(ids) || at < 0 && len(ids) > 0 {
		return fmt.Sprintf("VectorSpaces: %+v, error %v, want %d entries in %q", spaces, err, len(ids), space)
	}
	search, ok := core.As[vector.Searcher](s)
	if !ok {
		return ""
	}
	hits, err := search.SearchVectors(r.ctx(), space, []float32{1, 0}, core.SearchQuery{Scope: core.Scope{Agent: agent}, Limit: 5})
	if unsupported(err) {
		return ""
	}
	if err != nil {
		return fmt.Sprintf("SearchVectors: error %v, want none", err)
	}
	if d := sameIDs(hitIDs(hits), ids); d != "" {
		return "SearchVectors: " + d
	}
	return ""
}
