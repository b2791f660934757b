package summary

import (
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
	"github.com/contextengine/contextengine/internal/compacting/exact"
	"github.com/contextengine/contextengine/internal/compacting/inventory"
)

// Shares of a text for what is kept word for word: sentences, and words. The model writes the rest. A digest says less than a model does, so
// more words are kept beside one.
const (
	linesShare       = 0.2
	wordsShare       = 0.2
	digestWordsShare = 0.4
)

// unverified stands for an identifier that the source does not hold.
const unverified = "[unverified]"

// findings says what an audit found.
type findings struct {
	// checked words of the text were looked up in the source; altered ones were put right, invented ones taken out.
	checked, altered, invented int
	// pinned sentences and repaired words of the source were added; missing words had no room.
	pinned, repaired, missing int
}

func (f findings) meta(m map[string]string) {
	for key, n := range map[string]int{
		"auditChecked": f.checked, "auditAltered": f.altered, "auditInvented": f.invented,
		"auditPinned": f.pinned, "auditRepaired": f.repaired, "auditMissing": f.missing,
	} {
		if n > 0 {
			m[key] = strconv.Itoa(n)
		}
	}
}

// source is what a text must agree with.
type source struct {
	*inventory.Inventory
	// text is all of it.
	text string
	// folded finds words by their letters in lower case; nil until spelling is asked for the first time.
	folded map[string]string
	claims *claims
}

// sourceOf returns a source of a text, and of the times of the entries that it is of.
func sourceOf(inv *inventory.Inventory, text string, entries []core.Entry) *source {
	return &source{Inventory: inv, text: text, claims: claimsOf(text, entries)}
}

// spelling returns how the source writes a word, whatever the case of its letters.
func (s *source) spelling(w string) (right string, known bool) {
	if s.folded == nil {
		s.folded = make(map[string]string)
		exact.Scan(s.text, func(w string, _ exact.Kind, _ int) bool {
			if low := strings.ToLower(w); s.folded[low] == "" {
				s.folded[low] = w
			}
			return true
		})
	}
	right, known = s.folded[strings.ToLower(w)]
	return right, known
}

// verify puts the words of text right that the source spells otherwise, and takes out identifiers, addresses, sums, dates, houses and
// telephone numbers that it does not hold.
func (s *source) verify(text string) (string, findings) {
	var f findings
	text, f.invented = s.claims.check(text)
	var b strings.Builder
	from := 0
	exact.Scan(text, func(w string, kind exact.Kind, at int) bool {
		if kind == exact.Weak && !address.MatchString(w) {
			return true
		}
		f.checked++
		if strings.Contains(s.text, w) {
			return true
		}
		right, known := s.spelling(w)
		switch {
		case known:
			f.altered++
		case unguessable(w, kind):
			f.invented++
			right = unverified
		default:
			return true
		}
		b.WriteString(text[from:at])
		b.WriteString(right)
		from = at + len(w)
		return true
	})
	b.WriteString(text[from:])
	return b.String(), f
}

// unguessable reports whether a word can only be right when the source has it. The name of a product may be right without, and a number that something was
// counted to.
func unguessable(w string, kind exact.Kind) bool {
	if address.MatchString(w) {
		return true
	}
	switch kind {
	case exact.URL, exact.Hash:
		return true
	case exact.Path:
		return strings.Count(w, "/") > 1 || strings.Contains(w[strings.LastIndexByte(w, '/')+1:], ".")
	case exact.Symbol:
		n := 0
		for i := range len(w) {
			if w[i] >= '0' && w[i] <= '9' {
				n++
			}
		}
		return n >= 4
	}
	return false
}

// compose makes the text of a summary from what a model or a digest says, at most limit tokens with its header: what is said is verified, standing
// sentences (in linesShare of the room) and wanted words of the source that it lacks (in the share words) are added, exactly as they were written.
func (w *work) compose(header, said string, src *source, words float64, limit int) (string, findings) {
	said, f := src.verify(said)
	room := limit - w.c.Count(header) - 2
	if room < leastAnswer {
		return w.bounded(header, limit), f
	}
	lines := src.Lines(int(linesShare*float64(room)), said, w.c.Count)
	pinned := strings.Join(lines, "\n")
	f.pinned = len(lines)
	rest := room - w.c.Count(pinned) - 2
	body := compacting.Clip(strings.TrimSpace(said), rest-int(words*float64(room)), w.c.Count)
	row, n := src.Row(rest-w.c.Count(body)-2, body+"\n"+pinned, w.c.Count)
	f.repaired = n
	f.missing = max(src.Len()-n-f.checked, 0)
	parts := slices.DeleteFunc([]string{header, body, pinned, row}, func(s string) bool { return strings.TrimSpace(s) == "" })
	return w.bounded(strings.Join(parts, "\n"), limit), f
}

// bounded cuts whole words off the end of text until it costs at most limit tokens. It never returns "".
func (w *work) bounded(text string, limit int) string {
	for range 20 {
		if w.c.Count(text) <= limit {
			break
		}
		i := strings.LastIndexByte(text, ' ')
		if i <= 0 {
			break
		}
		text = text[:i]
	}
	if text = strings.TrimRight(compacting.Head(text, limit, w.c.Count), "\n "); text == "" {
		return "…"
	}
	return text
}
