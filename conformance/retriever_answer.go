package conformance

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
)

const (
	// askedAgain is how often a check asks again for what it got in part, and partPause how long it waits before.
	askedAgain = 40
	partPause  = 100 * time.Millisecond
)

// answer asks a retriever where nothing fails. One that has several to ask may go without those that a busy machine keeps from answering in time, and says so
// with core.ErrPartial: it is asked again, some times in a check.
func (r *retrieverRun) answer(of core.Retriever, q core.Query) ([]core.Candidate, error) {
	for {
		got, err := r.retrieve(r.ctx(), of, q)
		if !errors.Is(err, core.ErrPartial) || r.again == nil || r.again.Add(-1) < 0 {
			return got, err
		}
		time.Sleep(partPause)
	}
}

// mayAskAgain is how often a check may.
func mayAskAgain() *atomic.Int64 {
	var n atomic.Int64
	n.Store(askedAgain)
	return &n
}
