package chain_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/strategies/summary"
)

// broken are the ways in which a model is of no use.
var broken = map[string]core.Completer{
	"no model": nil, "429": scripts["429"], "hangs": scripts["hangs"], "nothing": scripts["nothing"],
}

// arrangement is a compactor and what it is called.
type arrangement struct {
	name string
	open func(t *testing.T) core.Compactor
}

// arrangements are every tier alone, and chains of them, those with a model for each way in which it is broken.
func arrangements() []arrangement {
	cfg := summary.DefaultConfig()
	cfg.CallTimeout, cfg.Failures, cfg.Cooldown, cfg.ChunkTokens = 20*time.Millisecond, 2, 0, 2000
	var out []arrangement
	for _, name := range []string{
		"only mask", "only index", "only archive", "only summary", "mask+index", "summary+mask", "mask+summary+index", "mask+index+archive",
		"archive+summary", "mask+summary+index+archive",
	} {
		models := broken
		if !strings.Contains(name, "summary") {
			models = map[string]core.Completer{"no model": nil}
		}
		for how, model := range models {
			out = append(out, arrangement{name + "/" + how, func(t *testing.T) core.Compactor {
				t.Helper()
				own := map[string]func(core.Completer) (core.Compactor, error){
					"mask": tiers["mask"], "index": tiers["index"], "archive": tiers["archive"],
					"summary": func(m core.Completer) (core.Compactor, error) { return summary.New(cfg, m) },
				}
				if alone, ok := strings.CutPrefix(name, "only "); ok {
					c, err := own[alone](model)
					if err != nil {
						t.Fatal(err)
					}
					return c
				}
				return buildOf(t, own, name, model)
			}})
		}
	}
	return out
}

// benign reports whether a host goes on with the turn when nothing was compacted for this reason: it looks for words in it, in lower case.
func benign(reason string) bool {
	reason = strings.ToLower(reason)
	for _, words := range []string{"below threshold", "already under target", "already compacted"} {
		if strings.Contains(reason, words) {
			return true
		}
	}
	return false
}

// judge checks what line a result is in: progress, or a reason, which is benign only when all that is live fits.
func judge(t *testing.T, what string, res core.CompactResult, budget int) {
	t.Helper()
	switch {
	case res.Compacted:
		if !res.OK || res.TokensAfter >= res.TokensBefore {
			t.Errorf("%s: %+v, which is no progress", what, res)
		}
	case res.TokensAfter <= budget:
		if !res.OK || !benign(res.Reason) {
			t.Errorf("%s: %+v: all fits into %d tokens, and the reason is not benign", what, res, budget)
		}
	case res.OK || benign(res.Reason):
		t.Errorf("%s: %+v: %d tokens do not fit, and the host is told that all is well", what, res, budget)
	}
}

// fits checks that the next prompt fits.
func (l *lived) fits(t *testing.T, what string, budget int) {
	t.Helper()
	res, err := l.engine.Assemble(t.Context(), core.AssembleRequest{Session: l.id, Budget: budget})
	if err != nil || res.EstimatedTokens > budget {
		t.Errorf("%s: a prompt of %d tokens, want at most %d: %v", what, res.EstimatedTokens, budget, err)
	}
}

// compact asks for a compaction.
func (l *lived) compact(t *testing.T, budget int, force bool) core.CompactResult {
	t.Helper()
	res, err := l.engine.Compact(t.Context(), core.CompactRequest{Session: l.id, Budget: budget, Force: force})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// idle is an owning compactor that never does anything.
type idle struct{}

func (idle) OwnsCompaction() bool { return true }

func (idle) Compact(context.Context, core.Compaction) (core.Patch, error) {
	return core.Patch{Reason: core.ReasonAlreadyCompacted}, nil
}

// TestWhoCannotMakeProgressSaysSo: what fits is left alone, or shortened until nothing is left to shorten, and the host is told so in words with which it
// goes on. What does not fit gets below the budget, whatever becomes of the model.
func TestWhoCannotMakeProgressSaysSo(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	all := append(arrangements(), arrangement{"idle", func(*testing.T) core.Compactor { return idle{} }})
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			whatFits(t, a)
			for _, force := range []bool{true, false} {
				for _, said := range []string{"work", "talk"} {
					overBudget(t, a, force, said)
				}
			}
		})
	}
}

// whatFits compacts sessions that fit.
func whatFits(t *testing.T, a arrangement) {
	t.Helper()
	l := live(t, a.open(t))
	if res := l.compact(t, 0, false); res.Compacted || !benign(res.Reason) || !res.OK {
		t.Errorf("nothing was said and no budget is known: %+v", res)
	}
	l.work(t, 6000)
	for _, assembled := range []bool{false, true} {
		if assembled {
			l.fits(t, "what fits", 40_000)
		}
		if res := l.compact(t, 40_000, false); res.Compacted || res.TokensAfter != res.TokensBefore {
			t.Errorf("assembled %t: what fits was compacted unasked: %+v", assembled, res)
		} else {
			judge(t, "what fits, unasked", res, 40_000)
		}
	}
	// Asked for it, it shortens as long as it can, and then says that it cannot.
	for round := 0; ; round++ {
		res := l.compact(t, 40_000, true)
		judge(t, fmt.Sprintf("what fits, forced, round %d", round), res, 40_000)
		if l.fits(t, "what fits, forced", 40_000); !res.Compacted {
			break
		}
		if round == 12 {
			t.Errorf("a session that fits is still compacted after %d rounds: %+v", round, res)
			break
		}
	}
	few := live(t, a.open(t))
	few.ingest(t, message.New(message.User, "Hello."), message.New(message.Assistant, "Hello, what is it?"))
	for _, force := range []bool{false, true} {
		if res := few.compact(t, 40_000, force); res.Compacted || res.TokensAfter != res.TokensBefore {
			t.Errorf("two messages were compacted: %+v", res)
		} else {
			judge(t, "two messages", res, 40_000)
		}
	}
}

// overBudget compacts a session of four times its budget.
func overBudget(t *testing.T, a arrangement, force bool, said string) {
	t.Helper()
	const budget = 6000
	for _, assembled := range []bool{false, true} {
		what := fmt.Sprintf("%s of 26,000 tokens, forced %t, assembled before %t", said, force, assembled)
		l := live(t, a.open(t))
		if said == "work" {
			l.work(t, 26_000)
		} else {
			l.ingest(t, talk(26_000)...)
		}
		if assembled {
			l.fits(t, what, budget)
		}
		res := l.compact(t, budget, force)
		judge(t, what, res, budget)
		if a.name == "idle" && !force {
			continue // nobody asked, and nobody did anything
		}
		if !res.OK || !res.Compacted || res.TokensAfter > budget || res.TokensBefore < 3*budget {
			t.Errorf("%s: %+v, want at most %d tokens", what, res, budget)
		}
		l.fits(t, what, budget)
		// And again: it converges.
		for round := range 12 {
			again := l.compact(t, budget, false)
			judge(t, what+", again", again, budget)
			if again.TokensAfter > res.TokensAfter {
				t.Errorf("%s: %d tokens, and %d after another compaction", what, res.TokensAfter, again.TokensAfter)
			}
			if !again.Compacted {
				break
			}
			if round == 11 {
				t.Errorf("%s: it goes on compacting: %+v", what, again)
			}
		}
	}
}

// talk is about so many tokens of conversation without tools.
func talk(tokens int) (out []message.Message) {
	for i := 0; tokens > 0; i++ {
		text := strings.Repeat(fmt.Sprintf("the report of step %d says that part %d of it is done, ", i, i%7), 6)
		out = append(out, message.New(message.User, text), message.New(message.Assistant, "Noted: "+text))
		tokens -= 2*quick(text) + 12
	}
	return out
}

// TestNewestMessagesAlone: what cannot be compacted because nothing but the newest is there is no reason for alarm as long as it fits.
func TestNewestMessagesAlone(t *testing.T) {
	t.Parallel()
	long := message.New(message.User, strings.Repeat("all of this is one question, ", 2500))
	for _, a := range arrangements() {
		if !strings.HasSuffix(a.name, "/no model") {
			continue
		}
		for _, force := range []bool{true, false} {
			answered, open := live(t, a.open(t)), live(t, a.open(t))
			answered.ingest(t, long, message.New(message.Assistant, "Noted."))
			what := fmt.Sprintf("%s, one question that does not fit, forced %t", a.name, force)
			judge(t, what, answered.compact(t, 8000, force), 8000)
			answered.fits(t, what, 8000)
			// The newest message is nobody's to compact. It does fit: the window clips it.
			open.ingest(t, message.New(message.User, "Hello."), message.New(message.Assistant, "Hello, what is it?"), long)
			if res := open.compact(t, 8000, force); !res.Compacted && benign(res.Reason) != res.OK {
				t.Errorf("%s, not answered: %+v", what, res)
			}
			open.fits(t, what+", not answered", 8000)
		}
	}
}
