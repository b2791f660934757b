package core

import (
	"errors"
	"fmt"
)

// Errors that callers tell apart with errors.Is. What an operation does not support is errors.ErrUnsupported.
// Errors of a cancelled or expired context pass through, so that errors.Is(err, context.Canceled) holds.
var (
	// ErrNotFound: no entry, view or session has this id.
	ErrNotFound = errors.New("not found")
	// ErrConflict: somebody else changed the same thing first. Read again and retry.
	ErrConflict = errors.New("conflict")
	// ErrInvalid: the input can never succeed as it is. The text names the field and the remedy.
	ErrInvalid = errors.New("invalid")
	// ErrClosed: the part was closed before the call.
	ErrClosed = errors.New("closed")
	// ErrBudget: what must be in the prompt does not fit the token budget. See BudgetError.
	ErrBudget = errors.New("does not fit the token budget")
	// ErrAuth: the other side refused the credentials.
	ErrAuth = errors.New("not authorized")
	// ErrUnavailable: the other side cannot be reached or is overloaded. Retrying later may help.
	ErrUnavailable = errors.New("unavailable")
	// ErrPartial: some of those who were asked did not answer; what comes with the error is what the others said.
	ErrPartial = errors.New("incomplete")
	// ErrQuarantined: the engine failed again and again, in one session or in several, and is set aside there until it is asked to try again, see engine.Retrier.
	ErrQuarantined = errors.New("set aside until it is asked to try again")
	// ErrNeedTranscript: the engine cannot match the digest it was given; hand over the whole transcript.
	ErrNeedTranscript = errors.New("whole transcript needed")
)

// BudgetError says that the system prompt and the newest group of messages alone exceed the budget, even clipped.
// errors.Is(err, ErrBudget) holds for it.
type BudgetError struct {
	// Budget and Needed are tokens; Needed counts only what cannot be left out.
	Budget, Needed int
	// System is the part of Needed that system messages and additions take, in tokens.
	System int
	// Entry is the id of the largest entry that must stay; empty when the system prompt alone is too large.
	Entry string
}

func (e *BudgetError) Error() string {
	if e.Entry == "" {
		return fmt.Sprintf("core: assemble: system prompt needs %d of %d tokens: %v", e.System, e.Budget, ErrBudget)
	}
	return fmt.Sprintf("core: assemble %q: newest messages need %d tokens (%d of them system prompt), budget is %d: %v",
		e.Entry, e.Needed, e.System, e.Budget, ErrBudget)
}

// Unwrap returns ErrBudget.
func (e *BudgetError) Unwrap() error { return ErrBudget }
