package chain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/chain"
	"github.com/contextengine/contextengine/strategies/index"
	"github.com/contextengine/contextengine/strategies/mask"
	"github.com/contextengine/contextengine/strategies/summary"
)

// tiers builds each owning tier of the framework.
var tiers = map[string]func(model core.Completer) (core.Compactor, error){
	"mask":    func(core.Completer) (core.Compactor, error) { return mask.New(mask.DefaultConfig()) },
	"index":   func(core.Completer) (core.Compactor, error) { return index.New(index.DefaultConfig()) },
	"archive": func(core.Completer) (core.Compactor, error) { return archive.New(archive.DefaultConfig()) },
	"summary": func(m core.Completer) (core.Compactor, error) { return summary.New(summary.DefaultConfig(), m) },
}

// chains returns the names of all chains of one to four different tiers, in every order.
func chains() []string {
	names := []string{"mask", "index", "archive", "summary"}
	var out []string
	var extend func(sofar []string)
	extend = func(sofar []string) {
		if len(sofar) > 0 {
			out = append(out, strings.Join(sofar, "+"))
		}
	next:
		for _, n := range names {
			for _, have := range sofar {
				if have == n {
					continue next
				}
			}
			extend(append(slices.Clip(sofar), n))
		}
	}
	extend(nil)
	return out
}

func build(tb testing.TB, name string, model core.Completer) core.Compactor {
	tb.Helper()
	return buildOf(tb, tiers, name, model)
}

// buildOf links tiers that are made as kinds says.
func buildOf(tb testing.TB, kinds map[string]func(core.Completer) (core.Compactor, error), name string, model core.Completer) core.Compactor {
	tb.Helper()
	var parts []core.Compactor
	for n := range strings.SplitSeq(name, "+") {
		c, err := kinds[n](model)
		if err != nil {
			tb.Fatalf("%s: %v", n, err)
		}
		parts = append(parts, c)
	}
	c, err := chain.New(parts...)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return c
}

func TestAllChainsKeepTheContract(t *testing.T) {
	needs.NoRace(t) // the parts of a chain are played with it, and chains in the next test
	all := chains()
	if len(all) != 64 {
		t.Fatalf("%d chains, want 64", len(all))
	}
	for _, name := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.TestCompactor(t, func(tb testing.TB, m *conformance.Model) core.Compactor {
				tb.Helper()
				return build(tb, name, m)
			}, conformance.WithCases(2))
		})
	}
}

// TestAllChainsKeepThePromises plays generated sessions against engines with every chain, with the store, the host and the model failing as the
// suite wants.
func TestAllChainsKeepThePromises(t *testing.T) {
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	var all []conformance.Combination
	for _, name := range chains() {
		all = append(all, conformance.Combination{
			Name: name,
			Open: func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
				tb.Helper()
				store := env.Store
				if store == nil {
					store = memory.New()
				}
				cfg := engine.DefaultConfig()
				cfg.Compaction.Deadline, cfg.Recall.Deadline = env.Deadline, env.Deadline
				e, err := engine.New(engine.Parts{
					Store: env.Wrap(store), Compactor: build(tb, name, env.Model), Counter: env.Count, Host: env.Host,
					Names: core.PartNames{Store: "memory", Retriever: "none", Compactor: name},
				}, cfg, engine.WithIDs(env.IDs))
				if err != nil {
					tb.Fatalf("engine.New: %v", err)
				}
				return e, store
			},
		})
	}
	conformance.TestMatrix(t, all, counter.Count, conformance.WithCases(2))
}

func ExampleNew() {
	masking, _ := mask.New(mask.DefaultConfig())
	indexing, _ := index.New(index.DefaultConfig())
	compactor, err := chain.New(masking, indexing)
	fmt.Println(compactor.OwnsCompaction(), err)
	// Output: true <nil>
}
