package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestHandedBackAfterAnErasure: inside a turn a host builds on the first thing that it was given, whatever process answers. What the engine had made of a message
// that is erased meanwhile, in whichever way, is nobody's message.
func TestHandedBackAfterAnErasure(t *testing.T) {
	long := secret + strings.Repeat(" and more", 200)
	to := func(provider string) func(*core.AssembleRequest) {
		return func(r *core.AssembleRequest) { r.Settings.Provider = provider }
	}
	chatter := func(n int) (out []message.Message) {
		for i := range n {
			out = append(out, user(fmt.Sprintf("loaf %d came out a little flat", i)), assistant("let it rise longer and fold it once more"))
		}
		return out
	}
	for name, tc := range map[string]struct {
		host     []message.Message
		budget   int
		provider string
		compact  bool
	}{
		"recalled":                  {host: join(one(user("the code of the office is "+secret), assistant("noted")), chatter(60), one(user("what is the code of the office?"))), budget: 400},
		"recalled and merged":       {host: join(one(user("the code of the office is "+secret), assistant("noted")), chatter(60), one(user("what is the code of the office?"))), budget: 400, provider: "anthropic"},
		"shortened":                 {host: join(chatter(2), one(user(long), assistant("noted"), user("go on"))), budget: 250},
		"merged":                    {host: join(chatter(2), one(user(secret), user("and another thing"), assistant("noted"), user("go on"))), budget: 1000, provider: "anthropic"},
		"summarised":                {host: join(one(user(secret), assistant("noted")), chatter(20), one(user("go on"))), budget: 200, compact: true},
		"summarised and merged":     {host: join(one(user(secret), assistant("noted")), chatter(20), one(user("go on"))), budget: 200, compact: true, provider: "anthropic"},
		"the newest, and it merges": {host: join(chatter(60), one(user("the code of the office is "+secret))), budget: 400, provider: "anthropic"},
	} {
		for _, calls := range []int{2, 12} {
			t.Run(fmt.Sprintf("%s, %d calls", name, calls), func(t *testing.T) {
				all := &allEntries{}
				f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
					p.Retriever = all
					p.Compactor = teller{}
				})
				f.assemble(tc.budget, transcript("", tc.host...), full, to(tc.provider))
				if tc.compact {
					if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: tc.budget, Force: true}); err != nil {
						t.Fatal(err)
					}
				}
				first := f.assemble(tc.budget, transcript("", tc.host...), full, to(tc.provider))
				if !strings.Contains(shown(first), secret) {
					t.Fatalf("nothing to erase is shown: %s", shown(first))
				}
				var ids []string
				for e, err := range core.All(t.Context(), f.store, f.id.Scope(), false) {
					if err == nil && e.Type == core.TypeMessage && strings.Contains(e.Message.Text(), secret) {
						ids = append(ids, e.ID)
					}
				}
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: ids})
				before := f.stored()
				list, said := first.Messages, tc.host
				for n := range calls {
					if n > 0 && n != calls-2 {
						f.restart()
					}
					more := one(calling(fmt.Sprint("h", n)), resulting(fmt.Sprint("h", n), fmt.Sprint("closed ", n)))
					list, said = join(list, more), join(said, more)
					res := f.assemble(tc.budget, transcript("", list...), loopCall, full, to(tc.provider))
					if strings.Contains(shown(res), secret) {
						t.Errorf("call %d shows it: %s", n, shown(res))
					}
					if got := f.stored(); got != before+2*(n+1) {
						t.Fatalf("after call %d %d entries are stored, want %d:\n%s", n, got, before+2*(n+1), strings.Join(f.traces(), "\n"))
					}
				}
				f.restart()
				if res := f.assemble(tc.budget, transcript("", said...), full, to(tc.provider)); strings.Contains(shown(res), secret) {
					t.Errorf("shown by the next turn: %s", shown(res))
				}
				if got := f.stored(); got != before+2*calls {
					t.Errorf("in the end %d entries are stored, want %d", got, before+2*calls)
				}
			})
		}
	}
}

// TestHandedBackToAnother: what was sent behind a compaction, a summary and the user's words in one message, is nobody's message to a process that did not send it either,
// also where more was stored or something was erased meanwhile.
func TestHandedBackToAnother(t *testing.T) {
	for _, provider := range []string{"", "anthropic", "google", "openai", "mistral"} {
		for _, who := range []string{"the same process", "the same, started again", "another"} {
			for _, meanwhile := range []string{"nothing", "a turn is committed", "a message is ingested", "the first is erased", "the second is erased"} {
				for _, compactions := range []int{1, 2} {
					f := newFixture(t, func(c *engine.Config, p *engine.Parts) { p.Compactor, c.RecentMessages = teller{}, 1 })
					host := one(user("one "+strings.Repeat("word ", 12)), user("two "+strings.Repeat("word ", 12)))
					to := func(r *core.AssembleRequest) { r.Settings.Provider = provider }
					f.assemble(400, transcript("", host...), to)
					f.compact(400)
					given := f.assemble(400, transcript("", host...), to)
					switch who {
					case "another":
						f = f.second()
					case "the same, started again":
						f.restart()
					}
					next := user("three")
					next.ID = "m3"
					gone := ""
					switch meanwhile {
					case "a turn is committed":
						f.commit("k", next)
					case "a message is ingested":
						f.ingest(next)
					case "the first is erased", "the second is erased":
						gone = map[bool]string{true: "one", false: "two"}[meanwhile == "the first is erased"]
						f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(gone + " word").ID}})
					}
					if compactions == 2 {
						f.compact(400)
					}
					res := f.assemble(400, inLoop, to, transcript("", join(given.Messages, one(next))...))
					var stored []string
					for _, e := range entriesOf(f) {
						if e.Type == core.TypeMessage {
							stored = append(stored, strings.Fields(e.Text())[0])
						}
					}
					want := slices.DeleteFunc([]string{"one", "two", "three"}, func(word string) bool { return word == gone })
					if !slices.Equal(stored, want) || gone != "" && strings.Contains(shown(res), gone+" word") {
						t.Errorf("for %q, %s, %s, %d compactions: shown %q, stored %q", provider, who, meanwhile, compactions, shown(res), stored)
					}
				}
			}
		}
	}
}
