package hybrid

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// fused is an entry with what the searchers say about it.
type fused struct {
	core.Candidate
	sources []string
}

// fuse merges what searchers found by their scores: an entry scores the sum, over searchers, of weight times worth, see finds.worth. One searcher alone keeps
// its order and its scores.
func fuse(all []finds, limit int) []core.Candidate {
	if len(all) == 1 {
		hits := all[0].hits
		out := make([]core.Candidate, 0, min(limit, len(hits)))
		for _, h := range hits[:min(limit, len(hits))] {
			out = append(out, core.Candidate{Entry: h.Entry, Text: h.Passage, Score: h.Score, Source: all[0].part.name})
		}
		return out
	}
	byID := map[string]*fused{}
	var merged []*fused
	for _, found := range all {
		for i, worth := range found.worth() {
			h := &found.hits[i]
			f := byID[h.Entry.ID]
			if f == nil {
				f = &fused{Candidate: core.Candidate{Entry: h.Entry}}
				byID[h.Entry.ID] = f
				merged = append(merged, f)
			}
			f.Score += found.part.weight * worth
			// The first searcher by name that points at a part of the text decides what is quoted.
			if f.Text == "" {
				f.Text = h.Passage
			}
			f.sources = append(f.sources, found.part.name)
		}
	}
	slices.SortFunc(merged, func(a, b *fused) int {
		return cmp.Or(
			cmp.Compare(b.Score, a.Score),
			b.Entry.Time.Compare(a.Entry.Time), cmp.Compare(b.Entry.Seq, a.Entry.Seq), cmp.Compare(a.Entry.ID, b.Entry.ID),
		)
	})
	out := make([]core.Candidate, 0, min(limit, len(merged)))
	for _, f := range merged[:min(limit, len(merged))] {
		f.Source = strings.Join(f.sources, "+")
		out = append(out, f.Candidate)
	}
	return out
}

// finds is what one searcher found, in all scopes, best first, each entry once.
type finds struct {
	part part
	hits []core.Hit
}

// gather joins the lists of each searcher, in the order of their names. Of an entry that is found twice the better hit counts.
func gather(lists []list) []finds {
	var out []finds
	for _, l := range lists {
		at := slices.IndexFunc(out, func(f finds) bool { return f.part.name == l.part.name })
		if at < 0 {
			out = append(out, finds{part: l.part, hits: l.hits})
			continue
		}
		f := &out[at]
		f.hits = append(slices.Clip(f.hits), l.hits...)
		slices.SortStableFunc(f.hits, func(a, b core.Hit) int { return cmp.Compare(b.Score, a.Score) })
		seen := make(map[string]bool, len(f.hits))
		f.hits = slices.DeleteFunc(f.hits, func(h core.Hit) bool {
			again := seen[h.Entry.ID]
			seen[h.Entry.ID] = true
			return again
		})
	}
	slices.SortStableFunc(out, func(a, b finds) int { return strings.Compare(a.part.name, b.part.name) })
	return out
}

const (
	// usual is how many messages a searcher of words is taken to have looked at, at least: those it did not find score 0.
	usual = 100
	// front is how many of the first hits of a searcher by meaning may stand out from the rest.
	front = 20
	// outstanding is what standing out counts, relative to a deviation.
	outstanding = 10
)

// worth says what each hit is worth, in standard deviations of its searcher's scores: above 0 where words were looked for, since that is what texts without
// them score, and above the last hit where meaning was compared, since everything resembles everything a little. By meaning, the first hits are worth more
// as they stand out, see prominence. Scores that are no finite numbers in falling order count by their rank.
func (f finds) worth() []float64 {
	scores := make([]float64, len(f.hits))
	sound := true
	for i, h := range f.hits {
		scores[i] = h.Score
		sound = sound && !math.IsNaN(h.Score) && !math.IsInf(h.Score, 0) && (i == 0 || h.Score <= scores[i-1])
	}
	if !sound {
		for i := range scores {
			scores[i] = math.Log(float64(len(scores)+1) / float64(i+1))
		}
	}
	if len(scores) == 0 {
		return nil
	}
	floor, n := scores[len(scores)-1], len(scores)
	if !f.part.meaning && floor >= 0 {
		floor, n = 0, max(n, usual)
	}
	var sum, squares float64
	for _, s := range scores {
		sum += s - floor
		squares += (s - floor) * (s - floor)
	}
	mean := sum / float64(n)
	deviation := math.Sqrt(max(squares/float64(n)-mean*mean, 0))
	out := make([]float64, len(scores))
	for i, s := range scores {
		switch {
		case deviation > 0:
			out[i] = (s - floor) / deviation
		default:
			out[i] = 1 // all alike
		}
	}
	if f.part.meaning {
		for i, p := range prominence(scores) {
			out[i] += outstanding * p
		}
	}
	return out
}

// prominence says how far the first scores stand above where chance would put them, or nothing of lists too short to tell. The gaps between the largest of
// many values that mean nothing, times their ranks, are alike on average, whatever the values are (Rényi's representation of order statistics): the gaps
// behind the front tell how large, and so how far the first ones should stand above it.
func prominence(scores []float64) []float64 {
	last := min(len(scores)-1, 5*front)
	if last < front+front/4 {
		return nil
	}
	var gap float64
	for i := front; i < last; i++ {
		gap += float64(i+1) * (scores[i] - scores[i+1])
	}
	if gap /= float64(last - front); gap <= 0 {
		return nil
	}
	out := make([]float64, front)
	for i := range out {
		out[i] = max(0, (scores[i]-scores[front])/gap-math.Log(float64(front+1)/float64(i+1)))
	}
	return out
}
