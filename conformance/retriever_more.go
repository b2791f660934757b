package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func moreRetrieverChecks() []Check {
	return []Check{
		{ID: "retrieve.limit", Suite: SuiteRetriever, retriever: retrieveLimit, dear: true,
			Rule: "a retriever returns at most Limit candidates, with finite scores, best first, whatever the limit"},
		{ID: "retrieve.text", Promise: 2, Suite: SuiteRetriever, retriever: retrieveText,
			Rule: "the text of a candidate is a quotation of its entry: nothing that nobody said, and nothing that a client put in (Entry.Text, not Message.Text)"},
		{ID: "retrieve.updated", Promise: 2, Suite: SuiteRetriever, retriever: retrieveUpdated,
			Rule: "after an update a candidate is the entry as it is now, and an entry that was emptied, or is hidden by now, is none any more"},
		{ID: "retrieve.granted", Promise: 8, Suite: SuiteRetriever, retriever: retrieveGranted, once: true,
			Rule: "a grant is exactly as wide as it says, beside a session and beside all of an agent: what is found in a session is found where that session is granted, and nothing beside it"},
		{ID: "retrieve.surfaces", Promise: 9, Suite: SuiteRetriever, retriever: retrieveSurfaces,
			Rule: "a store that fails is no store without entries: an error surfaces that wraps one of core's, turn after turn while it lasts, with what others found where it says core.ErrPartial, and when it is over the candidates are back"},
		{ID: "retrieve.concurrent", Promise: 6, Suite: SuiteRetriever, retriever: retrieveConcurrent, dear: true,
			Rule: "several queries at the same time get what each of them gets alone, and one that is told of changes beside them knows all of them in the end"},
		{ID: "retrieve.pure", Suite: SuiteRetriever, retriever: retrievePure,
			Rule: "a retriever changes nothing it is given, and what it returned belongs to the caller"},
		{ID: "retrieve.vacuous", Suite: SuiteRetriever, retriever: retrieveVacuous, once: true,
			Rule: "a retriever finds something in an ordinary conversation: one that never does was not tested (WithFindsNothing declares it)"},
	}
}

// observer returns the retriever as one that is told what happens.
func (r *retrieverRun) observer() (core.Observer, bool) {
	o, ok := r.retriever.(core.Observer)
	return o, ok
}

func retrieveLimit(r *retrieverRun) string {
	// One entry in each session, then several that nothing tells apart: where all are the same, what is divided by their spread is no number.
	for range 2 {
		if text := r.tellAlike(3 * (1 + len(r.all))); text != "" {
			return text
		}
		for _, change := range wider {
			if text := r.limited(core.MaxPage, change); text != "" {
				return text
			}
		}
	}
	r.steps = append(r.steps, ordinary(39))
	if text := r.fill(); text != "" {
		return text
	}
	for n, limit := range []int{1, 2, 3, 8, 11, 30, core.MaxPage} {
		if text := r.limited(limit, wider[n%len(wider)]); text != "" {
			return text
		}
	}
	return r.limitedMany()
}

// limited asks with a limit, and looks at number, scores and order of what comes.
func (r *retrieverRun) limited(limit int, change func(*core.Query)) string {
	return r.ask(func(q *core.Query) { q.Limit, q.Tokens = limit, 100000; change(q) }, soundCandidates)
}

// tellAlike appends entries of one time that say the same, turn by turn one in each session, and tells the retriever.
func (r *retrieverRun) tellAlike(n int) string {
	same := r.make(ordinary(n))
	for i := range same {
		e := &same[i]
		e.Time, e.Message = epoch, message.New(message.User, queries[0])
		e.Fingerprint = message.Fingerprint(e.Message)
	}
	if text := r.tell(same, r.retriever); text != "" {
		return text
	}
	r.remember(same)
	return ""
}

// ordinary is a batch of plain messages.
func ordinary(n int) batch {
	b := batch{Entries: make([]entrySpec, n)}
	for i := range b.Entries {
		b.Entries[i] = entrySpec{Who: i % 3, Size: 4 + i}
	}
	return b
}

// fullEach is a batch of an entry with every field in use for each session.
func fullEach() batch {
	return batch{Entries: []entrySpec{{Size: 12, Shape: fullShape}, {Who: 1, Size: 12, Shape: fullShape}, {Who: 2, Size: 12, Shape: fullShape}}}
}

func retrieveText(r *retrieverRun) string {
	r.steps = append(r.steps, ordinary(9))
	if text := inTurn(r.fillInjected, func() string { return r.fillSaying(append(blankless(), sentences()...)) }); text != "" {
		return text
	}
	return r.ask(roomyLimit, func(_ core.Query, got []core.Candidate) string {
		for _, c := range got {
			if utf8.ValidString(c.Entry.Text()) && !utf8.ValidString(c.Text) {
				return fmt.Sprintf("candidate %q quotes half a character: %.80q of %.80q", c.Entry.ID, c.Text, c.Entry.Text())
			}
			if strings.ContainsRune(c.Text, utf8.RuneError) && !strings.ContainsRune(c.Entry.Text(), utf8.RuneError) {
				return fmt.Sprintf("candidate %q quotes a character that is none: %.80q of %.80q", c.Entry.ID, c.Text, c.Entry.Text())
			}
			said := spoken(c.Entry.Text())
			for _, w := range spoken(c.Text) {
				// A passage may begin and end within a word.
				at := slices.IndexFunc(said, func(s string) bool { return strings.Contains(s, w) })
				if at < 0 {
					return fmt.Sprintf("candidate %q quotes %.80q, its entry says %.80q: %q is not in it, or not in this order", c.Entry.ID, c.Text, c.Entry.Text(), w)
				}
				said = said[at+1:]
			}
		}
		return ""
	})
}

// spoken returns the words of a text.
func spoken(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func retrieveUpdated(r *retrieverRun) string {
	r.steps = append(r.steps, ordinary(18))
	// It has read everything once before anything changes.
	many := func(q *core.Query) { q.Limit = 100 }
	if text := r.fillLeading(); text != "" {
		return text
	}
	if text := r.ask(many, nothing); text != "" {
		return text
	}
	if text := r.readsBeside(many); text != "" {
		return text
	}
	hidden := map[string]bool{}
	now := map[string]core.Entry{}
	for i := range r.all {
		e := r.all[i]
		var c core.Change
		switch i % 6 {
		case 0, 3:
			m := message.New(e.Role, "")
			c = core.Change{Message: &m, Fingerprint: "x" + e.ID, Type: core.TypeErased, Key: "x:" + e.ID, Meta: map[string]string{}}
		case 1, 4:
			m := message.New(e.Role, "the budget report works again since friday, said anew in "+markOf(7, i))
			c = core.Change{Message: &m, Tokens: 20, Fingerprint: message.Fingerprint(m), Meta: map[string]string{"said": "anew"}}
			if e.Leads() {
				c.Meta = e.Meta
			}
		case 2: // it says the same, and is another: hidden, or described anew
			c.Meta = map[string]string{"said": "before"}
			if i/6%2 == 1 {
				c = core.Change{Type: core.TypeHeartbeat}
			}
		default:
			continue
		}
		got, text := r.update(e, c)
		if text != "" {
			return text
		}
		now[e.ID], hidden[e.ID] = *got, got.Hidden()
	}
	for id, entries := range r.entries {
		for i, e := range entries {
			if n, ok := now[e.ID]; ok {
				r.entries[id][i] = n
			}
		}
	}
	text := r.both(func() string {
		return r.ask(many, func(_ core.Query, got []core.Candidate) string {
			for _, c := range got {
				if hidden[c.Entry.ID] || c.Entry.Hidden() {
					return fmt.Sprintf("candidate %q was emptied, or is hidden", c.Entry.ID)
				}
				if want, ok := now[c.Entry.ID]; ok {
					if d := sameEntry(c.Entry, want); d != "" {
						return "after an update: " + d
					}
					// A passage may begin within a word.
					if words := spoken(c.Text); len(words) > 0 && !slices.ContainsFunc(spoken(want.Text()), func(s string) bool { return strings.Contains(s, words[0]) }) {
						return fmt.Sprintf("candidate %q quotes %.80q after an update to %.80q", c.Entry.ID, c.Text, want.Text())
					}
				}
			}
			return ""
		})
	})
	if text != "" {
		return text
	}
	if text := r.likeNow(now); text != "" {
		return text
	}
	return r.goneNext(func(e core.Entry) (*core.Entry, string) {
		m := message.New(e.Role, "the budget report moved to friday once more")
		return r.update(e, core.Change{Message: &m, Tokens: 14, Fingerprint: message.Fingerprint(m)})
	})
}

// likeNow holds a retriever that can be attached against one that reads what there is after changes.
func (r *retrieverRun) likeNow(changed map[string]core.Entry) string {
	if _, ok := r.retriever.(core.Attacher); !ok {
		return ""
	}
	const what = "that was attached after the updates"
	second, text := r.attached(r.store)
	if text == "" {
		text = r.like(second, what)
	}
	if text != "" {
		return text
	}
	var some []core.Entry
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		if e := changed[id]; e.Type != core.TypeErased && len(some) < 6 {
			some = append(some, e)
		}
	}
	return r.likeMarks(second, what, some)
}

// update changes an entry, tells a retriever with a memory of its own, and returns what is stored now.
func (r *retrieverRun) update(e core.Entry, c core.Change) (*core.Entry, string) {
	scope := e.SessionID().Scope()
	if err := r.store.Update(r.ctx(), scope, e.ID, c); err != nil {
		return nil, fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
	}
	got, err := r.store.Get(r.ctx(), scope, []string{e.ID})
	if err != nil {
		return nil, fmt.Sprintf("Get(%q): error %v, want none", e.ID, err)
	}
	for _, o := range r.observers() {
		if err := o.Updated(r.ctx(), got[0]); err != nil {
			return nil, fmt.Sprintf("Updated(%q): error %v, want none", e.ID, err)
		}
	}
	return &got[0], ""
}

// retrieveGranted fills sessions whose names are alike with the same words, and asks from one with another one granted.
func retrieveGranted(r *retrieverRun) string {
	home := core.SessionID{Agent: "ann", Session: "home"}
	names := alikeNames()
	for _, by := range []string{"a", "b"} { // several hundred bytes are allowed
		names = append(names, core.SessionID{Agent: strings.Repeat("n", 300) + by, Session: "main"})
	}
	names = append(names, home)
	// What is returned for many says how many candidates are returned at most.
	many := core.SessionID{Agent: "ann", Session: "many"}
	// Others' agents have a session that nobody is granted.
	var beside []core.SessionID
	for _, id := range names {
		if id.Agent != home.Agent {
			beside = append(beside, core.SessionID{Agent: id.Agent, Session: "beside"})
		}
	}
	n, most := 0, 0
	for _, id := range slices.Concat(names, beside, []core.SessionID{many}) {
		size := 3
		if id == many {
			size = 12
		}
		for i := range size {
			e := plainEntry(n, id, int64(i))
			m := message.New(message.User, fmt.Sprintf("%s the budget report moved to friday", markOf(8, n)))
			e.Message, e.Fingerprint = m, message.Fingerprint(m)
			e.Key = fmt.Sprintf("k%d", i) // what is one in a session may be another's too
			n++
			if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
				return fmt.Sprintf("Append into %q: error %v, want none", id, err)
			}
			r.remember([]core.Entry{e})
		}
	}
	if o, ok := r.observer(); ok {
		if err := o.Appended(r.ctx(), cloneEntries(r.all)); err != nil {
			return fmt.Sprintf("Appended: error %v, want none", err)
		}
	}
	ask := func(scope core.Scope, granted ...core.Scope) (map[core.SessionID]int, string) {
		q := core.Query{
			Session: home, Scope: scope, Granted: granted, Prompt: "when does the budget report move, to friday", Recent: cloneEntries(r.entries[home][2:]),
			InWindow: func(string) bool { return false }, Now: epoch.Add(time.Hour), Tokens: 100000, Limit: core.MaxPage,
		}
		scopes := q.Scopes() // what a query holds is the retriever's own
		got, err := r.answer(r.retriever, q)
		if err != nil {
			return nil, fmt.Sprintf("Retrieve in %+v with %+v granted: error %v, want none", scope, granted, err)
		}
		counts := map[core.SessionID]int{}
		for _, c := range got {
			id := c.Entry.SessionID()
			if !slices.ContainsFunc(scopes, func(s core.Scope) bool { return s.Contains(id) }) {
				return nil, fmt.Sprintf("Retrieve in %+v with %+v granted: candidate %q is of session %q of agent %q", scope, granted, c.Entry.ID, id.Session, id.Agent)
			}
			counts[id]++
		}
		most = max(most, len(got))
		return counts, ""
	}
	// lacks reports whether nothing of a session is there, although there was room for it: a retriever may return fewer than the limit.
	lacks := func(counts map[core.SessionID]int, of ...core.SessionID) bool {
		n := 0
		for _, c := range counts {
			n += c
		}
		return n < most && slices.ContainsFunc(of, func(id core.SessionID) bool { return counts[id] == 0 })
	}
	return r.settled(func() string {
		if _, text := ask(many.Scope()); text != "" {
			return text
		}
		alone, text := ask(home.Scope())
		if text != "" {
			return text
		}
		for _, id := range names[:len(names)-1] {
			// As granted first: nobody has asked in it then.
			got, text := ask(home.Scope(), id.Scope())
			if text != "" {
				return text
			}
			// Where recall reaches all of an agent's sessions a grant is no wider.
			if _, text := ask(core.Scope{Agent: home.Agent}, id.Scope()); text != "" {
				return text
			}
			own, text := ask(id.Scope())
			if text != "" {
				return text
			}
			if own[id] > 0 && lacks(got, id) {
				return fmt.Sprintf("Retrieve with session %q of agent %q granted finds nothing there, asked in it alone it finds %d", id.Session, id.Agent, own[id])
			}
			if alone[home] > 0 && lacks(got, home) {
				return "Retrieve with another session granted finds nothing in its own any more"
			}
		}
		// A whole agent, and two at once.
		if got, text := ask(home.Scope(), core.Scope{Agent: "Ann"}, names[2].Scope()); text != "" {
			return text
		} else if alone[home] > 0 && lacks(got, names[1], names[2]) {
			return fmt.Sprintf("Retrieve with two scopes granted finds %v", got)
		}
		got, text := ask(core.Scope{Agent: "ann"})
		if text == "" && alone[home] > 0 && len(got) < 2 && lacks(got, names[0], names[2]) {
			return fmt.Sprintf("Retrieve in all of an agent's sessions finds entries of %d", len(got))
		}
		return text
	})
}

func candidateTexts(cs []core.Candidate) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = fmt.Sprintf("%s %v %q %s", c.Entry.ID, c.Score, c.Text, c.Source)
	}
	return out
}

func retrievePure(r *retrieverRun) string {
	r.steps = append(r.steps, ordinary(6), fullEach())
	if o, ok := r.observer(); ok {
		if text := r.storeRun.fill(); text != "" {
			return text
		}
		given := cloneEntries(r.all)
		if err := o.Appended(r.ctx(), given); err != nil {
			return fmt.Sprintf("Appended: error %v, want none", err)
		}
		if d := sameEntries(given, r.all); d != "" {
			return "Appended changed what it was given: " + d
		}
		// Told once more, it knows nothing twice.
		if err := o.Appended(r.ctx(), cloneEntries(r.all)); err != nil {
			return fmt.Sprintf("Appended once more: error %v, want none", err)
		}
	} else if text := r.fill(); text != "" {
		return text
	}
	var before, first []core.Candidate
	return r.ask(roomy, func(q core.Query, got []core.Candidate) string {
		if text := r.roomyKept(q); text != "" {
			return text
		}
		if d := sameIDs(candidateTexts(before), candidateTexts(first)); d != "" {
			return "changed what it had returned before: " + d
		}
		seen := map[string]bool{}
		for _, c := range got {
			if seen[c.Entry.ID] {
				return fmt.Sprintf("%q comes twice", c.Entry.ID)
			}
			seen[c.Entry.ID] = true
		}
		want := candidateTexts(got)
		copies := make([]core.Entry, len(got))
		for i := range got {
			copies[i] = cloneEntries([]core.Entry{got[i].Entry})[0]
		}
		spoilt(got)
		for i := range q.Recent {
			q.Recent[i].Message = message.New(message.User, "spoilt")
		}
		again, err := r.answer(r.retriever, r.fresh(q))
		if err != nil {
			return fmt.Sprintf("the second time: error %v", err)
		}
		if d := sameIDs(candidateTexts(again), want); d != "" {
			return "after the caller changed what it had given and got: " + d
		}
		for i := range again {
			if d := sameEntry(again[i].Entry, copies[i]); d != "" {
				return "after the caller changed what it had given and got: " + d
			}
		}
		before, first = again, slices.Clone(again)
		none := r.fresh(q)
		none.InWindow = func(string) bool { return true }
		if rest, err := r.answer(r.retriever, none); err != nil || len(rest) > 0 {
			return fmt.Sprintf("with everything in the window: %d candidates, error %v, want none", len(rest), err)
		}
		return ""
	})
}

func retrieveVacuous(r *retrieverRun) string {
	if s, ok := r.retriever.(core.Sharer); ok && s.RecallShare() == 0 || r.nothing {
		return ""
	}
	r.steps = []batch{ordinary(24)}
	answered, asked := 0, 0
	text := r.settled(func() string {
		if text := r.ask0(&answered, &asked); text != "" {
			return text
		}
		if answered == 0 {
			return fmt.Sprintf("none of %d queries found anything in a conversation of %d messages", asked, len(r.all))
		}
		return ""
	})
	if text == "" {
		r.tb.Logf("%d of %d queries found something", answered, asked)
	}
	return text
}

func (r *retrieverRun) ask0(answered, asked *int) string {
	if len(r.all) == 0 {
		if text := r.fill(); text != "" {
			return text
		}
	}
	*answered, *asked = 0, 0
	for who := range 3 {
		for _, prompt := range slices.Concat(queries, r.wordy(who)) {
			q := r.query(who, prompt)
			q.Recent = nil
			got, err := r.answer(r.retriever, q)
			if err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Sprintf("Retrieve(%q): error %v, want none", prompt, err)
			}
			*asked++
			if len(got) > 0 {
				*answered++
			}
		}
	}
	return ""
}
