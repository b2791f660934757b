package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// ranked proposes everything that the window does not show, oldest first, with the scores that a test gives.
type ranked struct {
	*allEntries
	score func(rank int) float64
	asked []core.Query
}

func (r *ranked) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	r.asked = append(r.asked, q)
	out, err := r.allEntries.Retrieve(ctx, q)
	for i := range out {
		out[i].Score = r.score(i)
	}
	return out, err
}

// filled is a session whose window is nearly full, most of its history being out of it.
func filled(t *testing.T, score func(int) float64, change func(*engine.Config)) (*chat, *ranked) {
	t.Helper()
	r := &ranked{allEntries: &allEntries{}, score: score}
	cfg := engine.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	k := newChatWith(t, cfg, r, "the vault phrase is saffron")
	for i := range 200 {
		k.say(fmt.Sprintf("%d says the harbour", i))
		if i%8 == 0 {
			k.ask("go on")
		}
	}
	for i := 0; k.ask("go on").EstimatedTokens < 780; i++ {
		if i > 100 {
			t.Fatal("the window does not fill")
		}
		k.say(fmt.Sprintf("%d says the pier %s", i, strings.Repeat("w ", 12)))
	}
	return k, r
}

// block returns what the block of a result costs, and how many it quotes.
func block(res core.AssembleResult) (tokens, quotes int) {
	if res.RecallLen == 0 {
		return 0, 0
	}
	text := res.Messages[res.RecallAt].Text()
	return wordCounter(text), strings.Count(text, "\n> ")
}

// TestRecallTakesWhatItIsWorth: a turn that asks gets all of the share where there are candidates worth it, even where the window has to step for that; one
// whose candidates are not leaves the window as it is, and so does one that does not ask.
func TestRecallTakesWhatItIsWorth(t *testing.T) {
	flat := func(int) float64 { return 1 }
	steep := func(rank int) float64 { return 1 / float64(1+rank*10) }
	t.Run("worth it", func(t *testing.T) {
		k, _ := filled(t, flat, nil)
		res := k.ask("What was the phrase?")
		if tokens, _ := block(res); tokens < 200 || tokens > 300 {
			t.Errorf("the block costs %d tokens of a budget of 1000, want nearly its share of 0.3", tokens)
		}
		if !res.Stepped {
			t.Error("the window did not step for it")
		}
	})
	t.Run("not worth it", func(t *testing.T) {
		k, _ := filled(t, steep, nil)
		res := k.ask("What was the phrase?")
		if _, quotes := block(res); quotes != 1 {
			t.Errorf("%d are quoted, want the only one above the floor", quotes)
		}
		if res.Stepped {
			t.Error("the window stepped for what is not worth it")
		}
	})
	t.Run("no floor", func(t *testing.T) {
		k, _ := filled(t, steep, func(c *engine.Config) { c.Recall.Floor = 0 })
		if _, quotes := block(k.ask("What was the phrase?")); quotes < 10 {
			t.Errorf("%d are quoted, want what has room", quotes)
		}
	})
	t.Run("does not ask", func(t *testing.T) {
		k, _ := filled(t, flat, func(c *engine.Config) { c.Recall.Tokens = 90 })
		res := k.ask("Open the vault")
		if tokens, _ := block(res); tokens == 0 || tokens > 90 {
			t.Errorf("the block costs %d tokens, want at most recall.tokens", tokens)
		}
		if res.Stepped {
			t.Error("the window stepped for it")
		}
	})
	t.Run("scores that say nothing of worth", func(t *testing.T) {
		k, _ := filled(t, func(rank int) float64 { return -float64(rank) }, nil)
		if tokens, _ := block(k.ask("What was the phrase?")); tokens < 200 {
			t.Errorf("the block costs %d tokens, want nearly its share of 0.3", tokens)
		}
	})
}

// TestCandidatesFollowTheAllowance: more are asked for where more have room, up to the bound.
func TestCandidatesFollowTheAllowance(t *testing.T) {
	k, r := filled(t, func(int) float64 { return 1 }, nil)
	for _, tt := range []struct{ budget, want int }{{1000, 50}, {8000, 120}, {100_000, 400}} {
		r.asked = nil
		res, err := k.engine.Assemble(t.Context(), core.AssembleRequest{Session: k.id, Budget: tt.budget, Prompt: fmt.Sprintf("What was phrase %d?", tt.budget)})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.asked) == 0 || r.asked[len(r.asked)-1].Limit < tt.want {
			t.Errorf("budget %d: %d calls, want a limit of at least %d; %d tokens", tt.budget, len(r.asked), tt.want, res.EstimatedTokens)
		}
	}
}
