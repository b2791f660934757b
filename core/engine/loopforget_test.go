package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
)

// loop is a host in the midst of a turn, whose messages have no ids.
type loop struct {
	*fixture
	r      *rand.Rand
	budget int
	whole  bool // it says that its lists are
	to     string
	// said is all of its messages, given what the engine returned last, and since how many messages came after that.
	said, given []message.Message
	since       int
	gone        map[int]bool // what was erased, by its place
	ticks       []string     // what timers caused, by fingerprint
	did         []string
	// engines are the processes that answer it.
	engines []*engine.Engine
}

// turns to one of the processes.
func (l *loop) turns() {
	l.engine = l.engines[l.r.IntN(len(l.engines))]
	l.did = append(l.did, fmt.Sprint("process ", slices.Index(l.engines, l.engine)))
}

func (l *loop) words(n int) string { return strings.Repeat(" some words", l.r.IntN(n)) }

// assembles hands a list over. Where the newest messages do not fit, the host has nothing new.
func (l *loop) assembles(list []message.Message, prompt string, call core.Call) {
	l.t.Helper()
	req := core.AssembleRequest{Session: l.id, Budget: l.budget, Prompt: prompt, Call: call, Transcript: &core.Transcript{Messages: list, Whole: l.whole}}
	req.Settings.Provider = l.to
	res, err := l.engine.Assemble(l.t.Context(), req)
	if err != nil && !errors.Is(err, core.ErrBudget) {
		l.t.Fatal(err)
	}
	if err == nil {
		l.given, l.since = res.Messages, 0
	}
}

// calls makes a call of a tool, or two at once, and has the results.
func (l *loop) calls(n int) {
	call := message.New(message.Assistant, fmt.Sprint("step ", n))
	results := make([]message.Message, 1+l.r.IntN(2))
	for i := range results {
		id := fmt.Sprintf("c%d.%d", n, i)
		call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "read", Args: fmt.Sprintf(`{"n":%q}`, id)})
		results[i] = resulting(id, "result "+id+l.words(50))
	}
	l.said = join(l.said, one(call), results)
	l.since += 1 + len(results)
}

// tick lets a timer speak, or a subagent answer: no list shows either.
func (l *loop) tick() {
	l.t.Helper()
	var err error
	n := len(l.ticks)
	m := user(fmt.Sprint("tick ", n))
	switch l.r.IntN(3) {
	case 0:
		_, err = l.engine.Ingest(l.t.Context(), core.IngestRequest{Session: l.id, Message: m, Heartbeat: true})
	case 1:
		_, err = l.engine.CommitTurn(l.t.Context(), core.CommitTurnRequest{Session: l.id, Messages: one(m), Heartbeat: true, AdvancementKey: fmt.Sprint("tick ", n)})
	case 2:
		m = assistant(m.Text())
		child := core.SessionID{Agent: l.id.Agent, Session: m.Text()}
		err = l.engine.OnSubagentEnded(l.t.Context(), core.SubagentEnded{Parent: l.id, Child: child, Result: m.Text(), Reason: "completed"})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.ticks = append(l.ticks, message.Fingerprint(m))
	l.did = append(l.did, "tick")
}

// erases one of the messages that were handed over.
func (l *loop) erases(at int) {
	l.t.Helper()
	for _, e := range entriesOf(l.fixture) {
		if e.Type == core.TypeMessage && e.Fingerprint == message.Fingerprint(l.said[at]) {
			l.forget(engine.ForgetRequest{Scope: l.id.Scope(), Entries: []string{e.ID}})
			l.gone[at] = true
			l.did = append(l.did, fmt.Sprint("erased ", at))
		}
	}
}

// once asks that everything is stored once, and what was erased is blank.
func (l *loop) once() {
	l.t.Helper()
	var got, stored []string
	want := make([]string, 0, len(l.said)+len(l.ticks))
	for i, m := range l.said {
		if want = append(want, message.Fingerprint(m)); l.gone[i] {
			want[i] = "erased " + string(m.Role)
		}
	}
	for _, e := range entriesOf(l.fixture) {
		if e.Type == core.TypeSummary || strings.HasPrefix(e.Key, "c:") {
			continue
		}
		stored = append(stored, fmt.Sprintf("%d %s %s %q", e.Seq, e.Type, e.Role, e.Message.Text()))
		if e.Type == core.TypeErased {
			got = append(got, "erased "+string(e.Role))
		} else {
			got = append(got, e.Fingerprint)
		}
	}
	want = append(want, l.ticks...)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		l.t.Fatalf("budget %d, whole %t, for %q: %s: %d messages were said, of which %d are erased; stored are\n%s",
			l.budget, l.whole, l.to, strings.Join(l.did, ", "), len(l.said), len(l.gone), strings.Join(stored, "\n"))
	}
	l.sound()
}

// TestErasedInsideALoop: messages are erased while a turn goes on whose host hands over all it has, those too, or what it was given last and what came since, which
// may be nothing. One process answers, or two by turns, and timers and subagents speak meanwhile.
func TestErasedInsideALoop(t *testing.T) {
	r := drawn.Rand(t)
	for range 400 {
		l := &loop{
			fixture: newFixture(t), r: r, budget: 100 + r.IntN(300), whole: r.IntN(2) == 0, gone: make(map[int]bool),
			to: []string{"", "anthropic", "openai", "google"}[r.IntN(4)],
		}
		for i := range r.IntN(4) {
			l.said = append(l.said, user(fmt.Sprint("question ", i, l.words(6))), assistant(fmt.Sprint("answer ", i, l.words(10))))
		}
		l.said = append(l.said, user("the prompt"+l.words(5)))
		// What a process sent last is in the view that it publishes next: where another one publishes first, that knows what it would send itself, which a timer changes.
		ticks := r.IntN(2) == 0
		if l.engines = []*engine.Engine{l.engine}; !ticks && r.IntN(2) == 0 {
			l.engines = append(l.engines, l.second().engine)
		}
		first := r.IntN(2) * (len(l.said) - 1) // of what may be erased
		l.assembles(l.said, "", core.CallPrompt)
		for n := range 1 + r.IntN(5) {
			l.calls(n)
			for range 1 + r.IntN(3) {
				if handed := len(l.said) - l.since; len(l.gone) < 2 && r.IntN(3) == 0 {
					at := first + r.IntN(handed-first)
					if r.IntN(2) == 0 {
						at = max(handed-1-r.IntN(3), first) // the newest call
					}
					l.erases(at)
				}
				l.turns()
				switch what := r.IntN(8); {
				case what == 0 && !ticks:
					at := slices.Index(l.engines, l.engine)
					l.restart()
					l.engines[at] = l.engine
					l.did = append(l.did, "restart")
				case what == 1:
					if _, err := l.engine.Compact(t.Context(), core.CompactRequest{Session: l.id, Budget: l.budget, Force: true}); err != nil {
						t.Fatal(err)
					}
					l.did = append(l.did, "compact")
				case what < 4 && ticks:
					l.tick()
				}
				l.turns()
				list := l.said
				l.did = append(l.did, fmt.Sprint("all ", len(list)))
				if r.IntN(2) == 0 {
					list = join(l.given, l.said[len(l.said)-l.since:])
					l.did[len(l.did)-1] = fmt.Sprintf("given %d and %d", len(l.given), l.since)
				}
				l.assembles(list, "", core.CallLoop)
				l.once()
			}
		}
		l.said = append(l.said, assistant("done"))
		l.did = append(l.did, "the next turn")
		l.assembles(l.said, "next", core.CallPrompt)
		l.once()
	}
}

// TestErasedWhileATimerSpeaks: what a timer caused, or a subagent answered, stands behind what the host was given last, which it builds on all the same. A call that
// is erased takes its result out of sight, and neither is taken back with that.
func TestErasedWhileATimerSpeaks(t *testing.T) {
	for name, ticks := range map[string][2]int{"before the erasure": {4, 0}, "behind it": {0, 4}, "around it": {1, 1}} {
		t.Run(name, func(t *testing.T) {
			l := &loop{fixture: newFixture(t), r: drawn.Rand(t), budget: 1000, gone: make(map[int]bool), said: one(user("the prompt"))}
			own := func(ticks int) {
				for range ticks { // of what speaks one of three is drawn
					l.tick()
				}
				l.assembles(join(l.given, l.said[len(l.said)-l.since:]), "", core.CallLoop)
				l.once()
			}
			l.assembles(l.said, "", core.CallPrompt)
			l.calls(0)
			own(0)
			own(ticks[0])
			l.erases(1)
			own(0)
			own(ticks[1])
			l.assembles(l.said, "", core.CallLoop)
			l.once()
		})
	}
}

// TestErasedBelowAnOldOutput: a host builds on what it was given before the path grew. What was out of sight then, a result whose call was erased, is not taken back.
func TestErasedBelowAnOldOutput(t *testing.T) {
	l := &loop{fixture: newFixture(t), r: drawn.Rand(t), budget: 1000, gone: make(map[int]bool)}
	first, other := l.engine, l.second().engine
	own := func() { l.assembles(join(l.given, l.said[len(l.said)-l.since:]), "", core.CallLoop) }
	l.said = one(user("hello"), assistant("yes"), user("the prompt"))
	l.ingest(l.said...)
	l.erases(2)
	l.assembles(l.said, "", core.CallPrompt)
	l.calls(0)
	l.engine = other
	own()
	l.erases(3)
	l.assembles(l.said, "", core.CallLoop)
	more := one(assistant("done"), user("go on"))
	l.said, l.since = join(l.said, more), 2
	l.engine = first
	l.ingest(more...)
	l.erases(1)
	l.calls(1)
	own()
	l.once()
	l.assembles(l.said, "", core.CallLoop)
	l.once()
}

// TestLoopBehindNothing: a turn goes on where all that was said is erased. Its empty place is no less there for that.
func TestLoopBehindNothing(t *testing.T) {
	l := &loop{fixture: newFixture(t), r: drawn.Rand(t), budget: 1000, gone: make(map[int]bool), said: one(user("the prompt"))}
	l.ingest(l.said...)
	l.erases(0)
	l.assembles(l.said, "", core.CallPrompt)
	l.calls(0)
	l.assembles(l.said[1:], "", core.CallLoop)
	l.assembles(l.said, "", core.CallLoop)
	l.once()
}
