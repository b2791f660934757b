package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// lazy is a searcher that reads what there is, and answers when it is let.
type lazy struct {
	troubled
	let chan struct{}
}

func (s *lazy) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	hits, err := s.troubled.Search(ctx, q)
	select {
	case <-s.let:
		return hits, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

const (
	// keptTime is what a query has whose searcher is lazy.
	keptTime = 20 * time.Millisecond
	// keepsNothing is how long a check waits for one that is known to keep nothing.
	keepsNothing = 5 * time.Millisecond
)

// lateKept looks at retrievers that keep what comes when nobody waits for it any more: it is for the same query alone, and not for ever.
func lateKept(r *retrieverRun) string {
	patience := lateFor
	narrow := func(*core.Query) {}
	all := func(q *core.Query) { q.Scope.Session = "" }
	granted := func(q *core.Query) { q.Granted = []core.Scope{sessionOf(2).Scope()} }
	for _, c := range []struct {
		who   int
		first func(*core.Query)
	}{{1, narrow}, {2, narrow}, {0, all}, {0, granted}} {
		first, second := r.query(0, troubling), r.query(c.who, troubling)
		c.first(&first)
		scopes := second.Scopes()
		retriever, lazy := r.askedLazy(first)
		close(lazy.let)
		r.awaitLate(retriever, first, &patience)
		got, _ := r.retrieve(r.ctx(), retriever, second)
		for _, one := range got {
			if !slices.ContainsFunc(scopes, func(s core.Scope) bool { return s.Contains(one.Entry.SessionID()) }) {
				return fmt.Sprintf("asked in %+v when a searcher's answer to the same prompt in others came late: candidate %q is of session %s", scopes, one.Entry.ID, one.Entry.SessionID())
			}
		}
	}
	for _, before := range []bool{false, true} {
		if text := r.lateChanged(before, patience); text != "" {
			return text
		}
	}
	return ""
}

// askedLazy asks over a searcher that answers when the time is over.
func (r *retrieverRun) askedLazy(q core.Query) (core.Retriever, *lazy) {
	behind := &lazy{troubled: troubled{store: r.store}, let: make(chan struct{})}
	retriever := r.over(r.tb, map[string]core.Searcher{"lazy": behind, "sound": &troubled{store: r.store}})
	ctx, cancel := context.WithTimeout(r.ctx(), keptTime)
	defer cancel()
	q.Granted = slices.Clone(q.Granted) // the retriever's own
	_, _ = r.retrieve(ctx, retriever, q)
	return retriever, behind
}

// awaitLate waits until a retriever says that something is late: the searcher says nothing of that kind, so it is what was kept.
func (r *retrieverRun) awaitLate(of core.Retriever, q core.Query, patience *time.Duration) {
	late, ok := of.(core.LateRetriever)
	for end := time.Now().Add(*patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if ok && late.Late(q) {
			return
		}
	}
	*patience = keepsNothing
}

// lateChanged changes what a late answer holds, and tells of it, once that came or before: asked again, all is as it is stored.
func (r *retrieverRun) lateChanged(before bool, patience time.Duration) string {
	own := r.make(batch{Entries: make([]entrySpec, 8)})
	for i := range own {
		own[i].Message = message.New(message.User, troubling+" "+markOf(9, i))
		own[i].Fingerprint = message.Fingerprint(own[i].Message)
	}
	if text := r.tell(own); text != "" {
		return text
	}
	q := r.query(0, troubling)
	retriever, lazy := r.askedLazy(q)
	o, ok := retriever.(core.Observer)
	if !ok {
		return ""
	}
	arrive := func() string {
		close(lazy.let)
		r.awaitLate(retriever, q, &patience)
		return ""
	}
	change := func() string {
		var changes []change
		for i, e := range own {
			c, text := r.changeOne(e, []kind{deleted, rewritten, emptied, hushed}[i%4], markOf(9, r.made+i))
			if text != "" {
				return text
			}
			changes = append(changes, c)
		}
		return r.tellAll(o, changes)
	}
	steps, when := []func() string{arrive, change}, "after a searcher's answer came late"
	if before {
		slices.Reverse(steps)
		when = "before a searcher's answer came late"
	}
	if text := inTurn(steps...); text != "" {
		return text
	}
	got, _ := r.retrieve(r.ctx(), retriever, q)
	for _, c := range got {
		if c.Entry.Hidden() {
			return fmt.Sprintf("told what changed %s, and asked the same again: candidate %q is hidden", when, c.Entry.ID)
		}
	}
	if text := r.asStored(q, got); text != "" {
		return fmt.Sprintf("told what changed %s, and asked the same again: %s", when, text)
	}
	return ""
}
