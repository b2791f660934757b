package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// twofold makes two summaries of all that may go, with the last word of each message.
type twofold struct{}

func (twofold) OwnsCompaction() bool { return true }

func (twofold) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	var p core.Patch
	may := c.Entries[:len(c.Entries)-c.Protected]
	for _, some := range [][]core.Entry{may[:len(may)/2], may[len(may)/2:]} {
		r := core.Replacement{Kind: "summary", Text: "summary"}
		for _, entry := range some {
			words := strings.Fields(entry.Text())
			r.Text += " " + words[len(words)-1]
			r.Entries = append(r.Entries, entry.ID)
		}
		p.Replace = append(p.Replace, r)
	}
	return p, nil
}

// TestErasedWhileACompactionPublishes: whatever another engine erases, purges or rewinds in front of any call of the store in a compaction, no summary tells of it
// afterwards, in no view, in the store, and in no index, and an index holds what the store does.
func TestErasedWhileACompactionPublishes(t *testing.T) {
	padding := strings.Repeat("word ", 30)
	for _, what := range []string{"forget", "purge", "purge and go on", "rewind", "compact and forget"} {
		for at := int64(1); ; at++ {
			store, index := &numbered{Store: memory.New(), at: at}, &told{there: make(map[string]string)}
			store.off.Store(true)
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
				p.Store, p.Compactor, p.Observers = store, twofold{}, []core.Observer{index}
			})
			f.store = store.Store
			for i := range 4 {
				f.ingest(user(fmt.Sprint(padding, "q", i)), assistant(fmt.Sprint(padding, "a", i)))
			}
			f.ingest(user(padding+secret), assistant(padding+"noted"), user("go on"), assistant("so I do"))
			f.assemble(1000)
			other, err := engine.New(f.parts, f.cfg)
			if err != nil {
				t.Fatal(err)
			}
			happened := false
			store.do = func() {
				store.off.Store(true)
				happened = true
				var err error
				erase := engine.ForgetRequest{Scope: f.id.Scope()}
				switch what {
				case "purge", "purge and go on":
					erase.Purge = true
				case "rewind":
					_, err = other.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, Transcript: &core.Transcript{Whole: true}})
				case "compact and forget":
					_, err = other.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 300, Force: true})
				}
				if !erase.Purge {
					for entry, err := range core.All(t.Context(), store.Store, f.id.Scope(), false) {
						if err != nil {
							t.Fatal(err)
						}
						if strings.Contains(entry.Text(), padding+secret) {
							erase.Entries = append(erase.Entries, entry.ID)
						}
					}
				}
				if _, again := other.Forget(t.Context(), erase); again != nil || err != nil {
					t.Error(err, again)
				}
				if what == "purge and go on" {
					if _, err := other.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("begun anew")}); err != nil {
						t.Error(err)
					}
				}
			}
			store.off.Store(false)
			_, err = f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 300, Force: true})
			store.off.Store(true)
			if err != nil && !errors.Is(err, core.ErrNotFound) {
				t.Errorf("%s, before call %d: %v", what, at, err)
			}
			if !happened {
				break
			}
			f.assemble(1000)
			if got := f.traces(); got != nil {
				t.Errorf("%s, before call %d: still there: %q", what, at, got)
			}
			held := make(map[string]string)
			for entry, err := range core.All(t.Context(), store.Store, f.id.Scope(), false) {
				if err != nil {
					t.Fatal(err)
				}
				if entry.Type != core.TypeErased {
					held[entry.ID] = entry.Text()
				}
			}
			for id, text := range index.there {
				if held[id] != text {
					t.Errorf("%s, before call %d: the index holds %.200q, the store %.200q", what, at, text, held[id])
				}
			}
		}
	}
}
