package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/delegate"
)

func TestLedger(t *testing.T) {
	conformance.TestStore(t, func(tb testing.TB) core.Store {
		l := NewLedger()
		tb.Cleanup(func() { _ = l.Close() })
		return l
	})
}

// everything makes a fact of every sentence of a user: the suite's texts seldom state any.
func everything(tb testing.TB) *Facts {
	tb.Helper()
	f, err := NewFacts(FactsConfig{Patterns: []string{"."}, Limit: 50})
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func TestFacts(t *testing.T) {
	conformance.TestRetriever(t, func(tb testing.TB) (core.Retriever, core.Store) { return everything(tb), NewLedger() })
}

// parts is one combination for the suite.
type parts struct {
	store     func() core.Store
	retriever func(testing.TB) *Facts
	compactor func(conformance.Env) (core.Compactor, error)
	across    bool
}

// open builds the engine. Env.Wrap lets the suite make the store fail; after a restart Env.Store is the store of before.
func (p parts) open(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
	tb.Helper()
	store := env.Store
	if store == nil {
		store = p.store()
	}
	compactor, err := p.compactor(env)
	if err != nil {
		tb.Fatal(err)
	}
	made := engine.Parts{Store: env.Wrap(store), Compactor: compactor, Counter: env.Count, Host: env.Host}
	if p.retriever != nil {
		made.Retriever = p.retriever(tb)
	}
	cfg := engine.DefaultConfig()
	cfg.Recall.AcrossSessions, cfg.Recall.Deadline, cfg.Compaction.Deadline = p.across, env.Deadline, env.Deadline
	e, err := engine.New(made, cfg, engine.WithIDs(env.IDs))
	if err != nil {
		tb.Fatal(err)
	}
	return e, store
}

func TestMatrix(t *testing.T) {
	count, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		t.Fatal(err)
	}
	ledger := func() core.Store { return NewLedger() }
	reference := func() core.Store { return memory.New() }
	archiving := func(conformance.Env) (core.Compactor, error) { return archive.New(archive.DefaultConfig()) }
	delegating := func(env conformance.Env) (core.Compactor, error) { return delegate.New(env.Host) }
	conformance.TestMatrix(t, []conformance.Combination{
		{Name: "facts+archive+ledger", Open: parts{store: ledger, retriever: everything, compactor: archiving, across: true}.open, AcrossSessions: true},
		{Name: "facts+delegate+memory", Open: parts{store: reference, retriever: everything, compactor: delegating}.open},
		{Name: "none+delegate+ledger", Open: parts{store: ledger, compactor: delegating}.open},
	}, count.Count)
}

// run is the command line, with the parts of this program.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	reg, err := newRegistry()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), reg, args, cli.IO{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

func TestChosenByName(t *testing.T) {
	for _, args := range [][]string{
		{"replay", "--json", "--store", "ledger", "--retriever", "facts"},
		{"replay", "--json", "--config", "contextengine.yaml"},
		{"replay", "--json", "--combinations", "all", "--store", "ledger", "--retriever", "facts", "--compactor", "archive"},
	} {
		t.Run(strings.Join(args[2:], " "), func(t *testing.T) {
			code, stdout, stderr := run(t, args...)
			var got struct {
				Violations *int
				Reports    []struct{ Config string }
			}
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatalf("%v, exit code %d\n%s%s", err, code, stdout, stderr)
			}
			if code != cli.ExitOK || got.Violations == nil || *got.Violations != 0 || len(got.Reports) == 0 {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
			for _, r := range got.Reports {
				if r.Config != "facts+archive+ledger" {
					t.Errorf("replayed %q, want facts+archive+ledger", r.Config)
				}
			}
		})
	}
}

func TestListed(t *testing.T) {
	_, stdout, _ := run(t, "list")
	for _, want := range []string{"  ledger ", "  facts ", "patterns", "largest number of facts"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
}

func TestMisspelt(t *testing.T) {
	code, _, stderr := run(t, "replay", "--retriever", "fatcs")
	if code != cli.ExitUsage || !strings.Contains(stderr, `did you mean "facts"?`) {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// TestConfigured: the options of the file reach the engine's parts, and bad ones are refused by name.
func TestConfigured(t *testing.T) {
	reg, err := newRegistry()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := reg.LoadFile("contextengine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	instance, err := reg.Build(t.Context(), cfg, registry.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := instance.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	engine, _, err := instance.Engine(t.Context(), "ann", "monday")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := engine.Info().Parts, (core.PartNames{Store: "ledger", Retriever: "facts", Compactor: "archive"}); got != want {
		t.Errorf("parts are %+v, want %+v", got, want)
	}
	bad, err := reg.Load(registry.Bytes("bad", "yaml", []byte("retriever: {type: facts, patterns: ['(']}")))
	if err != nil {
		t.Fatal(err)
	}
	broken, err := reg.Build(t.Context(), bad, registry.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := broken.Engine(t.Context(), "ann", "monday"); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "facts: patterns") {
		t.Errorf("a pattern that is none: %v, want ErrInvalid", err)
	}
}

func entry(n int, session, text string) core.Entry {
	m := message.New(message.User, text)
	return core.Entry{
		ID: fmt.Sprintf("e%d", n), Agent: "ann", Session: session, Seq: int64(n), Role: m.Role, Type: core.TypeMessage,
		Key: fmt.Sprintf("k%d", n), Fingerprint: message.Fingerprint(m), Message: m,
	}
}

func recalled(t *testing.T, f *Facts, prompt string) []string {
	t.Helper()
	got, err := f.Retrieve(t.Context(), core.Query{Scope: core.Scope{Agent: "ann"}, Prompt: prompt, Tokens: 1000, Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(got))
	for i, c := range got {
		texts[i] = c.Text
	}
	return texts
}

// TestFactsRemembers: what was there before is read from the store, what is new is told, and the best match comes first.
func TestFactsRemembers(t *testing.T) {
	store := NewLedger()
	f, err := NewFacts(DefaultFactsConfig())
	if err != nil {
		t.Fatal(err)
	}
	before := []core.Entry{entry(0, "monday", "Hello! I prefer tea. What time is it?"), entry(1, "monday", "My sister's name is Ida."), entry(2, "monday", "Remember the milk.")}
	if _, err := store.Append(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if err := f.Attach(store); err != nil {
		t.Fatal(err)
	}
	// An erasure before anybody asked must not come back with the reading.
	if err := f.Deleted(t.Context(), core.Scope{Agent: "ann"}, []string{"e2"}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(recalled(t, f, "black tea?")), "[I prefer tea]"; got != want {
		t.Errorf("recalled %s, want %s", got, want)
	}
	if err := f.Appended(t.Context(), []core.Entry{entry(3, "tuesday", "My favourite colour is green, remember that")}); err != nil {
		t.Fatal(err)
	}
	if got, want := recalled(t, f, "a colour, please"), "My favourite colour is green, remember that"; len(got) != 2 || got[0] != want {
		t.Errorf("recalled %q, want %q first of two", got, want)
	}
	if err := f.Updated(t.Context(), entry(3, "tuesday", "redacted")); err != nil {
		t.Fatal(err)
	}
	if got := recalled(t, f, "a colour, please"); len(got) != 1 {
		t.Errorf("recalled %q after the redaction, want one", got)
	}
}

// TestFactsWhileRead asks, tells and erases from many goroutines at once, for the race detector.
func TestFactsWhileRead(t *testing.T) {
	store, f := NewLedger(), everything(t)
	if err := f.Attach(store); err != nil {
		t.Fatal(err)
	}
	const n = 900
	for i := range n {
		if _, err := store.Append(t.Context(), []core.Entry{entry(i, "s", fmt.Sprintf("sentence number %d", i))}); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < n; i += 4 {
				if i%3 == 0 {
					if _, err := store.Delete(t.Context(), core.Scope{Agent: "ann"}, []string{fmt.Sprintf("e%d", i)}); err != nil {
						t.Error(err)
					}
					if err := f.Deleted(t.Context(), core.Scope{Agent: "ann"}, []string{fmt.Sprintf("e%d", i)}); err != nil {
						t.Error(err)
					}
				}
			}
		})
		wg.Go(func() {
			if _, err := f.Retrieve(t.Context(), core.Query{Scope: core.Scope{Agent: "ann"}, Prompt: "number", Tokens: 100, Limit: 5}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, want := len(f.agents["ann"].facts), n-n/3; got != want {
		t.Errorf("%d facts, want %d", got, want)
	}
}
