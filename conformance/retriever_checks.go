package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func retrieveOnce(r *retrieverRun) string {
	if text := r.fillParted(); text != "" {
		return text
	}
	shown := func(id string) bool { return id[len(id)-1]%3 == 0 }
	for _, change := range wider {
		text := r.ask(func(q *core.Query) { q.InWindow, q.Limit = shown, core.MaxPage; change(q) }, func(q core.Query, got []core.Candidate) string {
			seen := map[string]bool{}
			for _, c := range got {
				if seen[c.Entry.ID] {
					return fmt.Sprintf("%q comes twice, %+v are granted", c.Entry.ID, q.Granted)
				}
				if shown(c.Entry.ID) {
					return fmt.Sprintf("%q is in the window already, %+v are granted", c.Entry.ID, q.Granted)
				}
				seen[c.Entry.ID] = true
			}
			return ""
		})
		if text != "" {
			return text
		}
	}
	return ""
}

// wider are the scopes a query may look into: its session's, all of the agent's, and grants that open what is another's, its own, or the same twice, beside either.
var wider = []func(*core.Query){
	func(*core.Query) {},
	func(q *core.Query) { q.Scope.Session = "" },
	func(q *core.Query) { q.Granted = []core.Scope{sessionOf(1).Scope(), sessionOf(2).Scope()} },
	func(q *core.Query) {
		q.Granted = []core.Scope{{Agent: sessionOf(2).Agent}, sessionOf(2).Scope(), {Agent: sessionOf(0).Agent}, sessionOf(1).Scope(), sessionOf(1).Scope()}
	},
	func(q *core.Query) {
		q.Scope.Session, q.Granted = "", []core.Scope{sessionOf(1).Scope(), sessionOf(2).Scope()}
	},
	func(q *core.Query) { q.Scope.Session, q.Granted = "", []core.Scope{{Agent: sessionOf(2).Agent}} },
}

func retrieveOrder(r *retrieverRun) string {
	if text := r.fillAged(); text != "" {
		return text
	}
	n := 0
	text := r.ask(func(q *core.Query) { wider[n%len(wider)](q); n++ }, func(_ core.Query, got []core.Candidate) string { return bestFirst(got) })
	if text != "" {
		return text
	}
	// The scores of what is found by many words lie close together.
	for who := range 3 {
		for _, prompt := range r.wordy(who) {
			got, err := r.answer(r.retriever, r.query(who, prompt))
			if err != nil {
				break // others say so
			}
			if text := bestFirst(got); text != "" {
				return fmt.Sprintf("Retrieve(%q): %s", prompt, text)
			}
		}
	}
	return ""
}

// wordy are prompts of many words: what each entry of a session says, and more.
func (r *retrieverRun) wordy(who int) []string {
	var out []string
	for _, e := range r.entries[sessionOf(who)] {
		out = append(out, "what was it about "+e.Text()+", the budget report of friday")
	}
	return out
}

func bestFirst(got []core.Candidate) string {
	for i, c := range got {
		if math.IsNaN(c.Score) || math.IsInf(c.Score, 0) {
			return fmt.Sprintf("candidate %q has score %v", c.Entry.ID, c.Score)
		}
		if i > 0 && c.Score > got[i-1].Score {
			return fmt.Sprintf("of %d candidates number %d has score %v after %v", len(got), i, c.Score, got[i-1].Score)
		}
		if c.Source == "" {
			return fmt.Sprintf("candidate %q names no source", c.Entry.ID)
		}
	}
	return ""
}

func retrieveContent(r *retrieverRun) string {
	r.steps = append(r.steps, fullEach(), batch{Entries: []entrySpec{{Size: 400}, {Who: 1, Size: 4000}}})
	if text := r.fillOdd(); text != "" {
		return text
	}
	if text := r.ask(nil, r.asStored); text != "" || !core.ReadsStore(r.retriever) {
		return text
	}
	// Another process changes what is stored.
	for _, e := range cloneEntries(r.all) {
		if e.Hidden() {
			continue
		}
		now := message.New(e.Role, "they moved: "+e.Text())
		if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, core.Change{Message: &now, Tokens: e.Tokens + 3, Fingerprint: message.Fingerprint(now)}); err != nil {
			return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
		}
	}
	if text := r.settled(func() string { return r.ask(nil, r.asStored) }); text != "" {
		return "it says that it reads the store, where something was changed that it was not told of: " + text
	}
	return ""
}

// asStored looks whether candidates are as the store holds them.
func (r *retrieverRun) asStored(_ core.Query, got []core.Candidate) string {
	for _, c := range got {
		stored, err := r.store.Get(r.ctx(), c.Entry.SessionID().Scope(), []string{c.Entry.ID})
		if err != nil {
			return fmt.Sprintf("candidate %q cannot be read: %v", c.Entry.ID, err)
		}
		if d := sameEntries([]core.Entry{c.Entry}, stored); d != "" {
			return d
		}
	}
	return ""
}

func retrieveErased(r *retrieverRun) string {
	// What is asked afterwards was asked before.
	if text := r.each(nil, nothing); text != "" {
		return text
	}
	if text := r.readsBeside(nil); text != "" {
		return text
	}
	gone := map[string]bool{}
	remove := func(scope core.Scope, ids []string) string {
		if len(ids) == 0 {
			return ""
		}
		if _, err := r.store.Delete(r.ctx(), scope, slices.Clone(ids)); err != nil {
			return fmt.Sprintf("Delete(%q): error %v, want none", ids, err)
		}
		for _, o := range r.observers() {
			told := toldOf(ids)
			if err := o.Deleted(r.ctx(), scope, slices.Clone(told)); err != nil {
				return fmt.Sprintf("Deleted(%q): error %v, want none", told, err)
			}
		}
		for _, id := range ids {
			gone[id] = true
		}
		return ""
	}
	// Every other one goes: some alone, some together, some by their agent.
	several := map[core.Scope][]string{}
	for i, e := range r.all {
		scope := e.SessionID().Scope()
		if i%8 >= 4 {
			scope.Session = ""
		}
		switch i % 4 {
		case 0:
			if text := remove(scope, []string{e.ID}); text != "" {
				return text
			}
		case 2, 3:
			several[scope] = append(several[scope], e.ID)
		}
	}
	for scope, ids := range several {
		if text := remove(scope, ids); text != "" {
			return text
		}
	}
	for id, entries := range r.entries {
		r.entries[id] = slices.DeleteFunc(entries, func(e core.Entry) bool { return gone[e.ID] })
	}
	text := r.both(func() string {
		return r.ask(nil, func(_ core.Query, got []core.Candidate) string {
			for _, c := range got {
				if gone[c.Entry.ID] {
					return fmt.Sprintf("candidate %q was erased", c.Entry.ID)
				}
			}
			return ""
		})
	})
	if text != "" {
		return text
	}
	return r.goneNext(func(e core.Entry) (*core.Entry, string) { return nil, remove(e.SessionID().Scope(), []string{e.ID}) })
}

// toldOf are ids as somebody erases them: one stands twice, and before it and between there is one that nobody knows any more.
func toldOf(ids []string) []string {
	const gone = "E-gone-before"
	return slices.Concat([]string{gone, ids[0], gone}, ids, []string{gone})
}

func retrieveHeartbeat(r *retrieverRun) string {
	r.steps = append(r.steps, batch{Entries: []entrySpec{{Size: 6, Shape: 23}, {Who: 2, Size: 6, Shape: 23}}})
	if text := r.fillLeading(); text != "" {
		return text
	}
	return r.ask(nil, func(_ core.Query, got []core.Candidate) string {
		for _, c := range got {
			switch {
			case c.Entry.Type == core.TypeHeartbeat:
				return fmt.Sprintf("candidate %q is a heartbeat", c.Entry.ID)
			case c.Entry.Hidden():
				return fmt.Sprintf("candidate %q is hidden: a system message from the beginning of a transcript", c.Entry.ID)
			}
		}
		return ""
	})
}

func isolationRetrieve(r *retrieverRun) string {
	r.steps = append(r.steps, ordinary(6))
	n := len(r.steps)
	if text := r.fill(); text != "" {
		return text
	}
	for _, granted := range grantings(n) {
		for who := range 6 {
			n++
			q := r.query(who%3, queries[n%2])
			q.Granted = slices.Clone(granted) // a query is the retriever's own
			if who >= 3 {
				q.Scope.Session = ""
			}
			scopes := q.Scopes()
			got, err := r.answer(r.retriever, q)
			if err != nil {
				return fmt.Sprintf("Retrieve(%q in %+v): error %v, want none", q.Prompt, scopes, err)
			}
			for _, c := range got {
				if !slices.ContainsFunc(scopes, func(s core.Scope) bool { return s.Contains(c.Entry.SessionID()) }) {
					return fmt.Sprintf("Retrieve(%q in %+v): candidate %q is of session %s", q.Prompt, scopes, c.Entry.ID, c.Entry.SessionID())
				}
			}
		}
	}
	return ""
}

// grantings are nothing, each session and agent alone, and a few of the pairs: others for each n.
func grantings(n int) [][]core.Scope {
	single := []core.Scope{sessionOf(0).Scope(), sessionOf(1).Scope(), sessionOf(2).Scope(), {Agent: sessionOf(0).Agent}, {Agent: sessionOf(2).Agent}}
	out := [][]core.Scope{nil}
	for i, one := range single {
		out = append(out, []core.Scope{one})
		if (n+i)%2 == 0 {
			out = append(out, []core.Scope{one, single[(i+1+n%4)%len(single)]})
		}
	}
	return out
}

func deterministicRetrieve(r *retrieverRun) string {
	// More than a limit of one score and one time: which of them come, and in which order, stays the same.
	if text := r.tellAlike(36); text != "" {
		return text
	}
	n := 0
	return r.each(func(q *core.Query) { wider[n%len(wider)](q); n++ }, func(q core.Query, got []core.Candidate) string {
		again, err := r.answer(r.retriever, q)
		if err != nil {
			return fmt.Sprintf("the second time: error %v", err)
		}
		ids := func(cs []core.Candidate) []string {
			out := make([]string, len(cs))
			for i, c := range cs {
				out[i] = fmt.Sprintf("%s %v %q", c.Entry.ID, c.Score, c.Text)
			}
			return out
		}
		if d := sameIDs(ids(again), ids(got)); d != "" {
			return "the second time: " + d
		}
		return ""
	})
}

func cancelRetrieve(r *retrieverRun) string {
	r.steps = append(r.steps, ordinary(6))
	if text := r.fill(); text != "" {
		return text
	}
	ctx, cancel := cancellable(r.ctx())
	cancel()
	if _, err := r.retrieve(ctx, r.retriever, r.query(0, queries[0])); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("Retrieve with a cancelled context: error %v, want none or context.Canceled", err)
	}
	return inTurn(r.cancelSlow, r.cancelBeside, r.cancelFirst, r.cancelFailing)
}

func retrieveShare(r *retrieverRun) string {
	s, _ := r.retriever.(core.Sharer)
	first := s.RecallShare()
	if first < 0 || first > 0.5 {
		return fmt.Sprintf("RecallShare() = %v, want 0 to 0.5", first)
	}
	again := func(core.Query, []core.Candidate) string {
		if next := s.RecallShare(); next != first {
			return fmt.Sprintf("RecallShare() = %v, then %v", first, next)
		}
		return ""
	}
	unasked := func() string { return again(core.Query{}, nil) }
	return inTurn(r.fill, unasked, func() string { return r.ask(nil, again) })
}
