package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
)

// retrieve asks a retriever. All checks ask so: errors are logged and shown, and none may hold what a message or a prompt says.
func (r *retrieverRun) retrieve(ctx context.Context, of core.Retriever, q core.Query) ([]core.Candidate, error) {
	got, err := of.Retrieve(ctx, q)
	if err != nil && r.said != nil {
		r.said.look(err)
	}
	return got, err
}

// coreErrors are those by which callers tell what went wrong.
func coreErrors() []error {
	return []error{
		core.ErrNotFound, core.ErrConflict, core.ErrInvalid, core.ErrClosed, core.ErrBudget, core.ErrAuth, core.ErrUnavailable, core.ErrPartial, core.ErrQuarantined,
		core.ErrNeedTranscript, capability.ErrRequirement, errors.ErrUnsupported,
	}
}

// kindless reports whether an error wraps none of core's and none of the context's: nobody can tell what to do about it.
func kindless(err error) bool {
	return err != nil && !slices.ContainsFunc(append(coreErrors(), context.Canceled, context.DeadlineExceeded), func(kind error) bool { return errors.Is(err, kind) })
}

// indiscreet keeps the first error that quotes.
type indiscreet struct {
	mu   sync.Mutex
	what string
}

// quotable are words of prompts and entries that nobody has another use for.
var quotable = []string{"kestrel", "invoice", "friday", "budget report", "数据库", "迁移", troubling[:20]}

func (i *indiscreet) look(err error) {
	says := err.Error()
	words := marksIn(says)
	for _, w := range quotable {
		if strings.Contains(strings.ToLower(says), w) {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.what == "" {
		i.what = fmt.Sprintf("an error holds what was asked or said, %q: %.300v", words, err)
	}
}

func (i *indiscreet) text() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.what
}
