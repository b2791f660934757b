package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// recentForQuery is how many of the newest entries a retriever is shown.
const recentForQuery = 8

// recall fills the recall block: anew at the beginning of a turn and after a step, and as it was otherwise.
func (e *Engine) recall(ctx context.Context, f *frame, c *call) error {
	if c.share == 0 {
		if f.v.Recall != nil {
			f.v.Recall, c.dirty = nil, true
		}
		return nil
	}
	if !e.recallStale(f, c) {
		c.recall = f.v.Recall
		return nil
	}
	total := e.fixed(f, c.additionCost) + sum(f.costs)
	allowance := min(c.marks.Recall, c.marks.Hard-total)
	r, err := e.retrieve(ctx, f, c, allowance)
	if err != nil {
		return err
	}
	f.v.Recall, c.recall, c.dirty = r, r, true
	return nil
}

// recallStale reports whether the recall block was made for another turn, or the window moved.
func (e *Engine) recallStale(f *frame, c *call) bool {
	r := f.v.Recall
	return r == nil || c.stepped || r.Turn != f.v.Turns || r.Prompt != promptKey(c.req)
}

func promptKey(req AssembleRequest) string {
	if req.Prompt == "" {
		return ""
	}
	return message.Fingerprint(message.New(message.User, req.Prompt))
}

// minRecall is the smallest allowance worth asking a retriever for, in tokens.
const minRecall = 60

// retrieve asks the retriever and builds the block of what fits.
func (e *Engine) retrieve(ctx context.Context, f *frame, c *call, allowance int) (*Recall, error) {
	r := &Recall{Turn: f.v.Turns, Prompt: promptKey(c.req), Time: f.v.newest(f.s, e.now)}
	if allowance < minRecall {
		return r, nil
	}
	q := e.query(f, c, allowance)
	candidates, err := e.ask(ctx, q)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("core: assemble %q: %w", f.s.id, ctx.Err())
		}
		if e.cfg.Failure == FailStrict {
			return nil, fmt.Errorf("core: assemble %q: retriever: %w", f.s.id, err)
		}
		e.warn(ctx, "retriever", "retrieve", err)
		c.warnings = append(c.warnings, "retriever: "+err.Error())
	}
	e.build(f, c, r, q, candidates, allowance)
	return r, nil
}

// newest returns the time of the newest entry: a block stamped so is the same whenever it is made.
func (v *View) newest(s *session, now func() time.Time) time.Time {
	if n := len(s.items); n > 0 {
		return s.items[n-1].entry.Time
	}
	return now()
}

func (e *Engine) query(f *frame, c *call, allowance int) Query {
	s := f.s
	q := Query{
		Session: s.id, Scope: s.id.Scope(), Prompt: c.req.Prompt, Now: e.now(),
		Tokens: allowance, Limit: e.cfg.Recall.Candidates,
		InWindow: func(id string) bool { _, ok := f.place[id]; return ok || f.isLead(id) },
	}
	if e.cfg.Recall.AcrossSessions && c.req.PromptMode != PromptMinimal {
		q.Scope.Session = ""
	}
	q.Granted = e.granted(&f.v, q.Now)
	for _, it := range s.items[max(len(s.items)-recentForQuery, 0):] {
		if it.entry.Type == TypeMessage {
			q.Recent = append(q.Recent, it.entry)
		}
	}
	if q.Prompt == "" {
		for _, entry := range slices.Backward(q.Recent) {
			if entry.Role == message.User {
				q.Prompt = entry.Text()
				break
			}
		}
	}
	if q.Prompt == "" && s.pinned != nil {
		q.Prompt = s.pinned.entry.Text()
	}
	return q
}

// granted returns the scopes that are open at a time.
func (e *Engine) granted(v *View, now time.Time) []Scope {
	var out []Scope
	for _, g := range v.Grants {
		if now.Before(g.Until) {
			out = append(out, g.Scope)
		}
	}
	return out
}

// ask runs the retriever under the deadline. A retriever that does not return in time is left behind; Dispose waits for it.
func (e *Engine) ask(ctx context.Context, q Query) ([]Candidate, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Recall.Deadline)
	type answer struct {
		candidates []Candidate
		err        error
	}
	ch := make(chan answer, 1)
	e.work.Add(1)
	go func() {
		defer e.work.Done()
		defer cancel()
		c, err := e.retriever.Retrieve(ctx, q)
		ch <- answer{c, err}
	}()
	select {
	case a := <-ch:
		return a.candidates, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer within %v: %w", e.cfg.Recall.Deadline, context.Cause(ctx))
	}
}

// build packs candidates in rank order and writes the block in the order in which things were said.
func (e *Engine) build(f *frame, c *call, r *Recall, q Query, candidates []Candidate, allowance int) {
	type quoteOf struct {
		Candidate
		text string
		cost int
	}
	var list []quoteOf
	seen := make(map[string]bool)
	prompt := strings.TrimSpace(c.req.Prompt)
	for _, cand := range candidates {
		id := cand.Entry.ID
		if seen[id] || !e.mayRecall(f, q, cand.Entry) || (prompt != "" && strings.TrimSpace(cand.Entry.Text()) == prompt) {
			continue
		}
		seen[id] = true
		text := cand.Text
		if text == "" {
			text = cand.Entry.Text()
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		cost := e.count(text)
		if limit := e.cfg.Recall.Quote; cost > limit {
			text = window.Clip(text, cost, limit, "\n...\n", e.count)
		}
		q := quoteOf{Candidate: cand, text: quoted(cand.Entry, text)}
		q.cost = e.count(q.text)
		list = append(list, q)
	}
	room := allowance - e.count(recallOpen) - e.count(recallClose) - messageOverhead - roleCost - 2
	costs := make([]int, len(list))
	for i := range list {
		costs[i] = list[i].cost + 1
	}
	chosen := window.Pack(costs, room)
	for {
		if len(chosen) == 0 {
			break
		}
		in := slices.Clone(chosen)
		slices.SortStableFunc(in, func(a, b int) int { return chronological(list[a].Entry, list[b].Entry) })
		var b strings.Builder
		b.WriteString(recallOpen)
		for _, i := range in {
			b.WriteString(list[i].text)
		}
		b.WriteString(recallClose)
		r.Text = b.String()
		r.Tokens = messageOverhead + roleCost + e.count(r.Text)
		if r.Tokens <= allowance {
			for _, i := range in {
				r.Items = append(r.Items, RecallItem{ID: list[i].Entry.ID, Score: list[i].Score, Source: list[i].Source})
			}
			break
		}
		chosen = chosen[:len(chosen)-1]
		r.Text, r.Tokens = "", 0
	}
	for i := range list {
		if !slices.Contains(chosen, i) {
			c.outAllowance = append(c.outAllowance, Choice{
				Message: -1, Entry: list[i].Entry.ID, Count: 1, Reason: OutAllowance, Tokens: list[i].cost,
				Score: list[i].Score, Source: list[i].Source,
			})
		}
	}
}

func chronological(a, b Entry) int {
	if c := a.Time.Compare(b.Time); c != 0 {
		return c
	}
	if a.Session == b.Session {
		return int(a.Seq - b.Seq)
	}
	return strings.Compare(a.ID, b.ID)
}

// mayRecall is the last guard in front of the prompt: whatever a retriever proposes, nothing of another agent or session gets in, nothing that
// is shown already, and nothing of a conversation that was reset or forked away.
func (e *Engine) mayRecall(f *frame, q Query, entry Entry) bool {
	if entry.ID == "" || entry.Type == TypeHeartbeat || q.InWindow(entry.ID) {
		return false
	}
	id := entry.SessionID()
	if id == f.s.id {
		if entry.Type == TypeSummary {
			return false
		}
		return e.cfg.Recall.AcrossSessions || onPath(&f.v, id, entry.Seq)
	}
	if q.Scope.Contains(id) {
		return true
	}
	for _, g := range q.Granted {
		if g.Contains(id) {
			return true
		}
	}
	return false
}

// Degradable errors are those of parts; bad input, cancellation and budgets are the caller's to solve.
func (e *Engine) mayDegrade(err error) bool {
	if e.cfg.Failure != FailDegrade {
		return false
	}
	for _, own := range []error{ErrInvalid, ErrBudget, ErrNeedTranscript, ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, own) {
			return false
		}
	}
	return true
}
