package engine_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestPurgedAndAsLongAsBefore: a session that was purged by another process, and is as long again as it was, is not taken for the one that was purged.
func TestPurgedAndAsLongAsBefore(t *testing.T) {
	for _, purger := range []string{"who goes on", "who shows it", "somebody else"} {
		for again := range 3 {
			for looks := range 3 {
				t.Run(fmt.Sprint(purger, " ", again, " ", looks), func(t *testing.T) {
					f := newFixture(t)
					b, c := f.second(), f.second()
					for round := range 2 {
						f.ingest(user(fmt.Sprint("secret ", round)), assistant("noted"))
						f.assemble(1000)
						b.assemble(1000)
						e := map[string]*fixture{"who goes on": f, "who shows it": b, "somebody else": c}[purger]
						if _, err := e.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Purge: true}); err != nil {
							t.Fatal(err)
						}
						for range looks {
							e.assemble(1000)
						}
						f.ingest(user("hello"), assistant("good day"))
						for range again {
							f.assemble(1000)
						}
						fresh := f.second()
						for _, e := range []*fixture{b, f, c, fresh} {
							if got := shown(e.assemble(1000)); got != "hello | good day" {
								t.Fatalf("round %d: shown %q", round, got)
							}
						}
						f.sound()
						if _, err := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Purge: true}); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// TestPurgedAndBegunAnewByOthers: the same, where one process purges, another one that never held the session begins it anew, and is as often asked for the window, and
// a third one holds what was purged; on stores in memory and on disk.
func TestPurgedAndBegunAnewByOthers(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) func() core.Store{
		"memory": func(*testing.T) func() core.Store { s := memory.New(); return func() core.Store { return s } },
		"sqlite": func(t *testing.T) func() core.Store {
			t.Helper()
			c := sqlite.DefaultConfig()
			c.Path = filepath.Join(t.TempDir(), "store.db")
			return func() core.Store {
				s, err := sqlite.Open(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				return s
			}
		},
	} {
		for turns := 1; turns <= 3; turns++ {
			for _, looks := range []int{0, 1, 2} {
				t.Run(fmt.Sprint(name, " ", turns, " ", looks), func(t *testing.T) {
					opened := open(t)
					f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = opened() })
					process := func() *fixture {
						p := &fixture{t: t, id: f.id, cfg: f.cfg, parts: f.parts}
						p.parts.Store = opened()
						p.restart()
						return p
					}
					says := func(f *fixture, word string) (host []message.Message) {
						for range turns {
							host = append(host, user(word+" question"), assistant(word+" answer"))
							f.assemble(1000, transcript("now", host...))
						}
						for range looks {
							f.assemble(1000, transcript("now", host...))
						}
						return host
					}
					says(f, "old")
					for round := range 2 {
						if _, err := process().engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Purge: true}); err != nil {
							t.Fatal(err)
						}
						word := fmt.Sprint("new ", round)
						host := says(process(), word)
						for range 2 {
							if got := shown(f.assemble(1000, transcript("now", append(host, user("go on"))...))); strings.Contains(got, "old") || strings.Count(got, word) != len(host) {
								t.Fatalf("round %d: shown %q", round, got)
							}
						}
					}
				})
			}
		}
	}
}
