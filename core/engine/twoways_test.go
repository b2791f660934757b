package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
)

// second is another process's fixture over the same store.
func (f *fixture) second() *fixture {
	f.t.Helper()
	other := &fixture{t: f.t, store: f.store, id: f.id, cfg: f.cfg, parts: f.parts}
	other.restart()
	return other
}

// TestWindowOfManyEntriesAfterARestart: a window is the same whether or not its process lives on, however many entries it is made of.
func TestWindowOfManyEntriesAfterARestart(t *testing.T) {
	needs.NoRace(t) // one goroutine, and long
	for name, more := range map[string]int{"as it was": 0, "with a few more": 7, "with many more": 700} {
		t.Run(name, func(t *testing.T) {
			stay, leave := newFixture(t), newFixture(t)
			var shows [2]core.AssembleResult
			for i, f := range []*fixture{stay, leave} {
				for n := range 1700 {
					f.ingest(user(fmt.Sprintf("message %d says so much", n)))
					if n%50 == 0 {
						f.assemble(12_000)
					}
				}
				f.assemble(12_000)
				if f == leave {
					f.restart()
				}
				for n := range more {
					f.ingest(user(fmt.Sprintf("further %d says so much", n)))
				}
				if f == leave {
					f.restart()
				}
				shows[i] = f.assemble(12_000)
			}
			if n := len(shows[0].Messages); n <= 512 {
				t.Fatalf("%d messages are shown: nothing is tested", n)
			}
			if got, want := shown(shows[1]), shown(shows[0]); got != want || shows[1].Epoch != shows[0].Epoch {
				t.Errorf("%d messages of epoch %d are shown after a restart, without one %d of epoch %d",
					len(shows[1].Messages), shows[1].Epoch, len(shows[0].Messages), shows[0].Epoch)
			}
		})
	}
}

// TestOthersPurgeAndBeginAnew: a session that another process purged, and that says something else since, is noticed, also where its view has the same version by then.
func TestOthersPurgeAndBeginAnew(t *testing.T) {
	f := newFixture(t)
	other := f.second()
	f.ingest(user("one"), assistant("two"), user("three"))
	f.assemble(1000)
	was, err := f.store.LoadView(t.Context(), f.id)
	if err != nil {
		t.Fatal(err)
	}
	other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
	other.ingest(user("anew"))
	other.assemble(1000)
	is, err := f.store.LoadView(t.Context(), f.id)
	if err != nil || is.Version != was.Version {
		t.Fatalf("version %d, before %d: nothing is tested: %v", is.Version, was.Version, err)
	}
	if got := shown(f.assemble(1000)); got != "anew" {
		t.Errorf("shown: %q", got)
	}
	if f.epoch() == was.Epoch {
		t.Error("what was sent is said to be a prefix still")
	}
	f.ingest(assistant("yes"))
	for _, g := range []*fixture{f, other} {
		if got := shown(g.assemble(1000)); got != "anew | yes" {
			t.Errorf("shown: %q", got)
		}
	}
}

// TestPurgeChangesTheEpochOnce: after a purge what was sent is no prefix any more. What is sent from then on is, however often the session is read anew.
func TestPurgeChangesTheEpochOnce(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("one"), assistant("two"))
	f.assemble(1000)
	before := f.epoch()
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
	f.ingest(user("anew"))
	first := f.assemble(1000).Epoch
	if first <= before {
		t.Errorf("epoch %d after a purge, %d before", first, before)
	}
	for range 3 {
		if err := f.engine.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.ingest(assistant("yes"))
		if got := f.assemble(1000).Epoch; got != first {
			t.Errorf("epoch %d, want %d as before", got, first)
		}
	}
}

// TestErasedSummaryIsNoPurge: where a summary that was the session's last entry is deleted, as erasures of older versions did, the session is what it was: nothing
// is sent anew.
func TestErasedSummaryIsNoPurge(t *testing.T) {
	f := newFixture(t)
	f.parts.Compactor = teller{}
	f.restart()
	f.ingest(user("my code is "+secret), assistant("two"), user("three"))
	if res := f.compact(100); !res.Compacted {
		t.Fatalf("Compact = %+v", res)
	}
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	page, err := f.store.Scan(t.Context(), core.ScanQuery{Scope: f.id.Scope(), Reverse: true, Limit: 1})
	if err != nil || page.Entries[0].Type != core.TypeErased {
		t.Fatalf("the session ends with %+v, %v", page.Entries, err)
	}
	if _, err := f.store.Delete(t.Context(), f.id.Scope(), []string{page.Entries[0].ID}); err != nil {
		t.Fatal(err)
	}
	first := f.assemble(1000)
	tail, err := f.store.Tail(t.Context(), f.id)
	if v, e := f.store.LoadView(t.Context(), f.id); err != nil || e != nil || tail.Next >= v.Next {
		t.Fatalf("the store ends at %d, the view at %d: nothing is tested: %v, %v", tail.Next, v.Next, err, e)
	}
	other := f.second()
	for range 2 {
		for name, g := range map[string]*fixture{"the same process": f, "another": other} {
			if res := g.assemble(1000); res.Epoch != first.Epoch || res.Stepped {
				t.Errorf("%s: epoch %d, stepped %v, want epoch %d as before", name, res.Epoch, res.Stepped, first.Epoch)
			}
		}
	}
	f.restart()
	if res := f.assemble(1000); res.Epoch != first.Epoch {
		t.Errorf("after a restart: epoch %d, want %d", res.Epoch, first.Epoch)
	}
}

// TestOwnOutputWhateverOthersDo: what was sent is known when a host hands it back, also when another process changed the session meanwhile.
func TestOwnOutputWhateverOthersDo(t *testing.T) {
	for name, do := range map[string]func(other *fixture){
		"a message": func(other *fixture) { other.ingest(assistant("by the way")) },
		"a turn": func(other *fixture) {
			other.ingest(user("by the way " + strings.Repeat("word ", 80)))
			other.assemble(300)
		},
		"a compaction": func(other *fixture) { other.compact(100); other.assemble(300) },
		"an erasure": func(other *fixture) {
			other.forget(engine.ForgetRequest{Scope: other.id.Scope(), Entries: []string{other.entry("step 18").ID}})
		},
		"a compaction and an erasure": func(other *fixture) {
			other.compact(100)
			other.forget(engine.ForgetRequest{Scope: other.id.Scope(), Entries: []string{other.entry("step 2").ID}})
		},
	} {
		for _, call := range []string{"loop", ""} {
			t.Run(name+" "+call, func(t *testing.T) {
				f := newFixture(t)
				other := f.second()
				host := []message.Message{user("begin")}
				for n := range 20 {
					id := fmt.Sprint("c", n)
					host = append(host, user(fmt.Sprintf("step %d", n)), calling(id), resulting(id, strings.Repeat("word ", 30+n*5)))
				}
				first := f.assemble(300, transcript("now", host...))
				if len(first.Messages) >= len(host) {
					t.Fatal("nothing is left out: nothing is tested")
				}
				do(other)
				before := f.stored()
				f.assemble(300, transcript("now", first.Messages...), func(r *core.AssembleRequest) { r.Call = core.Call(call) })
				if n := f.stored(); n != before {
					t.Errorf("%d entries are stored, before %d: %q", n, before, entriesOf(f)[before].Text())
				}
			})
		}
	}
}

// TestOwnOutputOutsideATurn: what was sent, whatever a provider's rules made of it, is known after a restart too when a host hands it back outside a turn.
func TestOwnOutputOutsideATurn(t *testing.T) {
	for _, provider := range []string{"anthropic", "google", "openai", "bedrock", "mistral", "nobody"} {
		to := func(r *core.AssembleRequest) { r.Settings.Provider = provider }
		for name, call := range map[string]func(f *fixture, list []message.Message) error{
			"assemble": func(f *fixture, list []message.Message) error {
				f.assemble(300, transcript("now", list...), to)
				return nil
			},
			"bootstrap": func(f *fixture, list []message.Message) error {
				_, err := f.engine.Bootstrap(f.t.Context(), core.BootstrapRequest{
					Session: f.id, Transcript: &core.Transcript{Messages: list}, Settings: core.RuntimeSettings{Provider: provider},
				})
				return err
			},
			"compact": func(f *fixture, list []message.Message) error {
				_, err := f.engine.Compact(f.t.Context(), core.CompactRequest{
					Session: f.id, Budget: 4000, Transcript: &core.Transcript{Messages: list}, Settings: core.RuntimeSettings{Provider: provider},
				})
				return err
			},
		} {
			t.Run(provider+" "+name, func(t *testing.T) {
				f := newFixture(t)
				host := []message.Message{user("begin")}
				for n := range 20 {
					id := fmt.Sprint("c", n)
					host = append(host, user(fmt.Sprintf("step %d", n)), calling(id), resulting(id, strings.Repeat("word ", 30+n*5)))
				}
				sent := f.assemble(300, transcript("now", host...), to).Messages
				before := f.stored()
				f.restart()
				if err := call(f, sent); err != nil {
					t.Fatal(err)
				}
				if n := f.stored(); n != before {
					t.Errorf("%d entries are stored, before %d", n, before)
				}
			})
		}
	}
}

// TestRewindBeforeASystemMessage: a system message that came late goes on standing in front after a rewind to what was said before it, and is stored once.
func TestRewindBeforeASystemMessage(t *testing.T) {
	base := turns(4)
	for name, restarts := range map[string]bool{"in one process": false, "with restarts": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tell := func(list ...message.Message) string {
				t.Helper()
				if restarts {
					f.restart()
				}
				return shown(f.assemble(1000, transcript("now", list...)))
			}
			tell(base[:4]...)
			tell(join(one(system("s1")), base)...)
			was := f.stored()
			for range 2 {
				if got, want := tell(join(one(system("s1")), base[:2])...), "s1 | "+base[0].Text()+" | "+base[1].Text(); got != want {
					t.Errorf("shown: %q, want %q", got, want)
				}
			}
			if n := f.stored(); n != was {
				t.Errorf("%d entries are stored, before the rewind %d", n, was)
			}
			if got, want := tell(join(one(system("s1")), base[:2], one(user("other")))...), "s1 | "+base[0].Text()+" | "+base[1].Text()+" | other"; got != want {
				t.Errorf("shown: %q, want %q", got, want)
			}
			if n := f.stored(); n != was+1 {
				t.Errorf("%d entries are stored, want one more than %d", n, was)
			}
			if got, want := tell(join(one(system("s1")), base[:1], one(assistant("once more")))...), "s1 | "+base[0].Text()+" | once more"; got != want {
				t.Errorf("shown: %q, want %q", got, want)
			}
			if n := f.stored(); n != was+2 {
				t.Errorf("%d entries are stored, want two more than %d", n, was)
			}
			// A host that hands over its conversation alone says nothing of what leads.
			if got, want := tell(base[:1]...), "s1 | "+base[0].Text(); got != want {
				t.Errorf("without the system message, shown: %q, want %q", got, want)
			}
			if got, want := tell(join(one(system("s1")), base[:1], one(user("at last")))...), "s1 | "+base[0].Text()+" | at last"; got != want {
				t.Errorf("shown: %q, want %q", got, want)
			}
			if n := f.stored(); n != was+3 {
				t.Errorf("%d entries are stored, want three more than %d", n, was)
			}
		})
	}
}

// TestMessagesMoveAroundASystemMessage: a system message that came late stands on the path once, also where what it came behind has moved.
func TestMessagesMoveAroundASystemMessage(t *testing.T) {
	f := newFixture(t)
	base := turns(3)
	f.assemble(1000, transcript("now", base[:4]...))
	f.assemble(1000, transcript("now", join(one(system("s1")), base[:4])...))
	f.assemble(1000, transcript("now", join(one(system("s1")), base)...))
	moved := join(one(system("s1")), base[:2], base[4:], base[2:4])
	want := shown(core.AssembleResult{Messages: moved})
	for range 2 {
		if got := shown(f.assemble(1000, transcript("now", moved...))); got != want {
			t.Errorf("shown: %q, want %q", got, want)
		}
		f.restart()
	}
	if n := f.known(); n != len(moved) {
		t.Errorf("%d entries are in force, want %d", n, len(moved))
	}
}

// TestARecallBlockCostsTheSame: what a recall block costs does not depend on who made it.
func TestARecallBlockCostsTheSame(t *testing.T) {
	p := &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
		// Texts cost more one by one than together, as they do with tokenizers.
		parts.Counter = func(text string) int { return len(text)/4 + 1 }
		c.Recall.Share, parts.Retriever = 0.3, p
		c.Recall.Gate = false
	})
	elsewhere := core.SessionID{Agent: f.id.Agent, Session: "elsewhere"}
	f.cfg.Recall.AcrossSessions = true
	f.restart()
	for n := range 12 {
		f.say(elsewhere, false, user(fmt.Sprintf("kite number %d is red", n)))
	}
	f.everything(p, f.id.Agent)
	f.ingest(user("hello"), assistant("hi"), user("what of the kites?"))
	full := func(r *core.AssembleRequest) { r.PromptMode = core.PromptFull }
	first := f.assemble(4000, full)
	if first.RecallLen == 0 {
		t.Fatal("nothing is recalled")
	}
	f.restart()
	if again := f.assemble(4000, full); shown(again) != shown(first) || again.EstimatedTokens != first.EstimatedTokens {
		t.Errorf("after a restart %d tokens, before %d", again.EstimatedTokens, first.EstimatedTokens)
	}
}

// TestBlocksThatComeBackAfterARestart: what clients put into message after message is known whichever process stored those before.
func TestBlocksThatComeBackAfterARestart(t *testing.T) {
	text := func(n int) message.Message {
		return user(fmt.Sprintf("<my-budget>\n%d tokens left\n</my-budget>\n\nquestion %d", 90000-n*711, n))
	}
	say := map[string]func(f *fixture, n int){
		"one process": func(f *fixture, n int) { f.ingest(text(n)) },
		"restarts": func(f *fixture, n int) {
			f.restart()
			f.ingest(text(n))
		},
		"a restart and a transcript": func(f *fixture, n int) {
			f.restart()
			var host []message.Message
			for i := range n + 1 {
				host = append(host, text(i))
			}
			f.assemble(4000, transcript("now", host...))
		},
		"two processes": func(f *fixture, n int) {
			if n%2 == 0 {
				f.ingest(text(n))
				return
			}
			other := f.second()
			other.ingest(text(n))
		},
	}
	var want []string
	for i := range 6 {
		want = append(want, text(i).Text())
		if i >= 2 {
			want[i] = fmt.Sprintf("question %d", i)
		}
	}
	for name, say := range say {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = memory.New() })
			f.store = f.parts.Store.(*memory.Store)
			for n := range want {
				say(f, n)
			}
			for i, e := range entriesOf(f) {
				if got := e.Said(); got != want[i] {
					t.Errorf("message %d says %q, want %q", i, got, want[i])
				}
			}
		})
	}
}
