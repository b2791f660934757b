package summary_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
	"github.com/contextengine/contextengine/strategies/summary"
)

func TestPromptsCanBeReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "chunk.md"), []byte("version: mine-3\nShorten to {{.Tokens}}:\n{{.Source}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := honest()
	cfg := config()
	cfg.Prompts = summary.Prompts{Dir: dir, System: "You shorten."}
	s := compactingtest.New(compactingtest.Conversation(20), 2000, 5)
	patch := mustCompact(t, newCompactor(t, cfg, m), s)
	if req := m.asked[0]; req.System != "You shorten." || !strings.HasPrefix(req.Prompt, "Shorten to ") || strings.Contains(req.Prompt, "version") {
		t.Errorf("the question is %q / %q, want the replaced prompts", req.System, req.Prompt)
	}
	if got := patch.Replace[0].Meta["prompt"]; !strings.HasPrefix(got, "chunk@mine-3+custom-") {
		t.Errorf("recorded prompt version = %q", got)
	}
}

// TestPromptsBelowTheHome: the folder of the prompts is a path of people.
func TestPromptsBelowTheHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, "system.md"), []byte("You shorten."), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := summary.ListPrompts(summary.Prompts{Dir: "~"}); err != nil || list[0].Text != "You shorten." {
		t.Errorf("ListPrompts = %.1v, %v, want the text below the home", list, err)
	}
	if _, err := summary.ListPrompts(summary.Prompts{Dir: "~bob"}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("ListPrompts of another's home: %v, want core.ErrInvalid", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*summary.Config){
		"chunkTokens":  func(c *summary.Config) { c.ChunkTokens = 10 },
		"ratio":        func(c *summary.Config) { c.Ratio = 0.9 },
		"parallel":     func(c *summary.Config) { c.Parallel = 0 },
		"callTimeout":  func(c *summary.Config) { c.CallTimeout = 0 },
		"failures":     func(c *summary.Config) { c.Failures = 0 },
		"maxSummaries": func(c *summary.Config) { c.MaxSummaries = 1 },
		"textTokens":   func(c *summary.Config) { c.TextTokens = 1 },
		"resultTokens": func(c *summary.Config) { c.ResultTokens = 1 },
		"chunk":        func(c *summary.Config) { c.Prompts.Chunk = "no source" },
		"combine":      func(c *summary.Config) { c.Prompts.Combine = "{{.Sauce}}" },
	} {
		cfg := summary.DefaultConfig()
		change(&cfg)
		if _, err := summary.New(cfg, nil); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: New = %v, want ErrInvalid that names it", name, err)
		}
	}
}

func TestListPrompts(t *testing.T) {
	got, err := summary.ListPrompts(summary.Prompts{Chunk: "version: 7\nShorten: {{.Source}}"})
	if err != nil || len(got) != 3 || got[0].Version != "system@1" || !strings.HasPrefix(got[1].Version, "chunk@7+custom-") || got[1].Text != "Shorten: {{.Source}}" {
		t.Errorf("ListPrompts = %+v, %v", got, err)
	}
	if _, err := summary.ListPrompts(summary.Prompts{Chunk: "no source"}); err == nil {
		t.Error("ListPrompts accepts a template without a source")
	}
}
