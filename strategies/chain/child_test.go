package chain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/models/openai"
	"github.com/contextengine/contextengine/strategies/chain"
	"github.com/contextengine/contextengine/strategies/index"
	"github.com/contextengine/contextengine/strategies/mask"
	"github.com/contextengine/contextengine/strategies/summary"
)

// The environment of a child process: which tiers it compacts with, whether it is asked to, on which file, and where the model is.
const (
	envTiers = "COMPACTION_TEST_TIERS"
	envForce = "COMPACTION_TEST_FORCE"
	envPath  = "COMPACTION_TEST_PATH"
	envModel = "COMPACTION_TEST_MODEL"
)

// number returns a whole number from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// child returns a command that runs TestChild in a process of its own. It says on its output how the session stands at the end.
func child(tb testing.TB, tiers string, force bool, path, model string) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0], "-test.run=^TestChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), envTiers+"="+tiers, envForce+"="+strconv.FormatBool(force), envPath+"="+path, envModel+"="+model)
	cmd.Stderr = os.Stderr
	return cmd
}

// ending is how a session stands when a child is done.
type ending struct {
	Compact core.CompactResult
	// Left is the number of entries that are neither in the window nor stood for by a summary, Prompt what the next one costs.
	Left, Prompt int
	// Covered is the number of entries that summaries stand for.
	Covered int
}

// TestChild is what the processes started by other tests run: it opens a store and compacts the session, if that is due.
func TestChild(t *testing.T) {
	path := os.Getenv(envPath)
	if path == "" {
		t.Skip("not run: it is the body of child processes")
	}
	e := reopened(t, path, compactorOf(t, os.Getenv(envTiers), os.Getenv(envModel)))
	end := look(t, e)
	// Unasked a compaction takes nothing that the window shows, so the first one may leave more than the budget: the texts that it makes come on top.
	for n := 0; n < 2 && (end.Left > 0 || end.Compact.TokensAfter > killedBudget); n++ {
		res, err := e.Compact(t.Context(), core.CompactRequest{Session: killed, Budget: killedBudget, Force: os.Getenv(envForce) == "true"})
		if err != nil {
			t.Fatal(err)
		}
		end = look(t, e)
		end.Compact = res
	}
	if err := e.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	said, err := json.Marshal(end)
	if err != nil {
		t.Fatal(err)
	}
	// In one write that nothing buffers.
	if _, err := fmt.Fprintf(os.Stdout, "%s\n", said); err != nil {
		t.Fatal(err)
	}
}

// killed is the session that is compacted, killedBudget the tokens of its prompts.
var killed = core.SessionID{Agent: "a", Session: "s"}

const (
	killedBudget   = 12_000
	killedParallel = 3
)

// reopened returns an engine over the file, which it closes with itself.
func reopened(t *testing.T, path string, compactor core.Compactor) *engine.Engine {
	t.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = path
	store, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Parts{Store: store, Compactor: compactor, Counter: quick, OwnStore: true}, engine.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Dispose(context.WithoutCancel(t.Context())) })
	return e
}

// compactorOf builds the tiers that a child compacts with: a model at this address does the summaries.
func compactorOf(t *testing.T, tiers, address string) core.Compactor {
	t.Helper()
	at := openai.DefaultConfig()
	at.BaseURL, at.Model, at.MaxRetries = address, "scripted", 0
	model, err := openai.NewCompleter(at)
	if err != nil {
		t.Fatal(err)
	}
	cfg := summary.DefaultConfig()
	cfg.ChunkTokens, cfg.Parallel, cfg.Spend = 1000, killedParallel, summary.Spend{}
	s, err := summary.New(cfg, model)
	if err != nil {
		t.Fatal(err)
	}
	if tiers == "summary" {
		return s
	}
	m, err := mask.New(mask.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.New(index.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	k, err := chain.New(m, s, x)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// look assembles a prompt and says how the session stands.
func look(t *testing.T, e *engine.Engine) ending {
	t.Helper()
	res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: killed, Budget: killedBudget})
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Describe(t.Context(), engine.DescribeRequest{Session: killed})
	if err != nil {
		t.Fatal(err)
	}
	end := ending{Left: d.Entries - d.Shown, Prompt: res.EstimatedTokens}
	for _, s := range d.Summaries {
		end.Covered += s.Covers
	}
	end.Left -= end.Covered
	return end
}

// entriesOf reads all that a file holds of the session: what was said, and what stands for it.
func entriesOf(t *testing.T, path string) (messages, summaries []core.Entry) {
	t.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path, cfg.Check = path, sqlite.CheckOpen
	store, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for entry, err := range core.All(t.Context(), store, killed.Scope(), false) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Type == core.TypeSummary {
			summaries = append(summaries, entry)
		} else {
			messages = append(messages, entry)
		}
	}
	return messages, summaries
}
