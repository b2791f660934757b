package engine_test

import (
	"fmt"
	"testing"

	"github.com/contextengine/contextengine/core/engine"
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
