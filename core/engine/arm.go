package engine

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/internal/exact"
	"github.com/contextengine/contextengine/core/internal/records"
	"github.com/contextengine/contextengine/core/internal/words"
	"github.com/contextengine/contextengine/core/message"
)

// Armed is implemented by engines that record which arm of an experiment a session belongs to.
type Armed interface {
	// Arm hands the recorded arm of a session ("" when there is none) to choose, records what choose returns before anything else happens in
	// the session, and returns it. A session is its agent and its name. One that is never asked about belongs to none. Every turn stored from then on names the arm.
	Arm(ctx context.Context, id core.SessionID, choose func(recorded string) string) (string, error)
}

// Scorer keeps outcomes: what a host or a person says of a session or a turn.
type Scorer interface {
	// Score keeps an outcome; a later one of the same session, turn and name takes its place.
	Score(ctx context.Context, o Outcome) error
	// Outcomes returns the outcomes of an agent's sessions, in the order they were first given.
	Outcomes(ctx context.Context, agent string) ([]Outcome, error)
}

// Outcome is one measurement of how well a session, or a turn of it, went.
type Outcome struct {
	Session core.SessionID `json:"session"`
	// Turn counts the user turns of the session from 1; 0 means the session as a whole.
	Turn int64 `json:"turn,omitempty"`
	// Name is the metric: letters, digits, "-", "_" and ".", at most 64 bytes.
	Name string `json:"name"`
	// Value is any finite number; larger is better unless the metric's name says otherwise to its readers.
	Value float64 `json:"value"`
	// Arm is the session's, filled in by the engine.
	Arm string `json:"arm,omitempty"`
	// Time is when it was given; the engine's clock when zero.
	Time time.Time `json:"time,omitzero"`
}

const (
	// metaArm names the arm of the session that a turn belongs to.
	metaArm = "arm"
	// metaOutcome holds an outcome as JSON.
	metaOutcome = "outcome"
)

// Arm implements Armed.
func (e *Engine) Arm(ctx context.Context, id core.SessionID, choose func(recorded string) string) (string, error) {
	var arm string
	err := e.retry(ctx, id, func(s *session) error {
		if arm = choose(s.view.Arm); arm == s.view.Arm {
			return nil
		}
		v := s.view.Clone()
		v.Apply(edit.Enlist{Arm: arm})
		return s.publish(ctx, v)
	})
	if err != nil {
		return "", e.failed(ctx, "store", "arm", err)
	}
	return arm, nil
}

// armed adds the arm to what an entry says about itself.
func armed(meta map[string]string, arm string) map[string]string { return withMeta(meta, metaArm, arm) }

// withMeta returns a copy of meta with one more value.
func withMeta(meta map[string]string, key, value string) map[string]string {
	out := maps.Clone(meta)
	if out == nil {
		out = make(map[string]string, 1)
	}
	out[key] = value
	return out
}

// Score implements Scorer.
func (e *Engine) Score(ctx context.Context, o Outcome) error {
	if err := o.validate(); err != nil {
		return err
	}
	leave, err := e.join("score")
	if err != nil {
		return err
	}
	defer leave()
	if _, err := e.Arm(ctx, o.Session, func(recorded string) string { o.Arm = recorded; return recorded }); err != nil {
		return err
	}
	if o.Time.IsZero() {
		o.Time = e.now()
	}
	o.Time = o.Time.UTC().Truncate(time.Millisecond)
	body, err := exact.Text(o)
	if err != nil {
		return fmt.Errorf("core: score %q: %w", o.Session, err)
	}
	m := message.New(message.System, "")
	entry := core.Entry{
		ID: e.newID(), Agent: o.Session.Agent, Session: records.Outcomes, Role: m.Role, Type: core.TypeErased, Time: o.Time,
		Key:         "o:" + strconv.Itoa(len(o.Session.Session)) + ":" + o.Session.Session + ":" + strconv.FormatInt(o.Turn, 10) + ":" + o.Name,
		Fingerprint: message.Fingerprint(m), Message: m, Meta: map[string]string{metaOutcome: body},
	}
	res, err := e.record(ctx, entry)
	if err == nil && res.IDs[0] != entry.ID {
		err = e.store.Update(ctx, core.Scope{Agent: o.Session.Agent, Session: records.Outcomes}, res.IDs[0], core.Change{Meta: entry.Meta})
	}
	if err != nil {
		return e.failed(ctx, "store", "score", fmt.Errorf("core: score %q: %w", o.Session, err))
	}
	return nil
}

func (o Outcome) validate() error {
	if err := o.Session.Validate(); err != nil {
		return err
	}
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
	}
	switch {
	case o.Name == "" || len(o.Name) > 64 || strings.ContainsFunc(o.Name, func(r rune) bool { return !plain(r) }):
		return invalid("score", "name", `use letters, digits, "-", "_" and ".", 1 to 64 of them`)
	case math.IsNaN(o.Value) || math.IsInf(o.Value, 0):
		return invalid("score", "value", "must be a finite number")
	case o.Turn < 0:
		return invalid("score", "turn", "must be 0 for the session, or the number of a turn")
	}
	return nil
}

// Outcomes implements Scorer.
func (e *Engine) Outcomes(ctx context.Context, agent string) ([]Outcome, error) {
	leave, err := e.join("outcomes")
	if err != nil {
		return nil, err
	}
	defer leave()
	return OutcomesIn(ctx, e.store, agent)
}

// OutcomesIn reads the outcomes that engines kept in a store.
func OutcomesIn(ctx context.Context, store core.Store, agent string) ([]Outcome, error) {
	var out []Outcome
	for entry, err := range core.All(ctx, store, core.Scope{Agent: agent, Session: records.Outcomes}, false) {
		if err != nil {
			return nil, fmt.Errorf("core: outcomes of %q: %w", agent, err)
		}
		var o Outcome
		if err := exact.Read(entry.Meta[metaOutcome], &o); err != nil {
			return nil, fmt.Errorf("core: outcomes of %q: entry %q: %w", agent, entry.ID, err)
		}
		out = append(out, o)
	}
	return out, nil
}

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

// begin tells the telemetry, if there is one, of an operation; end is called with its outcome.
func (e *Engine) begin(ctx context.Context, name string, id core.SessionID) (_ context.Context, end func(error)) {
	if e.telemetry == nil {
		return ctx, untold
	}
	return e.telemetry.Begin(ctx, core.Operation{Name: name, Session: id})
}

func untold(error) {}
