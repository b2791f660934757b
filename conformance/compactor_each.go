package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
)

// heard is what was seen in the calls of one case, whichever check made them: the first of it.
type heard struct {
	mu sync.Mutex
	// id is the check whose rule is broken, text what was seen.
	id, text string
}

func (h *heard) note(id, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text == "" {
		h.id, h.text = id, fmt.Sprintf(format, args...)
	}
}

func (h *heard) found() (id, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.id, h.text
}

// eachCall is a compactor of which every call is looked at. Each is given a task that is its own to write to, as the contract says, and a Publish that heeds its context.
type eachCall struct {
	core.Compactor
	*heard
	model *Model
	// owns is what OwnsCompaction returned first.
	owns bool
	// last are the questions of the last call.
	last atomic.Pointer[questions]
}

func newEachCall(c core.Compactor, m *Model, h *heard) *eachCall {
	return &eachCall{Compactor: c, heard: h, model: m, owns: c.OwnsCompaction()}
}

// Requires says what the compactor asks of its host.
func (o *eachCall) Requires() capability.Requirements {
	if q, ok := o.Compactor.(capability.Requirer); ok {
		return q.Requires()
	}
	return nil
}

// Compact implements core.Compactor.
func (o *eachCall) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	var mu sync.Mutex
	taken := map[string]bool{}
	own := c.Clone()
	if publish := c.Publish; publish != nil {
		own.Publish = func(ctx context.Context, p core.Patch) error {
			o.compare(&mu, taken, p)
			o.warned(c, p)
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("conformance: publish: %w", err)
			}
			err := publish(ctx, p)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				for _, rep := range p.Replace {
					for _, id := range slices.Concat(rep.Entries, rep.Summaries) {
						taken[id] = true
					}
				}
			}
			return err
		}
	}
	calls := o.model.Calls()
	asked := &questions{ctx: ctx}
	o.last.Store(asked)
	p, err := o.Compactor.Compact(context.WithValue(ctx, questionsKey{}, asked), own)
	o.warned(c, p)
	if n := asked.tooLate(); n > lateQuestions {
		o.note(idSoon, "a model is asked %d times after the compaction's context has ended", n)
	}
	if err == nil {
		o.compare(&mu, taken, p)
	}
	o.look(ctx, c, calls)
	return p, err
}

// compare looks for what was published and is replaced once more.
func (o *eachCall) compare(mu *sync.Mutex, taken map[string]bool, p core.Patch) {
	mu.Lock()
	defer mu.Unlock()
	for _, rep := range p.Replace {
		for _, id := range slices.Concat(rep.Entries, rep.Summaries) {
			if taken[id] {
				o.note("patch.publish", "%q was published, and is replaced once more", id)
			}
		}
	}
}

// warned looks for content in warnings.
func (o *eachCall) warned(c core.Compaction, p core.Patch) {
	for _, w := range p.Warnings {
		switch {
		case o.model.repeated(w):
			o.note("patch.honest", "a warning holds some of what a model answered: %.120q", w)
		case quotesTask(c, w):
			o.note("patch.honest", "a warning holds some of what the task says: %.120q", w)
		}
	}
}

// asksOn is how long a question may still be open when Compact has returned and its context has ended.
const asksOn = 2 * time.Second

// look looks at what a call left behind.
func (o *eachCall) look(ctx context.Context, c core.Compaction, calls int) {
	if got := o.OwnsCompaction(); got != o.owns {
		o.note("patch.owns", "OwnsCompaction() = %v, and %v after a call of Compact", o.owns, got)
	}
	for _, purpose := range o.model.purposesSince(calls) {
		if quotesTask(c, purpose) {
			o.note("patch.quotes", "a model is asked for the purpose %.120q, which repeats some of what the task says", purpose)
		}
	}
	if ctx.Err() != nil && !o.model.quiet(asksOn) {
		o.note(idSoon, "Compact has returned and its context has ended, and %s later a model is still being asked", asksOn)
	}
}
