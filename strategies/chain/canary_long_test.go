package chain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
)

// TestCanariesInLongMessages: a fact in the middle of a message that no page has room for is found by the message it is in, which can be read in full, byte
// for byte, after it has left the window.
func TestCanariesInLongMessages(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	const budget = 32_000
	for language, facts := range canaries {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			l := live(t, build(t, "mask+index+archive", nil))
			var said []string
			for i, c := range facts {
				filler := strings.Repeat(fmt.Sprintf("Line of log %d that nobody needs to know about.\n", i), 300)
				said = append(said, filler+c.said+"\n"+filler)
				l.ingest(t, message.New(message.User, said[i]), message.New(message.Assistant, "Understood."))
			}
			for round := range 2 {
				l.work(t, 40_000)
				l.window(t, budget)
				res, err := l.engine.Compact(t.Context(), core.CompactRequest{Session: l.id, Budget: budget, Force: true})
				if err != nil || !res.Compacted || res.TokensAfter > budget {
					t.Fatalf("round %d: Compact = %+v, %v", round, res, err)
				}
				for i, c := range facts {
					page, err := l.engine.Search(t.Context(), engine.SearchRequest{Session: l.id, Query: c.ask})
					if err != nil {
						t.Fatal(err)
					}
					named := false
					for _, f := range page.Found {
						if f.Whole || f.Type != core.TypeMessage || f.Tokens < quick(said[i]) {
							continue
						}
						named = named || l.read(t, f.ID) == said[i]
					}
					if !named {
						t.Errorf("round %d: no entry on the page that answers %q reads what was said of %q", round, c.ask, c.fact)
					}
					if !strings.Contains(page.Text, c.fact) {
						t.Errorf("round %d: the page that answers %q does not show %q", round, c.ask, c.fact)
					}
				}
			}
		})
	}
}
