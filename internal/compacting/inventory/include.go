package inventory

import (
	"strings"

	"github.com/contextengine/contextengine/internal/compacting/exact"
)

// Include takes up a text that Lines and Row wrote, wherever they stand in it, and the words of whatever stands around them. What is read
// afterwards ranks above what was only carried along.
func (v *Inventory) Include(text string) {
	for l := range strings.SplitSeq(text, "\n") {
		if row, ok := strings.CutPrefix(l, WordsRow); ok {
			v.carry(strings.Fields(row))
			continue
		}
		label, said, ok := strings.Cut(l, ": ")
		if rank, known := rankOf(label); ok && known && said != "" {
			v.add(line{label: label, text: said, rank: rank})
		}
		exact.Scan(l, func(w string, kind exact.Kind, _ int) bool {
			v.old(w, kind, 0.5)
			return true
		})
	}
}

// rankOf ranks a line of an earlier text: below a new one of the same kind.
func rankOf(label string) (float64, bool) {
	switch label {
	case LabelRule:
		return 4.9, true
	case LabelTask:
		return 2.5, true
	case LabelDecision:
		return 2, true
	case LabelNote:
		return 1.8, true
	case LabelAsked:
		return 0.5, true
	}
	return 0, false
}

// carry takes up a row of words, the most wanted first.
func (v *Inventory) carry(words []string) {
	for i, w := range words {
		if kind := exact.KindOf(w); kind != exact.None {
			v.old(w, kind, 1-float64(i)/float64(len(words)))
		}
	}
}

func (v *Inventory) old(text string, kind exact.Kind, rank float64) {
	if w := v.word(text, kind); w != nil {
		w.old, w.carried = true, max(w.carried, rank)
	}
}

// Strip returns text without its heading in brackets and without what Lines and Row wrote.
func Strip(text string) string {
	var out []string
	for i, l := range strings.Split(text, "\n") {
		label, _, _ := strings.Cut(l, ": ")
		if _, known := rankOf(label); known || strings.HasPrefix(l, WordsRow) || i == 0 && strings.HasPrefix(l, "[") && strings.HasSuffix(l, "]") {
			continue
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}
