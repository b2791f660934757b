package conformance

import (
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// soundCandidates looks at number, scores and order of what comes.
func soundCandidates(q core.Query, got []core.Candidate) string {
	if len(got) > q.Limit {
		return fmt.Sprintf("%d candidates, the limit is %d, %+v are granted", len(got), q.Limit, q.Granted)
	}
	return bestFirst(got)
}

// limitedMany asks for many of a session that say more or less of what is asked for. They are in order to the last one.
func (r *retrieverRun) limitedMany() string {
	const many, words = 160, 24
	asked := make([]string, words)
	for i := range asked {
		asked[i] = markOf(6, i)
	}
	batch := r.make(batch{Entries: make([]entrySpec, many)})
	for i := range batch {
		e := &batch[i]
		// Neither the older nor the newer say more.
		e.Message = message.New(message.User, strings.Join(asked[:1+i*7%words], " ")+" "+markOf(7, i)+[]string{"", "?", ".", "!"}[i/words%4])
		e.Fingerprint = message.Fingerprint(e.Message)
	}
	if text := r.tell(batch, r.retriever); text != "" {
		return text
	}
	r.remember(batch)
	for _, limit := range []int{70, 120, core.MaxPage} {
		q := r.query(0, strings.Join(asked, " "))
		q.Limit, q.Tokens = limit, 100000
		got, err := r.answer(r.retriever, q)
		if err != nil {
			return fmt.Sprintf("Retrieve where %d are found: error %v, want none", many, err)
		}
		if text := soundCandidates(q, got); text != "" {
			return fmt.Sprintf("Retrieve where %d are found: %s", many, text)
		}
	}
	return ""
}
