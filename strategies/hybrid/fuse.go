package hybrid

import (
	"cmp"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// fused is an entry with what the lists say about it.
type fused struct {
	core.Candidate
	sources []string
}

// fuse merges lists by weighted reciprocal rank. One list keeps its order and its scores.
func fuse(lists []list, k, limit int) []core.Candidate {
	if len(lists) == 1 {
		hits := lists[0].hits
		out := make([]core.Candidate, 0, min(limit, len(hits)))
		for _, h := range hits[:min(limit, len(hits))] {
			out = append(out, core.Candidate{Entry: h.Entry, Text: h.Passage, Score: h.Score, Source: lists[0].part.name})
		}
		return out
	}
	byID := map[string]*fused{}
	var all []*fused
	for _, l := range lists {
		for rank, h := range l.hits {
			f := byID[h.Entry.ID]
			if f == nil {
				f = &fused{Candidate: core.Candidate{Entry: h.Entry}}
				byID[h.Entry.ID] = f
				all = append(all, f)
			}
			f.Score += l.part.weight / float64(k+1+rank)
			// The first searcher by name that points at a part of the text decides what is quoted.
			if f.Text == "" {
				f.Text = h.Passage
			}
			if !slices.Contains(f.sources, l.part.name) {
				f.sources = append(f.sources, l.part.name)
			}
		}
	}
	slices.SortFunc(all, func(a, b *fused) int {
		return cmp.Or(
			cmp.Compare(b.Score, a.Score),
			b.Entry.Time.Compare(a.Entry.Time), cmp.Compare(b.Entry.Seq, a.Entry.Seq), cmp.Compare(a.Entry.ID, b.Entry.ID),
		)
	})
	out := make([]core.Candidate, 0, min(limit, len(all)))
	for _, f := range all[:min(limit, len(all))] {
		slices.Sort(f.sources)
		f.Source = strings.Join(f.sources, "+")
		out = append(out, f.Candidate)
	}
	return out
}
