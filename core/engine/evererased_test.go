package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/internal/records"
)

// believed is a proposer that says that it read what it proposes in the store.
type believed struct{ proposer }

func (*believed) ReadsStore() bool { return true }

// secrets counts how often the keys of erasures are read.
type secrets struct {
	*memory.Store
	reads int
}

func (s *secrets) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if q.Scope.Session == records.Secrets {
		s.reads++
	}
	return s.Store.Scan(ctx, q)
}

// TestQuotedWhileItIsErased: what a retriever read in the store before it was erased is not quoted, in whichever session it was said and whoever erased it. As long as
// nothing was erased the store is not asked for each quotation: where it tells what others did the keys of erasures are not read, and where it does not, once.
func TestQuotedWhileItIsErased(t *testing.T) {
	for _, told := range []bool{true, false} {
		for _, elsewhere := range []bool{true, false} {
			store, p := &secrets{Store: memory.New()}, &believed{}
			f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
				c.Recall.AcrossSessions, parts.Retriever = true, p
				if parts.Store = store; !told {
					parts.Store = alone{store, store}
				}
			})
			f.store = store.Store
			other := f.engine
			if told {
				other = sharedEngine(t, store.Store)
			}
			id := f.id
			if elsewhere {
				id.Session = "elsewhere"
			}
			f.say(id, false, user("the code is "+secret), assistant("noted"))
			for range 20 {
				f.ingest(user("go on"+strings.Repeat(" word", 20)), assistant("so I do"+strings.Repeat(" word", 20)))
			}
			f.everything(&p.proposer, f.id.Agent)
			ask := func() string {
				return shown(f.assemble(300, func(r *core.AssembleRequest) { r.PromptMode, r.Prompt = core.PromptFull, "What is the code?" }))
			}
			store.reads = 0
			for range 3 {
				if got := ask(); !strings.Contains(got, secret) {
					t.Fatalf("nothing is recalled: %s", got)
				}
			}
			if want := map[bool]int{true: 0, false: 1}[told || !elsewhere]; store.reads != want {
				t.Errorf("told %t, elsewhere %t: the keys of erasures are read %d times, want %d", told, elsewhere, store.reads, want)
			}
			var ids []string
			for entry, err := range core.All(t.Context(), store.Store, id.Scope(), false) {
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(entry.Text(), secret) {
					ids = append(ids, entry.ID)
				}
			}
			if _, err := other.Forget(t.Context(), engine.ForgetRequest{Scope: id.Scope(), Entries: ids}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := ask(); strings.Contains(got, secret) {
					t.Errorf("told %t, elsewhere %t: erased and quoted: %s", told, elsewhere, got)
				}
				f.ingest(user("and on"))
			}
		}
	}
}
