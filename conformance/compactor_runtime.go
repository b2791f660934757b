package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
)

// slowHost is a runtime that takes its time and answers with its request's wishes.
type slowHost struct {
	*Host
	// work is what it does meanwhile; an error is its own.
	work func(ctx context.Context) error
}

func (h *slowHost) Compact(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	if err := h.work(ctx); err != nil {
		return core.CompactResult{}, fmt.Errorf("conformance: compact: %w", err)
	}
	return core.CompactResult{OK: true, Compacted: true, Summary: req.Instructions, TokensBefore: 900, TokensAfter: 100}, nil
}

// lateBy is how long after its caller's context ended a runtime still answers, and slowBy how long one takes that is given all the time there is.
const (
	lateBy = 20 * time.Millisecond
	slowBy = 400 * time.Millisecond
)

// patchRuntime passes tasks on to runtimes that are slow.
func patchRuntime(r *compactorRun) string {
	ask := func(what string, ctx context.Context, work func(ctx context.Context) error) string {
		c := r.task(true)
		c.Request.Instructions = what
		c.Host = &slowHost{Host: r.host, work: work}
		p, err := r.compactor.Compact(ctx, c)
		if err != nil || p.Delegated == nil || p.Delegated.Summary != what {
			return fmt.Sprintf("the runtime has compacted, %s: error %v and the result %+v, want what it answered", what, err, p.Delegated)
		}
		return ""
	}
	// until asks a runtime that looks at the time it has.
	until := func(what string, parent context.Context) string {
		var given time.Time
		text := ask(what, parent, func(ctx context.Context) error { given, _ = ctx.Deadline(); return nil })
		if want, _ := parent.Deadline(); text == "" && !given.Equal(want) {
			return fmt.Sprintf("%s: the runtime has time until %v, want %v (zero: all there is)", what, given, want)
		}
		return text
	}
	hour, end := context.WithTimeout(r.ctx(), time.Hour)
	defer end()
	over, cancel := cancellable(r.ctx())
	defer cancel()
	return inTurn(
		func() string { return until("without a deadline", r.ctx()) },
		func() string { return until("with an hour", hour) },
		func() string {
			return ask(fmt.Sprintf("%s after the caller's context ended", lateBy), over, func(context.Context) error {
				cancel()
				time.Sleep(lateBy)
				return nil
			})
		},
		func() string {
			return ask(fmt.Sprintf("%s later", slowBy), r.ctx(), func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(slowBy):
					return nil
				}
			})
		},
	)
}

// delegatesConcurrent passes several tasks on at the same time, of one session and of several: each gets the answer to its own request. No runtime answers before all were asked, or
// for a while.
func delegatesConcurrent(r *compactorRun) string {
	const tasks, while = 8, 100 * time.Millisecond
	var mu sync.Mutex
	asked := 0
	all, enough := context.WithTimeout(r.ctx(), while)
	defer enough()
	host := &slowHost{Host: r.host, work: func(ctx context.Context) error {
		mu.Lock()
		if asked++; asked == tasks {
			enough()
		}
		mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-all.Done():
			return nil
		}
	}}
	task := make([]core.Compaction, tasks)
	for i := range task {
		task[i] = r.task(true)
		task[i].Host = host
		if i >= tasks/2 {
			task[i].Session, task[i].Request.Session = sessionOf(i%3), sessionOf(i%3)
		}
		task[i].Request.Instructions = fmt.Sprintf("wish %d", i)
	}
	text := atOnce(tasks, func(i int) string {
		p, err := r.compactor.Compact(r.ctx(), task[i])
		if err != nil || p.Delegated == nil || p.Delegated.Summary != task[i].Request.Instructions {
			return fmt.Sprintf("Compact beside others: error %v, and the result %+v for the request with %q", err, p.Delegated, task[i].Request.Instructions)
		}
		return ""
	})
	mu.Lock()
	defer mu.Unlock()
	if text == "" && asked != tasks {
		text = fmt.Sprintf("%d tasks at the same time asked the runtime %d times", tasks, asked)
	}
	return text
}
