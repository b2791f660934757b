package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
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
		if _, text := r.search(core.SearchQuery{Scope: scope, Text: mark, Limit: 50}); text != "" { // who remembers words has them now
			return text
		}
		anew := e
		if i%4 != 0 {
			want = "changed" + mark[:len(mark)-1]
			anew.Message = saying(e.Message, "now "+want)
			anew.Tokens, anew.Fingerprint = 9, "f"
		}
		if i%2 == 0 {
			if _, err := r.store.Delete(r.ctx(), scope, []string{e.ID}); err != nil {
				return fmt.Sprintf("Delete(%q): error %v, want none", e.ID, err)
			}
		} else if err := r.store.Update(r.ctx(), scope, e.ID, core.Change{Message: &anew.Message, Tokens: anew.Tokens, Fingerprint: anew.Fingerprint}); err != nil {
			return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
		}
		// The twin has said from the beginning what the other one says now: what finds one finds both.
		twin := anew
		twin.ID, twin.Key, twin.Seq = e.ID+"-twin", e.Key+"-twin", e.Seq+5000
		var later []core.Entry
		if i%4 != 0 {
			later = append(later, twin)
		}
		if i%4 == 2 {
			later = append(later, anew) // its id is free
		}
		if _, err := r.store.Append(r.ctx(), cloneEntries(later)); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		text := r.settled(func() string { return r.searchedAnew(scope, mark, want, e.ID, twin.ID) })
		if text != "" {
			return text
		}
	}
	return ""
}

// saying is a message all of whose parts say something else.
func saying(m message.Message, text string) message.Message {
	m.Raw = nil
	m.Parts = append(m.Parts[:0:0], m.Parts...)
	for i := range m.Parts {
		m.Parts[i].Text, m.Parts[i].Raw = text, nil
	}
	return m
}

// searchGone asks for two words, of which one entry says one and another the other, before many entries said the word of the better hit and after they are gone.
func searchGone(r *storeRun) string {
	words := []string{"kestrel", "saffron"}
	said := r.make(batch{Entries: make([]entrySpec, len(words)+40)})
	for i := range said {
		word := words[min(i, 1)]
		said[i].Message, said[i].Type, said[i].Meta = message.New(message.User, "the "+word+" came by"), core.TypeMessage, nil
		said[i].Role, said[i].Fingerprint = message.User, message.Fingerprint(said[i].Message)
	}
	two, many := said[:len(words)], said[len(words):]
	if _, err := r.store.Append(r.ctx(), cloneEntries(two)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	scope := two[0].SessionID().Scope()
	q := core.SearchQuery{Scope: scope, Text: strings.Join(words, " "), Limit: 5}
	var before []string
	text := r.settled(func() string {
		hits, text := r.search(q)
		if before = hitIDs(hits); text == "" && len(before) != len(two) {
			text = fmt.Sprintf("Search(%q): %d hits, want %d: an entry that says the one word, and one that says the other", q.Text, len(hits), len(two))
		}
		return text
	})
	if text != "" {
		return text
	}
	first := two[0].Message
	if before[0] == two[1].ID {
		first = two[1].Message
	}
	for i := range many {
		many[i].Message, many[i].Fingerprint = first, message.Fingerprint(first)
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(many)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	if text := r.settled(func() string {
		hits, text := r.search(core.SearchQuery{Scope: scope, Text: q.Text, Limit: 50})
		if text == "" && len(hits) != len(said) {
			text = fmt.Sprintf("Search(%q): %d hits of %d entries that say a word of it", q.Text, len(hits), len(said))
		}
		return text
	}); text != "" {
		return text
	}
	var gone []string
	other := message.New(message.User, "something else is said")
	for i := range many {
		if i%2 == 0 {
			gone = append(gone, many[i].ID)
			continue
		}
		if err := r.store.Update(r.ctx(), scope, many[i].ID, core.Change{Message: &other, Tokens: 9, Fingerprint: message.Fingerprint(other)}); err != nil {
			return fmt.Sprintf("Update(%q): error %v, want none", many[i].ID, err)
		}
	}
	if _, err := r.store.Delete(r.ctx(), scope, gone); err != nil {
		return fmt.Sprintf("Delete: error %v, want none", err)
	}
	return r.settled(func() string {
		hits, text := r.search(q)
		// What was changed may be found behind them, by what it has in common with anything.
		left := slices.DeleteFunc(hitIDs(hits), func(id string) bool { return !slices.Contains(before, id) && !slices.Contains(gone, id) })
		if d := sameIDs(left, before); text == "" && d != "" {
			text = fmt.Sprintf("Search(%q), after %d entries that said the word of the first hit are gone: %s", q.Text, len(many), d)
		}
		return text
	})
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

func hitIDs(hits []core.Hit) []string {
	out := make([]string, len(hits))
	for i, h := range hits {
		out[i] = h.Entry.ID
	}
	return out
}

// ordered looks that hits come by score, then by time, then by id.
func ordered(hits []core.Hit) string {
	for i := 1; i < len(hits); i++ {
		a, b := hits[i-1], hits[i]
		switch {
		case a.Score > b.Score:
		case a.Score != b.Score: // or one is no number
			return fmt.Sprintf("hit %d, %q, has score %v, the one behind it, %q, has %v", i-1, a.Entry.ID, a.Score, b.Entry.ID, b.Score)
		case a.Entry.Time.Before(b.Entry.Time):
			return fmt.Sprintf("hit %d is of %v, the one behind it, with the same score, of %v", i-1, a.Entry.Time, b.Entry.Time)
		case a.Entry.Time.Equal(b.Entry.Time) && a.Entry.Seq == b.Entry.Seq && a.Entry.ID > b.Entry.ID:
			return fmt.Sprintf("hit %d is %q, the one behind it, with the same score and time, %q", i-1, a.Entry.ID, b.Entry.ID)
		}
	}
	return ""
}

// searchRanks looks for many words among entries that say from one to all of them, in every role and type: whoever prefers some says so in their score.
func (r *storeRun) searchRanks() string {
	words := []string{"heron", "copper", "lantern", "violet", "harbour", "thistle"}
	kinds := []struct {
		role message.Role
		kind core.EntryType
		long int
	}{
		{message.User, core.TypeMessage, 0}, {message.Assistant, core.TypeMessage, 0}, {message.Tool, core.TypeMessage, 0}, {message.System, core.TypeMessage, 0},
		{message.User, core.TypeSummary, 0}, {message.User, core.TypeSubagent, 0}, {message.User, core.TypeMessage, 30}, {message.Assistant, core.TypeMessage, 30},
	}
	scope := core.Scope{Agent: sessionOf(0).Agent}
	var all []core.Entry
	for n := range len(words) * len(kinds) {
		k, said := kinds[n%len(kinds)], 1+(n*5)%len(words)
		e := plainEntry(7000+n, core.SessionID{Agent: scope.Agent, Session: fmt.Sprint("rank ", n%3)}, int64(n/3))
		e.Message = message.New(k.role, strings.Join(words[:said], " ")+strings.Repeat(" and more of it", k.long))
		e.Role, e.Type, e.Fingerprint = k.role, k.kind, message.Fingerprint(e.Message)
		all = append(all, e)
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(all)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	return r.settled(func() string {
		for _, limit := range []int{len(all), 5} {
			hits, text := r.search(core.SearchQuery{Scope: scope, Text: strings.Join(words, " "), Limit: limit})
			if text = cmp.Or(text, ordered(hits)); text != "" {
				return text
			}
		}
		return ""
	})
}
