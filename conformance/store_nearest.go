package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// nearSpace is where the check's vectors lie.
const nearSpace = "near/2"

// near is what the check knows of an entry with vectors.
type near struct {
	entry core.Entry
	// angles are those of its parts to the vector that is searched for, in degrees.
	angles []float64
}

func (n near) score() float64 { return math.Cos(slices.Min(n.angles) * math.Pi / 180) }

// nearest is the check of vector.nearest: vectors of several lengths, parts and ties, and everything that a query may ask for.
func nearest(r *storeRun) string {
	v, _ := core.As[vector.Store](r.store)
	s, _ := core.As[vector.Searcher](r.store)
	if _, err := v.VectorSpaces(r.ctx(), ""); unsupported(err) {
		return ""
	}
	search := func(q core.SearchQuery) ([]core.Hit, string) {
		asked := []float32{3, 0} // a length that somebody may want to make 1
		hits, err := s.SearchVectors(r.ctx(), nearSpace, asked, q)
		if err != nil {
			return nil, fmt.Sprintf("SearchVectors(%+v, limit %d): error %v, want none", q.Scope, q.Limit, err)
		}
		if asked[0] != 3 || asked[1] != 0 {
			return nil, fmt.Sprintf("SearchVectors(%+v, limit %d): the vector [3 0] that it was given is %v now", q.Scope, q.Limit, asked)
		}
		asked[0], asked[1] = 0, 3 // whoever kept it looks elsewhere next time
		return hits, ""
	}
	if _, text := search(core.SearchQuery{Scope: core.Scope{Agent: "agent-a"}, Limit: 3}); text != "" {
		return "in a space that is not there: " + text
	}
	all, text := r.directed(v)
	if text != "" {
		return text
	}
	odd := func(id string) bool { return id[len(id)-1]%2 == 1 }
	from, to := all[2].entry.Time, all[6].entry.Time
	for _, q := range []core.SearchQuery{
		{Scope: core.Scope{Agent: "agent-a"}, Limit: 50}, {Scope: core.Scope{Agent: "agent-a"}, Limit: 3}, {Scope: core.Scope{Agent: "agent-a"}, Limit: 1},
		{Scope: sessionOf(0).Scope(), Limit: 50}, {Scope: sessionOf(1).Scope(), Limit: 2}, {Scope: sessionOf(2).Scope(), Limit: 50},
		{Scope: core.Scope{Agent: "agent-a"}, Limit: 4, Exclude: odd}, {Scope: core.Scope{Agent: "agent-a"}, Limit: 50, From: from, To: to},
		{Scope: core.Scope{Agent: "agent-a"}, Limit: 50, From: from}, {Scope: core.Scope{Agent: "agent-a"}, Limit: 50, To: to},
		// The best of all lie elsewhere, or at another time.
		{Scope: sessionOf(0).Scope(), Limit: 1}, {Scope: core.Scope{Agent: "agent-a"}, Limit: 1, From: from, To: to},
		{Scope: core.Scope{Agent: "agent-a"}, Limit: 50, Text: "the budget report"}, {Scope: core.Scope{Agent: "nobody"}, Limit: 5},
	} {
		hits, text := search(q)
		if text == "" {
			text = sameNear(hits, wanted(all, q))
		}
		if text != "" {
			return fmt.Sprintf("SearchVectors in %+v, limit %d, from %v to %v, excluding %v: %s", q.Scope, q.Limit, q.From, q.To, q.Exclude != nil, text)
		}
		spoilt(hits)
	}
	if hits, err := s.SearchVectors(r.ctx(), "another/2", []float32{1, 0}, core.SearchQuery{Scope: core.Scope{Agent: "agent-a"}, Limit: 5}); err != nil || len(hits) > 0 {
		return fmt.Sprintf("SearchVectors in a space that is not there: %d hits, error %v, want none", len(hits), err)
	}
	if _, err := s.SearchVectors(r.ctx(), nearSpace, []float32{1, 0, 0}, core.SearchQuery{Scope: core.Scope{Agent: "agent-a"}, Limit: 5}); !errors.Is(err, core.ErrInvalid) {
		return fmt.Sprintf("SearchVectors with a vector of another length: error %v, want ErrInvalid", err)
	}
	if text := r.getAll(); text != "" {
		return "after hits of a search by vector were changed by who had them: " + text
	}
	if text := r.nearestGone(all, search); text != "" {
		return text
	}
	return cmp.Or(r.nearestOfMany(v, search), r.nearestCurrent(v, search))
}

// directed appends entries and stores a vector for each, of several lengths, some of the same direction, one entry with two parts.
func (r *storeRun) directed(v vector.Store) ([]near, string) {
	var all []near
	var vectors []vector.Vector
	for i, angles := range [][]float64{{80}, {10}, {55, 20}, {35}, {35}, {120}, {65}, {5}, {45, 90}, {15}, {15}, {25}, {25}, {30}, {30}} {
		who := []int{0, 1, 0, 0, 1, 0, 1, 2, 0, 1, 1, 0, 0, 0, 1}[i]
		e := plainEntry(i, sessionOf(who), int64(i))
		e.Time, e.Meta = epoch.Add(time.Duration(i)*time.Minute), map[string]string{"turn": "3"}
		switch i {
		case 4: // the tie is one of a millisecond
			e.Time = all[3].entry.Time.Add(time.Millisecond)
		case 10, 12, 14: // and these are of one time
			e.Time = all[i-1].entry.Time
		}
		all = append(all, near{entry: e, angles: angles})
		for part, a := range angles {
			length := []float64{1, 1e-6, 1e6, 3, 3}[i%5]
			if i > 8 { // those of a tie are the same to the last bit
				length = 3
			}
			vectors = append(vectors, vector.Vector{ID: e.ID, Part: part, End: 4, Hash: uint64(i), Values: []float32{
				float32(length * math.Cos(a*math.Pi/180)), float32(length * math.Sin(a*math.Pi/180)),
			}})
		}
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return nil, fmt.Sprintf("Append: error %v, want none", err)
		}
		r.remember([]core.Entry{e})
	}
	// A heartbeat that lies nearest is none the less not found.
	beat := plainEntry(50, sessionOf(0), 50)
	beat.Type = core.TypeHeartbeat
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{beat})); err != nil {
		return nil, fmt.Sprintf("Append: error %v, want none", err)
	}
	vectors = append(vectors, vector.Vector{ID: beat.ID, End: 4, Values: []float32{1, 0}})
	if err := v.PutVectors(r.ctx(), nearSpace, vectors); err != nil {
		return nil, fmt.Sprintf("PutVectors: error %v, want none", err)
	}
	return all, ""
}

// wanted are the hits of a query, best first; ties go to the more recent one, then to the smaller id.
func wanted(all []near, q core.SearchQuery) []near {
	out := slices.DeleteFunc(slices.Clone(all), func(n near) bool {
		return !q.Scope.Contains(n.entry.SessionID()) || q.Exclude != nil && q.Exclude(n.entry.ID) ||
			!q.From.IsZero() && n.entry.Time.Before(q.From) || !q.To.IsZero() && !n.entry.Time.Before(q.To)
	})
	slices.SortStableFunc(out, func(a, b near) int {
		switch x, y := slices.Min(a.angles), slices.Min(b.angles); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return cmp.Or(b.entry.Time.Compare(a.entry.Time), strings.Compare(a.entry.ID, b.entry.ID))
	})
	return out[:min(len(out), q.Limit)]
}

func sameNear(hits []core.Hit, want []near) string {
	var got, ids []string
	for _, h := range hits {
		got = append(got, h.Entry.ID)
	}
	for _, n := range want {
		ids = append(ids, n.entry.ID)
	}
	if d := sameIDs(got, ids); d != "" {
		return d
	}
	for i, h := range hits {
		if d := sameEntry(h.Entry, want[i].entry); d != "" {
			return d
		}
		if math.Abs(h.Score-want[i].score()) > 1e-3 {
			return fmt.Sprintf("hit %d has score %v, the cosine is %v", i, h.Score, want[i].score())
		}
	}
	return ""
}

// nearestGone looks that what was emptied and deleted is not found any more, and with it neither a vector that was replaced.
func (r *storeRun) nearestGone(all []near, search func(core.SearchQuery) ([]core.Hit, string)) string {
	emptied, deleted := all[1].entry, all[9].entry
	if text := r.empty(emptied); text != "" {
		return text
	}
	if _, err := r.store.Delete(r.ctx(), deleted.SessionID().Scope(), []string{deleted.ID}); err != nil {
		return fmt.Sprintf("Delete(%q): error %v, want none", deleted.ID, err)
	}
	left := slices.DeleteFunc(slices.Clone(all), func(n near) bool { return n.entry.ID == emptied.ID || n.entry.ID == deleted.ID })
	q := core.SearchQuery{Scope: core.Scope{Agent: "agent-a"}, Limit: 50}
	hits, text := search(q)
	if text == "" {
		text = sameNear(hits, wanted(left, q))
	}
	if text != "" {
		return "SearchVectors after an entry was emptied and another deleted: " + text
	}
	return ""
}
