package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
)

// questions are those that one compaction asks a model.
type questions struct {
	ctx context.Context
	mu  sync.Mutex
	// all is how many there were, open how many have no answer yet, most how many were open at once, late how many began after the compaction's context had ended,
	// again how many of those had been asked before.
	all, open, most, late, again int
	texts                        map[string]bool
}

type questionsKey struct{}

func (q *questions) begin(text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all++
	q.open++
	if q.ctx.Err() == nil {
		q.most = max(q.most, q.open)
	} else {
		q.late++
		if q.texts[text] {
			q.again++
		}
	}
	if q.texts == nil {
		q.texts = make(map[string]bool)
	}
	q.texts[text] = true
}

func (q *questions) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open--
}

func (q *questions) tooLate() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.late
}

// askedAgain is how many that began too late had been asked before: whoever asks those has not just looked at the time, but at an answer.
func (q *questions) askedAgain() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.again
}

func (q *questions) number() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all
}

// atOnceMost is how many were open at once.
func (q *questions) atOnceMost() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.most
}

// lateQuestions is how many may begin after a context ended by itself: so many callers may just have looked at it.
const lateQuestions = 16

// place is where the time of a compaction ends: n counts what happens there.
type place struct {
	what string
	n    int
}

func (p place) String() string { return fmt.Sprintf("%s %d", p.what, p.n) }

// The places.
const (
	whileAsked  = "while a model is asked question"
	withAnswer  = "with answer"
	whenPublish = "when it has published"
	whenCounted = "when it has counted texts, time"
)

// slowFirst is how many questions take a moment where it counts how many are asked at once.
const slowFirst = 3

// some are up to k numbers of from to to: the first and the last ones, and others between.
func some(from, to, k int) []int {
	var out []int
	for i := range k {
		if n := from + (to-from)*i/max(k-1, 1); n >= from && n <= to && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	for n := from; n <= min(to, from+1); n++ {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// outcome is what a compaction did, of which time was over at a place; or at none.
type outcome struct {
	task      core.Compaction
	patches   []core.Patch
	err       error
	answers   int // before its end
	asked     *questions
	published int
	counted   int
}

// summaries counts the texts of a model that stand for entries.
func summaries(patches []core.Patch) int {
	n := 0
	for _, p := range patches {
		for _, rep := range p.Replace {
			if rep.Kind == "summary" && len(rep.Entries) > 0 {
				n++
			}
		}
	}
	return n
}

// goes lets a new compactor compact long texts; its time is over at a place.
func (r *compactorRun) goes(at place) outcome {
	var out outcome
	of, _ := r.open(r.tb, r.model).(*eachCall)
	ctx, cancel := cancellable(r.ctx())
	defer cancel()
	before := r.model.gave()
	over := false
	var mu sync.Mutex
	end := func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			over, out.answers = true, r.model.gave()-before
			cancel()
		}
	}
	happens := func(what string, n *int) {
		mu.Lock()
		*n++
		ends := at.what == what && *n == at.n
		mu.Unlock()
		if ends {
			end()
		}
	}
	r.set(Honest)
	switch at.what {
	case whileAsked:
		r.model.overAfter(at.n-1, end)
	case withAnswer:
		r.model.overWith(at.n, end)
	}
	out.task = r.task(true)
	publish := out.task.Publish
	out.task.Publish = func(ctx context.Context, p core.Patch) error {
		err := publish(ctx, p)
		happens(whenPublish, &out.published)
		return err
	}
	out.task.Count = func(s string) int {
		happens(whenCounted, &out.counted)
		return r.count(s)
	}
	p, err := of.Compact(ctx, out.task)
	mu.Lock()
	defer mu.Unlock()
	if at.what == withAnswer && over { // the last one comes when its time is over: whoever does not wait for models that do not look at it has gone
		out.answers--
	}
	out.patches, out.err, out.asked = r.all(p), err, of.last.Load()
	return out
}

// ends lets the time of a compaction be over at one place after the other, and looks at what became of it. whole is one that has all the time.
func (r *compactorRun) ends(look func(at place, whole, got outcome) string) string {
	defer r.model.Set(Honest)
	r.pieces = longTexts()
	calls := r.model.Calls()
	// Who asks several at once shows it where the first answers take a moment; who is suspected is given longer for it.
	r.model.slowly(slowFirst, 25*time.Millisecond)
	whole := r.goes(place{})
	r.model.slowly(0, 0)
	if whole.err != nil {
		return fmt.Sprintf("Compact: error %v, want none", whole.err)
	}
	asked := r.model.Calls() - calls
	if asked == 0 {
		return ""
	}
	var places []place
	for what, n := range map[string]int{whileAsked: asked, withAnswer: asked, whenPublish: whole.published, whenCounted: whole.counted} {
		for _, n := range some(1, n, 3) {
			places = append(places, place{what, n})
		}
	}
	sure := false
	for _, at := range places {
		got := r.goes(at)
		if got.err != nil && !errors.Is(got.err, context.Canceled) {
			return fmt.Sprintf("its time is over %s: error %v, want none or context.Canceled", at, got.err)
		}
		text := look(at, whole, got)
		if text != "" && !sure {
			sure = true
			r.model.slowly(slowFirst, 400*time.Millisecond)
			whole.asked = r.goes(place{}).asked
			r.model.slowly(0, 0)
			text = look(at, whole, got)
		}
		if text != "" {
			return fmt.Sprintf("its time is over %s of %d questions: %s", at, asked, text)
		}
	}
	return ""
}

// asksNoMore looks for questions that began after a compaction's time was over. Of those that are asked at once, others may just have looked at the time.
func asksNoMore(_ place, whole, got outcome) string {
	if n := got.asked.tooLate(); n > whole.asked.atOnceMost()-1 {
		return fmt.Sprintf("a model is asked %d times more", n)
	}
	if n := got.asked.askedAgain(); n > 0 {
		return fmt.Sprintf("a model is asked again what it had been asked: %d times", n)
	}
	return ""
}
