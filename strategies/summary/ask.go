package summary

import (
	"context"
	"errors"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
)

// outcome is what came of one question. Text is usable when cause is empty.
type outcome struct {
	text, model         string
	calls               int
	inTokens, outTokens int
	// cause says in one word why there is no text.
	cause string
	// problem is what the last model that failed said, also when another one helped.
	problem string
}

// The causes.
const (
	causeNoModel  = "no model"
	causeBroken   = "too many failures"
	causeDeadline = "deadline"
	causeEnded    = "cancelled"
	causeTimeout  = "timeout"
	causeError    = "error"
	causeNoSource = "nothing to summarise"
	causeSpent    = "spend limit"
)

// question is what a model is asked.
type question struct {
	prompt prompt
	source string
	// sourceTokens and limit are tokens.
	sourceTokens, limit int
}

// summarise asks for the text about one part, which mayAsk allowed.
func (w *work) summarise(ctx context.Context, t part, limit int) outcome {
	return w.ask(ctx, question{prompt: w.prompts.chunk, source: t.text, sourceTokens: t.tokens, limit: limit})
}

// mayAsk returns "" and counts a call when a model may be asked about source, or says why not.
func (w *work) mayAsk(source string) (cause string) {
	switch {
	case len(w.models) == 0:
		return causeNoModel
	case source == "":
		return causeNoSource
	case w.broken():
		return causeBroken
	}
	if _, ok := w.timeout(); !ok {
		return causeDeadline
	}
	if !w.reserve() {
		return causeSpent
	}
	return ""
}

// ask puts q to one model after the other until an answer is usable. The first call is counted already.
func (w *work) ask(ctx context.Context, q question) outcome {
	text, err := q.prompt.render(fields{
		Source: q.source, Instructions: compacting.HeadBytes(clean(w.c.Instructions), maxInstructions),
		Tokens: q.limit, Words: max(10, q.limit*6/10),
	})
	if err != nil {
		return outcome{cause: causeError}
	}
	req := core.CompletionRequest{
		System: w.prompts.system, Prompt: text, MaxTokens: 2 * q.limit, Purpose: "summary", Model: w.cfg.Model,
	}
	var o outcome
	for i, m := range w.models {
		timeout, ok := w.timeout()
		switch {
		case ctx.Err() != nil:
			o.cause = causeEnded
			return o
		case !ok:
			if o.cause == "" {
				o.cause = causeDeadline
			}
			return o
		case i > 0 && !w.reserve():
			return o
		}
		o.calls++
		answer, err := call(ctx, m, req, timeout)
		o.inTokens += max(0, answer.InputTokens)
		o.outTokens += max(0, answer.OutputTokens)
		w.pay(max(0, answer.InputTokens) + max(0, answer.OutputTokens))
		switch {
		case err == nil:
			if o.text, o.cause = w.accept(answer, q); o.cause == "" {
				o.model = answer.Model
				return o
			}
			o.problem = "a model's answer cannot be used: " + o.cause
		case ctx.Err() != nil:
			o.cause = causeEnded
			return o
		case errors.Is(err, context.DeadlineExceeded):
			o.cause, o.problem = causeTimeout, "a model did not answer in time"
		default:
			o.cause, o.problem = causeError, "a model failed: "+compacting.FirstLine(clean(err.Error()), maxProblem)
		}
		w.log.Warn("a model gave no usable summary", "session", w.c.Session.String(), "cause", o.cause, "problem", o.problem)
	}
	return o
}

// maxProblem bounds what is repeated of a model's error, in bytes. Completers put neither prompts nor keys into errors.
const maxProblem = 300

// maxInstructions bounds a person's wishes, in bytes.
const maxInstructions = 4000

// timeout returns how long a call may take now, and whether one should be made at all. What is left before the deadline must
// also cover the digest that takes the text's place.
func (w *work) timeout() (time.Duration, bool) {
	if w.deadline.IsZero() {
		return w.cfg.CallTimeout, true
	}
	left := time.Until(w.deadline)
	if left < w.near || left <= 0 {
		return 0, false
	}
	return min(w.cfg.CallTimeout, left-w.near/2), true
}

// call asks m and gives it up when its time is over, also when m does not heed its context.
func call(ctx context.Context, m core.Completer, req core.CompletionRequest, timeout time.Duration) (core.Completion, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type reply struct {
		answer core.Completion
		err    error
	}
	done := make(chan reply, 1)
	// The goroutine ends with the call; a completer that keeps its contract ends it with ctx.
	go func() {
		answer, err := m.Complete(ctx, req)
		done <- reply{answer, err}
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return core.Completion{}, ctx.Err()
	}
}
