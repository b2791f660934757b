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
	var want, got, stored []string
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
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		l.t.Fatalf("budget %d, whole %t, for %q: %s: %d messages were said, of which %d are erased; stored are\n%s",
			l.budget, l.whole, l.to, strings.Join(l.did, ", "), len(l.said), len(l.gone), strings.Join(stored, "\n"))
	}
	l.sound()
}

// TestErasedInsideALoop: messages are erased while a turn goes on whose host hands over all it has, those too, or what it was given last and what came since, which
// may be nothing. One process answers, or two by turns.
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
		l.engines = []*engine.Engine{l.engine, l.second().engine}[:1+r.IntN(2)]
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
				switch r.IntN(8) {
				case 0:
					at := slices.Index(l.engines, l.engine)
					l.restart()
					l.engines[at] = l.engine
					l.did = append(l.did, "restart")
				case 1:
					if _, err := l.engine.Compact(t.Context(), core.CompactRequest{Session: l.id, Budget: l.budget, Force: true}); err != nil {
						t.Fatal(err)
					}
					l.did = append(l.did, "compact")
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
