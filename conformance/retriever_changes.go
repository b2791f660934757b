package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// kind is what becomes of an entry, and what an Observer is told of it.
type kind int

const (
	deleted kind = iota
	rewritten
	emptied
	// returned was erased, and its id was used again.
	returned
	added
	// described says the same, with other metadata.
	described
	// hushed says the same, and is not recalled any more.
	hushed
	kinds
)

func (k kind) String() string {
	return [...]string{"erased", "rewritten", "emptied", "erased and stored again", "added", "described anew", "hidden"}[k]
}

// change is what became of an entry: now is nil where it was erased.
type change struct {
	was core.Entry
	now *core.Entry
	// again says that it was erased and that its id was used again, added that it was not there before.
	again, added bool
}

// changeAll does to entries what their kinds say, three by three and kind by kind, and adds some where that is one of them. It tells nobody.
func (r *retrieverRun) changeAll(all []core.Entry, of ...kind) (out []change, text string) {
	adds := slices.Contains(of, added)
	of = slices.DeleteFunc(slices.Clone(of), func(k kind) bool { return k == added })
	for i, e := range all {
		if len(of) == 0 {
			break
		}
		c, text := r.changeOne(e, of[i/3%len(of)], markOf(9, r.made+i))
		if text != "" {
			return nil, text
		}
		out = append(out, c)
	}
	if !adds {
		return out, ""
	}
	for _, e := range r.make(ordinary(3)) {
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return nil, fmt.Sprintf("Append of %q: error %v, want none", e.ID, err)
		}
		out = append(out, change{was: e, now: &e, added: true})
	}
	return out, ""
}

// changeOne does to an entry what a kind says. What it says then has the mark.
func (r *retrieverRun) changeOne(e core.Entry, k kind, mark string) (change, string) {
	scope, out := e.SessionID().Scope(), change{was: e}
	said := message.New(e.Role, mark+" the budget report moved again to friday")
	var c core.Change
	switch k {
	case deleted, returned:
		if _, err := r.store.Delete(r.ctx(), scope, []string{e.ID}); err != nil {
			return out, fmt.Sprintf("Delete(%q): error %v, want none", e.ID, err)
		}
		if out.again = k == returned; out.again {
			again := cloneEntries([]core.Entry{e})[0]
			again.Message, again.Fingerprint = said, message.Fingerprint(said)
			if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{again})); err != nil {
				return out, fmt.Sprintf("Append of %q, which was erased: error %v, want none", e.ID, err)
			}
			out.now = &again
		}
		return out, ""
	case emptied:
		empty := message.New(e.Role, "")
		c = core.Change{Message: &empty, Fingerprint: "x" + e.ID, Type: core.TypeErased, Key: "x:" + e.ID}
	case described:
		c = core.Change{Meta: map[string]string{"said": "before"}}
	case hushed:
		c = core.Change{Type: core.TypeHeartbeat}
	default:
		c = core.Change{Message: &said, Tokens: 14, Fingerprint: message.Fingerprint(said)}
	}
	if err := r.store.Update(r.ctx(), scope, e.ID, c); err != nil {
		return out, fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
	}
	got, err := r.store.Get(r.ctx(), scope, []string{e.ID})
	if err != nil {
		return out, fmt.Sprintf("Get(%q): error %v, want none", e.ID, err)
	}
	out.now = &got[0]
	return out, ""
}

// words are what an Observer is told of change number n, call by call: of every other one in the scope of its agent.
func (c change) words(o core.Observer, n int) (out []func(context.Context) error) {
	scope := c.was.SessionID().Scope()
	if n%2 == 0 {
		scope.Session = ""
	}
	if c.now == nil || c.again {
		out = append(out, func(ctx context.Context) error { return o.Deleted(ctx, scope, []string{c.was.ID}) })
	}
	switch {
	case c.now == nil:
	case c.again || c.added:
		out = append(out, func(ctx context.Context) error { return o.Appended(ctx, cloneEntries([]core.Entry{*c.now})) })
	default:
		out = append(out, func(ctx context.Context) error { return o.Updated(ctx, c.now.Clone()) })
	}
	return out
}

// tellAll tells of changes, in their order.
func (r *retrieverRun) tellAll(o core.Observer, changes []change) string {
	for n, c := range changes {
		for _, word := range c.words(o, n) {
			if err := word(r.ctx()); err != nil {
				return fmt.Sprintf("told what became of %q: error %v, want none", c.was.ID, err)
			}
		}
	}
	return ""
}
