//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/strategies/archive"
)

// TestMain is the program itself for the tests that run it, else the tests.
func TestMain(m *testing.M) {
	if os.Getenv("FILESTORE_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

func open(tb testing.TB, path string) core.Store {
	tb.Helper()
	s, err := Open(tb.Context(), Config{Path: path}, registry.Env{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// What the guide promises of this program.
func TestShort(t *testing.T) {
	text, err := os.ReadFile("main.go")
	if lines := strings.Count(string(text), "\n"); err != nil || lines >= 100 {
		t.Errorf("main.go has %d lines, %v; the guide says under 100", lines, err)
	}
}

func TestStore(t *testing.T) {
	paths := map[core.Store]string{}
	at := func(tb testing.TB, path string) core.Store {
		tb.Helper()
		s := open(tb, path)
		paths[s] = path
		return s
	}
	conformance.TestStore(t, func(tb testing.TB) core.Store { tb.Helper(); return at(tb, filepath.Join(tb.TempDir(), "s.jsonl")) },
		conformance.WithReopen(func(tb testing.TB, old core.Store) core.Store {
			tb.Helper()
			_ = old.Close()
			return at(tb, paths[old])
		}),
		conformance.WithAnother(func(tb testing.TB, first core.Store) core.Store { tb.Helper(); return at(tb, paths[first]) }))
}

// TestEngine: whole engines over the file keep the promises, restarts among them.
func TestEngine(t *testing.T) {
	count, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		t.Fatal(err)
	}
	conformance.TestEngine(t, "archive+file", func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
		tb.Helper()
		store := env.Store
		if store == nil {
			store = open(tb, filepath.Join(tb.TempDir(), "s.jsonl"))
		}
		compactor, err := archive.New(archive.DefaultConfig())
		if err != nil {
			tb.Fatal(err)
		}
		cfg := engine.DefaultConfig()
		cfg.Compaction.Deadline, cfg.Recall.Deadline = env.Deadline, env.Deadline
		e, err := engine.New(engine.Parts{Store: env.Wrap(store), Compactor: compactor, Counter: env.Count, Host: env.Host}, cfg, engine.WithIDs(env.IDs))
		if err != nil {
			tb.Fatal(err)
		}
		return e, store
	}, count.Count, conformance.WithCases(20))
}

// self is this program's command line in a process of its own.
func self(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "FILESTORE_MAIN=1")
	return cmd
}

// TestProcesses: two processes write into one file at the same time, half a line of a third lies there, and nothing is lost; replay verifies the promises.
func TestProcesses(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	dir := t.TempDir()
	var running []*exec.Cmd
	for _, who := range []string{"ann", "bob"} {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, `{"role":"user","content":"question %d"}`+"\n"+`{"role":"assistant","content":"answer %d"}`+"\n", i, i)
		}
		if err := os.WriteFile(filepath.Join(dir, who+".jsonl"), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := self(t, dir, "import", who+".jsonl", "--store", "file", "--agent", who)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %v", cmd.Args, err)
		}
	}
	path := filepath.Join(dir, "store.jsonl")
	half, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = half.WriteString(`[{"key":"entry/ca`)
	if err := errors.Join(err, half.Close()); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	for _, who := range []string{"ann", "bob"} {
		page, err := s.Scan(t.Context(), core.ScanQuery{Scope: core.Scope{Agent: who}, Limit: core.MaxPage})
		if err != nil || len(page.Entries) != 80 || page.Entries[79].Message.Role != message.Assistant {
			t.Fatalf("%s: %d entries, %v", who, len(page.Entries), err)
		}
	}
	out, err := self(t, dir, "replay", "ann.jsonl", "--store", "file", "--budget", "1k").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "0 violations") {
		t.Errorf("%v\n%s", err, out)
	}
}
