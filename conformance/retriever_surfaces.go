package conformance

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
)

// failing is how many calls of a store fail: one of several scopes, because a retriever may leave alone for a while whom it saw fail again and again.
func failing(q core.Query) int {
	if len(q.Granted) > 0 {
		return 1
	}
	return 1000
}

// marked begins with a word that no error can hold by accident.
func marked(prompt string) string { return markOf(9, 9) + " " + prompt }

// retrieveSurfaces attaches the retriever to a store that fails for a while.
func retrieveSurfaces(r *retrieverRun) string {
	a, ok := r.retriever.(core.Attacher)
	if !ok {
		return ""
	}
	r.steps = append(r.steps, ordinary(9))
	faults := &faults{}
	// As Env.Wrap does, companions are shown.
	if err := a.Attach(Env{faults: faults}.Wrap(r.store)); err != nil {
		return fmt.Sprintf("Attach: error %v, want none", err)
	}
	if text := r.fill(); text != "" {
		return text
	}
	for at := range 4 {
		for n, change := range wider { // what is granted can fail alone
			q := r.query((at+n)%3, marked(queries[0]))
			change(&q)
			want, err := r.answer(r.retriever, q)
			if err != nil {
				return fmt.Sprintf("Retrieve: error %v, want none", err)
			}
			faults.armAfter(faultScan, at, failing(q))
			got, err := r.retrieve(r.ctx(), r.retriever, q)
			if text := surfaced(got, want, err, faults.disarm()); text != "" {
				return fmt.Sprintf("Retrieve in %+v over a store that fails after %d calls: %s", q.Scopes(), at, text)
			}
			if text := r.recovers(q, len(want)); text != "" {
				return text
			}
		}
	}
	return inTurn(r.failsOn, r.failedFirst)
}

// surfaced looks at an answer over a store of which some calls failed, against the one there is when none does.
func surfaced(got, want []core.Candidate, err error, struck int) string {
	if kindless(err) {
		return fmt.Sprintf("error %v, want one that wraps one of core's", err)
	}
	if d := sameIDs(candidateIDs(got), candidateIDs(want)); err == nil && struck > 0 && d != "" {
		return "no error, and candidates: " + d
	}
	// Where a single call failed, one of several agents was read.
	agents := map[string]bool{}
	for _, c := range want {
		agents[c.Entry.Agent] = true
	}
	if errors.Is(err, core.ErrPartial) && struck == 1 && len(agents) > 1 && len(got) == 0 {
		return fmt.Sprintf("an error that wraps core.ErrPartial, and none of the %d candidates of %d agents that there are, of which one could not be read: %v", len(want), len(agents), err)
	}
	return ""
}

// recovers asks on until what failed for a while is back.
func (r *retrieverRun) recovers(q core.Query, was int) string {
	for tries := 0; ; tries++ {
		q.Now = q.Now.Add(time.Hour)
		again, err := r.answer(r.retriever, q)
		if err == nil && len(again) >= min(was, 1) {
			return ""
		}
		if tries == 5 {
			return fmt.Sprintf("Retrieve after the store failed: %d candidates, error %v, was %d", len(again), err, was)
		}
	}
}

// failsOn asks turn after turn while the store fails, one that has read it or, in every other case, one that has not: who is left alone by then has not found nothing.
func (r *retrieverRun) failsOn() string {
	cold := len(r.all)%2 > 0
	faults := &faults{}
	other, text := r.attached(Env{faults: faults}.Wrap(r.store))
	if text != "" {
		return text
	}
	var asked []core.Query
	var want [][]string
	for n, change := range wider {
		q := r.query(n%3, marked(queries[0]))
		change(&q)
		got, err := r.answer(r.retriever, q)
		if err == nil && !cold {
			got, err = r.answer(other, q)
		}
		if err != nil {
			return fmt.Sprintf("Retrieve: error %v, want none", err)
		}
		asked, want = append(asked, q), append(want, candidateIDs(got))
	}
	faults.arm(faultScan, 1<<30)
	for turn := range 2 {
		for n, q := range asked {
			q.Granted = slices.Clone(q.Granted) // the retriever's own
			got, err := r.retrieve(r.ctx(), other, q)
			if kindless(err) {
				return fmt.Sprintf("Retrieve over a store that fails: error %v, want one that wraps one of core's", err)
			}
			if d := sameIDs(candidateIDs(got), want[n]); err == nil && d != "" {
				return fmt.Sprintf("Retrieve in %+v over a store that fails, in round %d of %d queries: no error, and candidates: %s", q.Scopes(), turn+1, len(asked), d)
			}
		}
	}
	return ""
}

// failedFirst lets a store fail while a retriever reads it for the first time.
func (r *retrieverRun) failedFirst() string {
	for at := range 4 {
		faults := &faults{}
		first, text := r.attached(Env{faults: faults}.Wrap(shortPages{r.store, 3}))
		if text != "" {
			return text
		}
		q := r.query(at%3, marked(queries[0]))
		wider[at](&q)
		want, err := r.answer(r.retriever, q)
		if err != nil {
			return fmt.Sprintf("Retrieve: error %v, want none", err)
		}
		faults.armAfter(faultScan, at, failing(q))
		got, err := r.retrieve(r.ctx(), first, q)
		if text := surfaced(got, want, err, faults.disarm()); text != "" {
			return fmt.Sprintf("the first Retrieve over a store that fails after %d calls: %s", at, text)
		}
		for tries := 0; ; tries++ {
			q.Now = q.Now.Add(time.Hour)
			again, err := r.answer(first, q)
			want, failed := r.answer(r.retriever, q)
			if failed != nil {
				return fmt.Sprintf("Retrieve: error %v, want none", failed)
			}
			d := sameIDs(candidateIDs(again), candidateIDs(want))
			if err == nil && d == "" {
				break
			}
			if tries == 5 {
				return fmt.Sprintf("Retrieve after the store failed, %d calls into the first: error %v, candidates against those of one that never saw it fail: %s", at, err, d)
			}
		}
	}
	return ""
}
