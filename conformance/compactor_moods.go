package conformance

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// moodChecks look at what a compactor writes by itself.
func moodChecks() []Check {
	owner := []Need{NeedOwner}
	return []Check{
		{ID: "deterministic.fallback", Promise: 6, Suite: SuiteCompactor, compactor: deterministicFallback, Needs: owner, once: true,
			Rule: "what a compactor writes where a model fails, says nothing or lies is a function of its task as well: the same each time, whatever else is asked before and meanwhile, and of no time but the task's"},
		{ID: "patch.worth", Promise: 4, Suite: SuiteCompactor, compactor: patchWorth, Needs: owner, once: true,
			Rule: "no text but a note costs as much as what it stands for, and no patch saves nothing, however little may go and whatever a model does"},
	}
}

func deterministicFallback(r *compactorRun) string {
	r.pieces = slices.Concat(r.pieces, enoughPieces())
	return r.inMoods(func() string {
		// One that remembers that the model failed is another one each time, or asked much later.
		if text := r.deterministic(r.open(r.tb, r.model), r.open(r.tb, r.model)); text != "" {
			return text
		}
		if text := r.alone(r.open(r.tb, r.model), 90*24*time.Hour); text != "" {
			return text
		}
		return r.besides()
	})
}

func patchWorth(r *compactorRun) string { return r.inMoods(r.tiny) }

// inMoods asks while a model answers, fails, says nothing and says too much: what a compactor writes by itself is held to the same rules as what a model wrote.
func (r *compactorRun) inMoods(f func() string) string {
	defer r.model.Set(Honest)
	for _, mood := range []Mood{Honest, Failing, Empty, Lying} {
		r.set(mood)
		if text := f(); text != "" {
			return fmt.Sprintf("model is %s: %s", mood, text)
		}
	}
	return ""
}

// otherTexts compares what stands for the same entries. While a model fails, how much is replaced may hang on whether a model is still asked.
func (r *compactorRun) otherTexts(got, want []core.Patch) string {
	if r.model.current() == Honest {
		return differs(got, want)
	}
	of := map[string]core.Replacement{}
	key := func(rep core.Replacement) string {
		return fmt.Sprintf("%q %q %q", rep.Kind, rep.Summaries, rep.Entries)
	}
	for _, p := range want {
		for _, rep := range p.Replace {
			of[key(rep)] = rep
		}
	}
	for _, p := range got {
		for _, rep := range p.Replace {
			if before, same := of[key(rep)]; same && before.Text != rep.Text {
				return fmt.Sprintf("text of kind %q that stands for %d entries is %.120q, want %.120q", rep.Kind, len(rep.Entries), rep.Text, before.Text)
			}
		}
	}
	return ""
}

// yielding counts, and lets others go on meanwhile, so that tasks meet in the midst of their work on one processor, too. Where they count much it does so now and then: on a busy
// machine that costs time.
func yielding() core.TokenCounter {
	const first, each = 32, 16
	var calls atomic.Int64
	return func(s string) int {
		if n := calls.Add(1); n <= first || n%each == 0 {
			runtime.Gosched()
		}
		return cheapCount(s)
	}
}

// enoughPieces are some of which something may go, whatever stands in front of them.
func enoughPieces() []piece {
	out := make([]piece, 15)
	for i := range out {
		out[i] = piece{Size: 40}
	}
	out[4].Calls = 1
	return out
}

// saidFirst puts words in front of what an entry says.
func saidFirst(e *core.Entry, words string) {
	for i, p := range e.Message.Parts {
		if p.Kind == message.Text || p.Kind == message.ToolResult {
			parts := slices.Clone(e.Message.Parts)
			parts[i].Text = words + p.Text
			e.Message = e.Message.WithParts(parts)
			e.Fingerprint = message.Fingerprint(e.Message)
			return
		}
	}
}

// costly describes a replacement that costs no less than what it stands for, or a patch that is published by itself and saves nothing. A note may cost what it wants, where its
// patch saves.
func (r *compactorRun) costly(c core.Compaction, patches []core.Patch) string {
	cost := costsIn(c)
	for n, p := range patches {
		for id, s := range p.Stubs {
			cost[id] = min(cost[id], s.Tokens)
		}
		for _, rep := range p.Replace {
			before, after := 0, messageTokens+r.count(rep.Text)
			for _, ids := range [][]string{rep.Entries, rep.Summaries} {
				for _, id := range ids {
					before += cost[id]
				}
			}
			if after >= before && rep.Kind != "note" {
				return fmt.Sprintf("a text of %d tokens, of kind %q, stands for %d entries and %d summaries that cost %d", after, rep.Kind, len(rep.Entries), len(rep.Summaries), before)
			}
			if rep.Ref != "" {
				cost[rep.Ref] = after
			}
		}
		if saved := r.saves(c, patches[:n+1]) - r.saves(c, patches[:n]); saved <= 0 && !p.Empty() {
			return fmt.Sprintf("patch %d of %d saves %d tokens", n+1, len(patches), saved)
		}
	}
	return ""
}

// tiny asks for progress where the only entry that may go, or the last one, costs less than most texts.
func (r *compactorRun) tiny() string {
	for _, front := range []int{0, 2} {
		for _, cost := range []int{messageTokens + 1, 6, 8, 10, 12} {
			r.pieces = make([]piece, front+3) // two stay
			for i := range front {
				r.pieces[i].Size = longText
			}
			c := r.task(true)
			e := &c.Entries[front]
			e.Message = message.New(e.Role, strings.Repeat("a", 4*(cost-messageTokens)))
			e.Fingerprint = message.Fingerprint(e.Message)
			c.Tokens += cost - c.Cost[front]
			e.Tokens, c.Cost[front], c.Target = cost, cost, 1
			c.Protected = len(c.Entries) - front - 1
			patches, text := r.run(c)
			if text == "" {
				text = r.progress(c, patches)
			}
			if text != "" {
				return fmt.Sprintf("behind %d large ones, one of %d tokens may go: %s", front, cost, text)
			}
		}
	}
	return ""
}
