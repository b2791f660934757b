package conformance

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

func toldRetrieverChecks() []Check {
	needs := []Need{NeedAttacher, NeedObserver}
	return []Check{
		{ID: "retrieve.told", Promise: 6, Suite: SuiteRetriever, retriever: retrieveTold, dear: true, Needs: needs,
			Rule: "what a retriever is told of after it has read the store, and while it reads it, it finds as one does that reads all of it: each entry of a batch, of one session and of several at the same time"},
		{ID: "retrieve.pages", Promise: 6, Suite: SuiteRetriever, retriever: retrievePages, once: true, Needs: []Need{NeedAttacher},
			Rule: "a retriever that is attached reads all there is: more entries than a page holds, and to the end, which an empty Next says and no short page"},
	}
}

// shortPages is a store whose pages end early, as they may: Next alone says whether there is more.
type shortPages struct {
	core.Store
	most int
}

func (s shortPages) Unwrap() core.Store { return s.Store }

func (s shortPages) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	q.Limit = min(q.Limit, s.most)
	return s.Store.Scan(ctx, q)
}

// attached makes another retriever, over a store.
func (r *retrieverRun) attached(store core.Store) (core.Retriever, string) {
	second, _ := r.open(r.tb)
	a, ok := second.(core.Attacher)
	if !ok {
		return nil, fmt.Sprintf("one retriever is a core.Attacher, the next, a %T, is none", second)
	}
	if err := a.Attach(store); err != nil {
		return nil, fmt.Sprintf("Attach to a store with %d entries: error %v, want none", len(r.all), err)
	}
	return second, ""
}

// readsBeside lets another retriever read what is stored: it hears of none of it, but of the changes that come.
func (r *retrieverRun) readsBeside(change func(*core.Query)) string {
	_, attaches := r.retriever.(core.Attacher)
	if _, ok := r.observer(); !ok || !attaches {
		return ""
	}
	second, text := r.attached(r.store)
	if text != "" {
		return text
	}
	r.beside = second
	return r.by(second, func() string { return r.ask(change, nothing) })
}

// observers returns the retrievers that are told of changes.
func (r *retrieverRun) observers() (out []core.Observer) {
	for _, retriever := range []core.Retriever{r.retriever, r.beside} {
		if o, ok := retriever.(core.Observer); ok {
			out = append(out, o)
		}
	}
	return out
}

// by does something with another retriever in the place of the first.
func (r *retrieverRun) by(other core.Retriever, do func() string) string {
	first := r.retriever
	r.retriever = other
	defer func() { r.retriever = first }()
	return do()
}

// both looks at the answers of the retriever, and of the one beside it.
func (r *retrieverRun) both(look func() string) string {
	if text := r.settled(look); text != "" || r.beside == nil {
		return text
	}
	if text := r.by(r.beside, func() string { return r.settled(look) }); text != "" {
		return "of one that read what was stored, and was told of what became of it alone: " + text
	}
	return ""
}

// like holds the answers of another retriever against the first one's; what says which it is.
func (r *retrieverRun) like(second core.Retriever, what string) string {
	same := func(q core.Query, got []core.Candidate) string {
		other, err := r.answer(second, q)
		if err != nil {
			return fmt.Sprintf("of one %s: error %v, want none", what, err)
		}
		if d := sameIDs(candidateIDs(other), candidateIDs(got)); d != "" {
			return "of one " + what + ": " + d
		}
		return ""
	}
	return r.settled(func() string {
		if text := r.ask(roomyLimit, same); text != "" {
			return text
		}
		return r.ask(func(q *core.Query) { roomyLimit(q); q.Scope.Session = "" }, same)
	})
}

// likeMarks is like for the words of single entries.
func (r *retrieverRun) likeMarks(second core.Retriever, what string, entries []core.Entry) string {
	return r.settled(func() string {
		for _, e := range entries {
			for _, mark := range marksIn(e.Text()) {
				q := r.query(0, mark)
				q.Session, q.Scope, q.Recent, q.Limit = e.SessionID(), core.Scope{Agent: e.Agent}, nil, core.MaxPage
				got, err := r.answer(r.retriever, q)
				if err != nil {
					return fmt.Sprintf("Retrieve(%q): error %v, want none", mark, err)
				}
				other, err := r.answer(second, q)
				if err != nil {
					return fmt.Sprintf("Retrieve(%q) of one %s: error %v, want none", mark, what, err)
				}
				if d := sameIDs(candidateIDs(other), candidateIDs(got)); d != "" {
					return fmt.Sprintf("Retrieve(%q), the word of %q, of one %s: %s", mark, e.ID, what, d)
				}
				if d := r.asStored(q, other); d != "" {
					return fmt.Sprintf("Retrieve(%q), the word of %q, of one %s: %s", mark, e.ID, what, d)
				}
			}
		}
		return ""
	})
}

// tell appends a batch and tells retrievers of it, those that hear.
func (r *retrieverRun) tell(batch []core.Entry, to ...core.Retriever) string {
	if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); err != nil {
		return fmt.Sprintf("Append of %d valid entries: error %v, want none", len(batch), err)
	}
	for _, retriever := range to {
		if o, ok := retriever.(core.Observer); ok {
			if err := o.Appended(r.ctx(), cloneEntries(batch)); err != nil {
				return fmt.Sprintf("Appended of %d entries: error %v, want none", len(batch), err)
			}
		}
	}
	return ""
}

// nothing checks no answer: what counts is that it was asked.
func nothing(core.Query, []core.Candidate) string { return "" }

func retrieveTold(r *retrieverRun) string {
	if text := r.each(nil, nothing); text != "" {
		return text
	}
	several := r.make(ordinary(8))
	if text := r.tell(several, r.retriever); text != "" {
		return text
	}
	r.remember(several)
	second, text := r.attached(r.store)
	if text == "" {
		text = r.like(second, "that was attached after the first had read the store and was told of a batch more")
	}
	if text != "" {
		return text
	}
	// As an engine tells: each session from a goroutine of its own. One retriever has read the store, one is asked for the first time meanwhile.
	asked, text := r.attached(r.store)
	if text != "" {
		return text
	}
	const sessions, rounds = 3, 6
	var told [sessions][][]core.Entry
	for range rounds {
		for who := range told {
			b := r.make(batch{Entries: []entrySpec{{Who: who, Size: 7}, {Who: who, Size: 8}, {Who: who, Size: 9}}})
			told[who] = append(told[who], b)
			r.remember(b)
		}
	}
	text = atOnce(sessions+1, func(i int) string {
		if i == sessions {
			if _, err := r.answer(asked, r.query(0, queries[0])); err != nil {
				return fmt.Sprintf("Retrieve while others append: error %v, want none", err)
			}
			return ""
		}
		for _, b := range told[i] {
			if text := r.tell(b, r.retriever, asked); text != "" {
				return text
			}
		}
		return ""
	})
	if text != "" {
		return text
	}
	if second, text = r.attached(r.store); text != "" {
		return text
	}
	if text := r.like(second, "that was attached after the first was told of several sessions at the same time"); text != "" {
		return text
	}
	return r.like(asked, "that was asked for the first time while it was told")
}

// retrievePages stores more entries for one agent than a page may hold, in pages that end early.
func retrievePages(r *retrieverRun) string {
	const n, most, each = core.MaxPage + 150, 400, 250
	for from := 0; from < n; from += each {
		b := batch{Entries: make([]entrySpec, min(each, n-from))}
		for i := range b.Entries {
			b.Entries[i] = entrySpec{Who: i % 2, Size: 3 + i%5}
		}
		r.steps = append(r.steps, b)
	}
	// It has read the empty store, and is told of each.
	if text := r.ask(nil, nothing); text != "" {
		return text
	}
	if text := r.fill(); text != "" {
		return text
	}
	second, text := r.attached(shortPages{r.store, most})
	if text != "" {
		return text
	}
	// An index may take its time over many: it is asked some times before its answers count.
	for range 5 {
		for _, one := range []core.Retriever{r.retriever, second} {
			if _, err := r.answer(one, r.query(0, queries[0])); err != nil {
				return fmt.Sprintf("Retrieve over %d entries: error %v, want none", n, err)
			}
		}
	}
	var some []core.Entry
	for i := 0; i < len(r.all); i += len(r.all) / 12 {
		some = append(some, r.all[i])
	}
	return r.likeMarks(second, "that was attached later", append(some, r.all[len(r.all)-1]))
}
