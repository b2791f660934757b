package openbrain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// census is what a listing of one agent's thoughts amounts to.
type census struct {
	// visible entries in order: by session, then by Seq, then as they were appended.
	visible []record
	// copies are further thoughts of visible entries, hidden thoughts of batches without an end.
	copies, hidden []record
	// keys and ids are those of the visible ones.
	keys map[sessionKey]bool
	ids  map[string]bool
	// noted says that it is remembered which thoughts the visible ones are, see Store.ids.
	noted bool
}

// twins are the copies and hidden thoughts of a census, by what they share with entries.
type twins struct {
	byKey map[sessionKey][]record
	byID  map[string][]record
}

func (c census) twins() twins {
	t := twins{map[sessionKey][]record{}, map[string][]record{}}
	for _, list := range [][]record{c.copies, c.hidden} {
		for _, r := range list {
			t.byKey[r.key()] = append(t.byKey[r.key()], r)
			t.byID[r.entry.ID] = append(t.byID[r.entry.ID], r)
		}
	}
	return t
}

// of returns the other thoughts with the key or id of r.
func (t twins) of(r record) []record {
	var out []record
	seen := map[string]bool{r.thought: true}
	for _, list := range [][]record{t.byKey[r.key()], t.byID[r.entry.ID]} {
		for _, x := range list {
			if !seen[x.thought] {
				seen[x.thought] = true
				out = append(out, x)
			}
		}
	}
	return out
}

// holder returns the id of the visible entry that has a key; "" when there is none.
func (c census) holder(k sessionKey) string {
	for i := range c.visible {
		if r := &c.visible[i]; r.key() == k {
			return r.entry.ID
		}
	}
	return ""
}

// sessionKey is what makes an append idempotent.
type sessionKey struct{ session, key string }

func (r record) key() sessionKey { return sessionKey{r.entry.Session, r.entry.Key} }

// records returns the entries among an agent's thoughts, and how many are none.
func (c Config) records(thoughts []thought, agent string) (out []record, foreign int) {
	for _, t := range thoughts {
		if r, ok := c.record(t, agent); ok {
			out = append(out, r)
		} else {
			foreign++
		}
	}
	return out, foreign
}

// sortOut tells entries from copies and parts of unfinished batches.
func sortOut(all []record) census {
	var out census
	ended := map[string]bool{}
	for _, r := range all {
		if r.batch.End {
			ended[r.batch.ID] = true
		}
	}
	// The first thought of a key or id is the entry, whoever looks; what came later is a copy. The id counts because an erased entry has
	// another key than a copy that is still on its way.
	slices.SortFunc(all, record.earlier)
	out.keys, out.ids = make(map[sessionKey]bool, len(all)), make(map[string]bool, len(all))
	sessions := map[string][]record{}
	for _, r := range all {
		switch {
		case r.batch.ID != "" && !ended[r.batch.ID]:
			out.hidden = append(out.hidden, r)
		case out.keys[r.key()] || out.ids[r.entry.ID]:
			out.copies = append(out.copies, r)
		default:
			out.keys[r.key()], out.ids[r.entry.ID] = true, true
			sessions[r.entry.Session] = append(sessions[r.entry.Session], r)
		}
	}
	// Within a session the order is nearly that in which they were stored, which is soon sorted.
	for _, name := range slices.Sorted(maps.Keys(sessions)) {
		slices.SortFunc(sessions[name], record.compare)
		out.visible = append(out.visible, sessions[name]...)
	}
	return out
}

// earlier orders records by when the server stored them.
func (r record) earlier(o record) int {
	if c := r.created.Compare(o.created); c != 0 {
		return c
	}
	return compareIDs(r.thought, o.thought)
}

// compare orders records as Scan does. No two thoughts are equal.
func (r record) compare(o record) int { return r.place().compare(o.place()) }

// place is where a record stands in the order of its agent.
type place struct {
	Session string `json:"s"`
	Seq     int64  `json:"q"`
	// Created is in Unix nanoseconds, Index the index in the batch.
	Created int64  `json:"c"`
	Index   int    `json:"i"`
	Thought string `json:"t"`
}

func (r record) place() place {
	var created int64
	if !r.created.IsZero() {
		created = r.created.UnixNano()
	}
	return place{r.entry.Session, r.entry.Seq, created, r.batch.Index, r.thought}
}

func (p place) compare(o place) int {
	if c := cmp.Or(strings.Compare(p.Session, o.Session), cmp.Compare(p.Seq, o.Seq), cmp.Compare(p.Created, o.Created), cmp.Compare(p.Index, o.Index)); c != 0 {
		return c
	}
	return compareIDs(p.Thought, o.Thought)
}

// compareIDs orders ids that count up as numbers, others as text.
func compareIDs(a, b string) int {
	if digits(a) && digits(b) {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	}
	return strings.Compare(a, b)
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
