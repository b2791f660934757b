package engine

import (
	"slices"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/internal/words"
	"github.com/contextengine/contextengine/core/message"
)

// maxTallies bounds for how many sessions something is kept that no view has yet.
const maxTallies = 1024

// tallies are what the views of sessions do not say yet. It is safe for concurrent use.
type tallies struct {
	mu sync.Mutex
	m  map[core.SessionID]core.Tally
}

func (t *tallies) note(id core.SessionID, more core.Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil || len(t.m) >= maxTallies {
		t.m = make(map[core.SessionID]core.Tally)
	}
	t.m[id] = t.m[id].Plus(more)
}

// take moves what is kept for a session into a view that is about to be published; give takes it back when it was not.
func (t *tallies) take(v *core.View) (give func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	more, ok := t.m[v.Session]
	if !ok {
		return func() {}
	}
	delete(t.m, v.Session)
	if v.Arm != "" {
		v.Apply(edit.Tally{More: more})
	}
	return func() { t.note(v.Session, more) }
}

// counted is what a call of a session with an arm adds; kept is how many of its messages were sent before just so.
func (f *frame) counted(c *call, res *core.AssembleResult, kept int) core.Tally {
	t := core.Tally{Calls: 1, Tokens: int64(res.EstimatedTokens)}
	for i := range res.Messages[:kept] {
		t.Cached += int64(f.s.costOf(&res.Messages[i], nil))
	}
	if kept > 0 {
		t.Cached += int64(c.additionCost)
	}
	t.Cached = min(t.Cached, t.Tokens)
	if len(c.warnings) > 0 {
		t.Degraded = 1
	}
	if r := f.v.Recall; r != nil && r.Text != "" && (f.s.quote == nil || f.s.quote.turn != r.Turn || f.s.quote.prompt != r.Prompt) {
		f.s.quote = evidenceOf(r, lastSaid(c.req))
	}
	if q := f.s.quote; q != nil && !q.counted {
		t.Recalled = 1
	}
	return t
}

// lastSaid is what the user asked for last.
func lastSaid(req core.AssembleRequest) string {
	said := req.Prompt
	if req.Transcript == nil {
		return said
	}
	messages := req.Transcript.Messages
	for _, m := range slices.Backward(messages) {
		if m.Role == message.User {
			return said + "\n" + saidIn(m)
		}
	}
	return said
}

func saidIn(m message.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text + "\n" + p.Args + "\n")
	}
	return b.String()
}

// evidence is what an answer has to say for something recalled to be used.
type evidence struct {
	turn   int64
	prompt string
	pieces map[string]struct{}
	// counted says that the turn is in Tally.Recalled, used that it is in Tally.Used.
	counted, used bool
}

func evidenceOf(r *core.Recall, asked string) *evidence {
	q := &evidence{turn: r.Turn, prompt: r.Prompt, pieces: make(map[string]struct{})}
	known := make(map[string]struct{})
	words.Pieces(asked, func(p string) bool { known[p] = struct{}{}; return true })
	words.Pieces(r.Text, func(p string) bool {
		if _, ok := known[p]; !ok {
			q.pieces[p] = struct{}{}
		}
		return true
	})
	return q
}

// by reports whether one of the entries is an answer that quotes.
func (q *evidence) by(entries []core.Entry) bool {
	for i := range entries {
		if entries[i].Role != message.Assistant || entries[i].Type != core.TypeMessage {
			continue
		}
		found := false
		words.Pieces(saidIn(entries[i].Message), func(p string) bool {
			_, found = q.pieces[p]
			return !found
		})
		if found {
			return true
		}
	}
	return false
}
