package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestWhatFitsIsShownWhole: a window that is made anew holds the whole conversation where that fits, as full as it then is; what does not fit as a whole is cut
// to what windows are filled with on average.
func TestWhatFitsIsShownWhole(t *testing.T) {
	for name, c := range map[string]struct {
		words int
		whole bool
	}{"fits": {52, true}, "does not": {60, false}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ingest(user("first " + strings.Repeat("a ", c.words)))
			for range 8 {
				f.ingest(assistant(strings.Repeat("b ", c.words)), user(strings.Repeat("c ", c.words)))
			}
			f.ingest(user("my code is " + secret))
			f.assemble(100_000)
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
			got := f.assemble(1000)
			if has := strings.Contains(shown(got), "first"); has != c.whole {
				t.Errorf("%d tokens of 1000, the first message is shown: %t, want %t", got.EstimatedTokens, has, c.whole)
			}
			if got.EstimatedTokens < 300 {
				t.Errorf("only %d tokens of 1000 are used", got.EstimatedTokens)
			}
			before := shown(got)
			f.restart()
			if again := shown(f.assemble(1000)); again != before {
				t.Errorf("the next call shows\n%s\nthe first\n%s", again, before)
			}
		})
	}
}

// TestHostCompactedALongHistory: a window that begins where a host's own summary stands is not sought in the long history in front of it: it does not move.
func TestHostCompactedALongHistory(t *testing.T) {
	f := newFixture(t)
	said := turns(300)
	f.ingest(said...)
	sum := user("the host's summary")
	sum.Type = message.CompactionSummary
	res := f.assemble(8000, transcript("now", join(one(sum), said[598:])...))
	if got, want := shown(res), "the host's summary | "+said[598].Text()+" | "+said[599].Text(); got != want || res.Stepped {
		t.Errorf("shown: %q, want %q; stepped: %t", got, want, res.Stepped)
	}
}
