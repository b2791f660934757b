package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestResultsOfOneMessageShareItsRoom: what a message with several results may cost is spread over them: each gets its share, and uses most of it, but no less than is of use.
func TestResultsOfOneMessageShareItsRoom(t *testing.T) {
	for _, c := range []struct{ results, limit, share int }{{1, 300, 300}, {2, 300, 150}, {3, 300, 100}, {5, 300, 60}, {10, 300, 32}} {
		f := newFixture(t, func(cfg *engine.Config, _ *engine.Parts) {
			cfg.Window.ClipTokens, cfg.Window.ClipShare, cfg.Window.BatchShare = c.limit, 0.01, 0.5
		})
		calls, results := message.Message{Role: message.Assistant}, message.Message{Role: message.Tool}
		for n := range c.results {
			id := fmt.Sprint("c", n)
			calls.Parts = append(calls.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "look", Args: "{}"})
			results.Parts = append(results.Parts, message.Part{Kind: message.ToolResult, CallID: id, Name: "look", Text: strings.Repeat("word ", 1000)})
		}
		f.ingest(user("go"), calls, results, assistant("done"), user("more"))
		got := 0
		for _, m := range f.assemble(10_000).Messages {
			for _, p := range m.Parts {
				if p.Kind != message.ToolResult {
					continue
				}
				if got++; wordCounter(p.Text) > c.share || wordCounter(p.Text) < c.share/2 {
					t.Errorf("%d results: one costs %d of %d tokens", c.results, wordCounter(p.Text), c.share)
				}
			}
		}
		if got != c.results {
			t.Errorf("%d of %d results are shown", got, c.results)
		}
	}
}

// TestTriedAgainBesideADuplicate: a call that is tried again because others were first stores what is new once, shows it, and tells observers of it, also where the store knows
// another message of the same call from before.
func TestTriedAgainBesideADuplicate(t *testing.T) {
	for kind, moments := range map[string][]string{"views": {"appending", "appended", "swapping"}, "no views": {"appended"}, "alone": {"appended"}} {
		for _, moment := range moments {
			o := &told{there: make(map[string]string)}
			store := &paused{Store: memory.New()}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
				p.Store, p.Observers = pausedStores[kind](store), []core.Observer{o}
			})
			f.store = store.Store
			other := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = f.parts.Store })
			known, fresh := user("known"), user("fresh")
			known.Key, fresh.Key = "k1", "k2"
			f.ingest(known, assistant("yes"))
			others := func() { other.say(f.id, false, user("theirs")) }
			switch moment {
			case "appending":
				store.appending = others
			case "appended":
				store.appended = others
			default:
				store.swapping = others
			}
			res := f.ingest(known, fresh, assistant("done"))
			if res.Ingested != 2 || res.Duplicates != 1 {
				t.Errorf("%s, %s: %+v, want two new ones and one that was known", kind, moment, res)
			}
			got := shown(f.assemble(1000))
			if kind == "alone" {
				f.restart()
				got = shown(f.assemble(1000))
			}
			if strings.Count(got, "fresh") != 1 || strings.Count(got, "known") != 1 || strings.Count(got, "done") != 1 || strings.Count(got, "theirs") != 1 {
				t.Errorf("%s, %s: shown %q", kind, moment, got)
			}
			for _, id := range res.IDs {
				if o.there[id] == "" {
					t.Errorf("%s, %s: an observer was not told of one of %v: %v", kind, moment, res.IDs, o.there)
				}
			}
			if n := f.stored(); n != 5 {
				t.Errorf("%s, %s: %d entries are stored, want 5", kind, moment, n)
			}
		}
	}
}

// TestTwinsThatNoViewShowsYet: entries that share a position, and that no view shows yet, are shown each once, behind each other.
func TestTwinsThatNoViewShowsYet(t *testing.T) {
	f, store := olderFixture(t)
	f.assemble(1000)
	f.restart()
	store.twin(t, f.id, 9, user("late"))
	store.twin(t, f.id, 9, user("beside late"))
	for range 2 {
		if got, want := shown(f.assemble(1000)), mended+" | late | beside late"; got != want {
			t.Errorf("shown %q, want %q", got, want)
		}
	}
	if got := flaws(t, store); len(got) > 0 {
		t.Errorf("flaws: %q", got)
	}
}
