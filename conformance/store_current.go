package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
)

// fieldChange is a change that leaves what an entry says.
type fieldChange struct {
	what   string
	change func(e core.Entry) core.Change
}

// fieldChanges are one for each field that Update can change, alone, and then for all of them.
func fieldChanges() []fieldChange {
	same := func(e core.Entry, with func(m *message.Message)) core.Change {
		m := e.Message
		m.Parts = slices.Clone(m.Parts)
		with(&m)
		return core.Change{Message: &m, Tokens: e.Tokens, Fingerprint: e.Fingerprint}
	}
	return []fieldChange{
		{"metadata", func(core.Entry) core.Change { return core.Change{Meta: map[string]string{"now": "new", "turn": "9"}} }},
		{"metadata, once more", func(core.Entry) core.Change { return core.Change{Meta: map[string]string{"now": "newer"}} }},
		{"metadata, removed", func(core.Entry) core.Change { return core.Change{Meta: map[string]string{}} }},
		{"key", func(e core.Entry) core.Change { return core.Change{Key: "now " + e.ID} }},
		{"type", func(core.Entry) core.Change { return core.Change{Type: core.TypeSubagent} }},
		{"type, as it was", func(e core.Entry) core.Change { return core.Change{Type: core.TypeMessage} }},
		{"tokens", func(e core.Entry) core.Change {
			c := same(e, func(*message.Message) {})
			c.Tokens += 7
			return c
		}},
		{"fingerprint", func(e core.Entry) core.Change {
			c := same(e, func(*message.Message) {})
			c.Fingerprint = "now"
			return c
		}},
		{"message without other words", func(e core.Entry) core.Change {
			return same(e, func(m *message.Message) { m.Raw, m.ID, m.Name, m.Edited = []byte("now"), "now", "now", true })
		}},
		{"everything", func(e core.Entry) core.Change {
			c := same(e, func(m *message.Message) { m.Raw, m.ID = []byte("at last"), "at last" })
			c.Tokens, c.Fingerprint, c.Key, c.Type, c.Meta = 3, "at last", "at last "+e.ID, core.TypeSubagent, map[string]string{"at": "last"}
			return c
		}},
	}
}

// searchCurrent finds an entry, changes one field of it, and finds it again.
func searchCurrent(r *storeRun) string {
	b := r.make(ordinary(4))
	if _, err := r.store.Append(r.ctx(), cloneEntries(b)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	r.remember(b)
	// One is searched before each change, so that whoever remembers hits has them; the other one only afterwards.
	for i, before := range []bool{true, false} {
		e := &r.all[3*i]
		mark := marksIn(e.Text())[0]
		for _, f := range fieldChanges() {
			for _, scope := range scopesOf(e.SessionID()) {
				if text := ""; before {
					if text = r.settled(func() string { return r.foundAs(scope, mark, *e, false) }); text != "" {
						return text
					}
				}
			}
			if text := r.change(e, f.change(*e)); text != "" {
				return text
			}
			for _, scope := range scopesOf(e.SessionID()) {
				if text := r.settled(func() string { return r.foundAs(scope, mark, *e, true) }); text != "" {
					return fmt.Sprintf("after an update of an entry's %s: %s", f.what, text)
				}
			}
		}
	}
	return ""
}

// foundAs looks for an entry by a word of its own: if it is found, it is as it is stored now. One that is no message need not be found.
func (r *storeRun) foundAs(scope core.Scope, mark string, e core.Entry, again bool) string {
	q := core.SearchQuery{Scope: scope, Text: mark, Limit: 5}
	hits, text := r.search(q)
	if l, ok := core.As[core.LateSearcher](r.store); ok && again && text == "" && l.Late(q) {
		hits, text = r.search(q)
	}
	if text != "" {
		return text
	}
	defer spoilt(hits)
	for _, h := range hits {
		if h.Entry.ID == e.ID {
			if d := sameEntry(h.Entry, e); d != "" {
				return fmt.Sprintf("Search(%q) in %+v: a hit's entry is not as it is stored now: %s", mark, scope, d)
			}
			return ""
		}
	}
	if e.Type != core.TypeMessage {
		return ""
	}
	return fmt.Sprintf("Search(%q) in %+v: %d hits, none is %q, the entry with that word", mark, scope, len(hits), e.ID)
}

// nearestCurrent changes a field of entries that are found by vector, and finds them again: vectors of what says the same stay, or go with the change.
func (r *storeRun) nearestCurrent(v vector.Store, search func(core.SearchQuery) ([]core.Hit, string)) string {
	e := plainEntry(70, core.SessionID{Agent: "agent-current", Session: "current"}, 0)
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	for _, f := range fieldChanges() {
		c := f.change(e)
		for round := range 2 { // before the change, and after it
			// A change of the message may have taken them with it.
			if err := v.PutVectors(r.ctx(), nearSpace, []vector.Vector{{ID: e.ID, End: 4, Values: []float32{1, 0}}}); err != nil {
				return fmt.Sprintf("PutVectors: error %v, want none", err)
			}
			hits, text := search(core.SearchQuery{Scope: core.Scope{Agent: e.Agent}, Limit: 3})
			if text == "" && !found(hits, e.ID) {
				text = fmt.Sprintf("%d hits, none is %q, whose vector was just stored", len(hits), e.ID)
			}
			for _, h := range hits {
				text = cmp.Or(text, sameEntry(h.Entry, e))
			}
			if text != "" {
				return fmt.Sprintf("SearchVectors around an update of an entry's %s: %s", f.what, text)
			}
			spoilt(hits)
			if round > 0 {
				break
			}
			if text := r.change(&e, c); text != "" {
				return text
			}
			if hits, text = search(core.SearchQuery{Scope: core.Scope{Agent: e.Agent}, Limit: 3}); text != "" {
				return text
			}
			for _, h := range hits {
				if d := sameEntry(h.Entry, e); d != "" {
					return fmt.Sprintf("SearchVectors after an update of an entry's %s: %s", f.what, d)
				}
			}
		}
	}
	return ""
}

// searchPassage looks for a word that a long text says once: at its beginning, in its middle and at its end, among texts that are longer or shorter, in bytes or in
// characters, once they are made comparable.
func searchPassage(r *storeRun) string {
	type long struct {
		entry core.Entry
		what  string
	}
	var all []long
	n := 0
	add := func(what string, texts func(word string) []string) {
		e := plainEntry(8000+n, sessionOf(n%3), int64(n))
		mark := markOf(7, n)
		m := message.New(message.User, "")
		part := m.Parts
		m.Parts = nil
		for _, text := range texts(mark) {
			p := message.Part{Kind: message.Text}
			if len(part) > 0 {
				p = part[0]
			}
			p.Text = text
			m.Parts = append(m.Parts, p)
		}
		e.Message, e.Fingerprint = m, message.Fingerprint(m)
		all = append(all, long{e, what})
		n++
	}
	const many = 120
	for _, kind := range lengths {
		around := strings.TrimSpace(strings.Repeat(kind.text+" ", many))
		add(kind.what+", the word at the end", func(word string) []string { return []string{around + " here is " + word} })
		add(kind.what+", the word at the beginning", func(word string) []string { return []string{word + " is here " + around} })
		add(kind.what+", the word between", func(word string) []string { return []string{around + " here is " + word + " again " + around} })
		add(kind.what+", in lines", func(word string) []string {
			lines := strings.Repeat("it is about "+kind.text+" and more.\n", many/2)
			return []string{lines + "\nhere is " + word + " again.\n\n" + lines}
		})
		add(kind.what+", in another part", func(word string) []string { return []string{around, "here is " + word + " again", around} })
	}
	for _, l := range all {
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{l.entry})); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
	}
	for i, l := range all {
		mark := markOf(7, i)
		text := r.settled(func() string {
			hits, text := r.search(core.SearchQuery{Scope: l.entry.SessionID().Scope(), Text: mark, Limit: 5})
			for _, h := range hits {
				if text != "" || h.Entry.ID != l.entry.ID || h.Passage == "" {
					continue
				}
				if !strings.Contains(h.Passage, mark) {
					text = fmt.Sprintf("Search(%q): the passage %.200q has not that word, which is said once", mark, h.Passage)
				} else if !strings.Contains(unbroken(h.Entry.Text()), unbroken(h.Passage)) {
					text = fmt.Sprintf("Search(%q): the passage %.200q is no part of the entry's text", mark, h.Passage)
				}
			}
			return text
		})
		if text != "" {
			return fmt.Sprintf("a text of %s: %s", l.what, text)
		}
	}
	return ""
}

// lengths are words that have another length once they are in small or large letters, composed or decomposed, valid, unescaped or without blanks, and such as are
// counted differently by bytes, characters and units of UTF-16.
var lengths = []struct{ what, text string }{
	{"plain words", "the budget report"},
	{"letters that are shorter in small ones", "\u212A and \u2126"},
	{"letters with a dot that small ones have not", "\u0130stanbul"},
	{"letters that are longer in small ones", "\u023A\u023E"},
	{"letters that are two in large ones", "straße \uFB03"},
	{"letters composed of several", "e\u0301te\u0301 n\u0303"},
	{"letters that may be decomposed", "ÅÉÑ 한국"},
	{"characters of three bytes", "数据库 迁移"},
	{"characters of two units", "👩‍👩‍👧‍👦 𝔘𝔫"},
	{"bytes that are no characters", "a\xff\xfeb"},
	{"many blanks", "a \t  \u00a0 b\r\n"},
	{"signs that are escaped", "<b>&amp;\"x\"</b>"},
}
