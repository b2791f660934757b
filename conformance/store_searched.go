package conformance

import (
	"fmt"

	"github.com/contextengine/contextengine/core"
)

func searchErased(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for i, e := range r.all {
		if !searchable(e) {
			continue
		}
		scope, mark, want := e.SessionID().Scope(), marksIn(e.Text())[0], ""
		twin := e
		if i%2 == 0 {
			if _, err := r.store.Delete(r.ctx(), scope, []string{e.ID}); err != nil {
				return fmt.Sprintf("Delete(%q): error %v, want none", e.ID, err)
			}
		} else {
			m := e.Message
			m.Raw = nil
			m.Parts = append(m.Parts[:0:0], m.Parts...)
			want = "changed" + mark[:len(mark)-1]
			for j := range m.Parts {
				m.Parts[j].Text, m.Parts[j].Raw = "now "+want, nil
			}
			if err := r.store.Update(r.ctx(), scope, e.ID, core.Change{Message: &m, Tokens: 9, Fingerprint: "f"}); err != nil {
				return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
			}
			// The twin has said from the beginning what the other one says now: what finds one finds both.
			twin.ID, twin.Key, twin.Seq, twin.Message, twin.Tokens, twin.Fingerprint = e.ID+"-twin", e.Key+"-twin", e.Seq+5000, m, 9, "f"
			if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{twin})); err != nil {
				return fmt.Sprintf("Append: error %v, want none", err)
			}
		}
		text := r.settled(func() string { return r.searchedAnew(scope, mark, want, e.ID, twin.ID) })
		if text != "" {
			return text
		}
	}
	return ""
}

// searchedAnew looks for an entry that was deleted, or says another word now, and then for its twin.
func (r *storeRun) searchedAnew(scope core.Scope, mark, want, id, twin string) string {
	hits, text := r.search(core.SearchQuery{Scope: scope, Text: mark, Limit: 50})
	for _, h := range hits {
		if h.Entry.ID == id && (want == "" || len(marksIn(h.Entry.Text())) > 0) {
			return fmt.Sprintf("Search(%q) still finds %q", mark, id)
		}
	}
	if text != "" || want == "" {
		return text
	}
	if len(hits) < 50 && found(hits, id) != found(hits, twin) {
		return fmt.Sprintf("Search(%q), a word that %q said before it was changed, finds %q, and not both it and %q, which says the same", mark, id, idsOf(entriesIn(hits)), twin)
	}
	if hits, text = r.search(core.SearchQuery{Scope: scope, Text: want, Limit: 50}); text == "" && len(hits) < 50 && !found(hits, id) {
		text = fmt.Sprintf("Search(%q) finds %q, and not %q, which says so since it was changed", want, idsOf(entriesIn(hits)), id)
	}
	return text
}

func entriesIn(hits []core.Hit) []core.Entry {
	out := make([]core.Entry, len(hits))
	for i, h := range hits {
		out[i] = h.Entry
	}
	return out
}
