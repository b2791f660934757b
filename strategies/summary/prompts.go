package summary

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/homepath"
)

//go:embed prompts/*.md
var builtin embed.FS

// prompt is a template and the version that is recorded with what it led to.
type prompt struct {
	name, version string
	tmpl          *template.Template
}

// fields is what a prompt's template can use.
type fields struct {
	Source, Instructions string
	Tokens, Words        int
}

type promptSet struct {
	system         string
	chunk, combine prompt
}

// Prompt is a text that models are asked with.
type Prompt struct {
	// Name is that of its file without ".md", Version what is recorded with each summary ("chunk@1").
	Name, Version string
	// Text is a template, see Prompts.
	Text string
}

// ListPrompts returns the prompts that a configuration leads to, those of its files and texts included. The error is that of New.
func ListPrompts(cfg Prompts) ([]Prompt, error) {
	if _, err := loadPrompts(cfg); err != nil {
		return nil, err
	}
	var out []Prompt
	for _, p := range []struct{ name, text string }{{"system", cfg.System}, {"chunk", cfg.Chunk}, {"combine", cfg.Combine}} {
		text, version, err := promptText(p.name, p.text, cfg.Dir)
		if err != nil {
			return nil, err
		}
		out = append(out, Prompt{Name: p.name, Version: version, Text: text})
	}
	return out, nil
}

func loadPrompts(cfg Prompts) (promptSet, error) {
	var set promptSet
	text, _, err := promptText("system", cfg.System, cfg.Dir)
	if err != nil {
		return set, err
	}
	set.system = text
	for _, p := range []struct {
		to         *prompt
		name, text string
	}{{&set.chunk, "chunk", cfg.Chunk}, {&set.combine, "combine", cfg.Combine}} {
		text, version, err := promptText(p.name, p.text, cfg.Dir)
		if err != nil {
			return set, err
		}
		tmpl, err := template.New(p.name).Option("missingkey=error").Parse(text)
		if err != nil {
			return set, fmt.Errorf("summary: prompt %q: %w: %w", p.name, err, core.ErrInvalid)
		}
		*p.to = prompt{name: p.name, version: version, tmpl: tmpl}
		const probe = "0f6d source 9ae1"
		out, err := p.to.render(fields{Source: probe, Tokens: 1, Words: 1})
		if err != nil {
			return set, err
		}
		if !strings.Contains(out, probe) {
			return set, fmt.Errorf("summary: prompt %q: {{.Source}} is missing: put it where the excerpt belongs: %w", p.name, core.ErrInvalid)
		}
	}
	return set, nil
}

// promptText finds a prompt and takes its version line off.
func promptText(name, override, dir string) (text, version string, err error) {
	text, custom := override, override != ""
	if dir, err = homepath.Expand(dir); err != nil {
		return "", "", fmt.Errorf("summary: config: dir: %w", err)
	}
	if !custom && dir != "" {
		raw, err := os.ReadFile(filepath.Join(dir, name+".md"))
		switch {
		case err == nil:
			text, custom = string(raw), true
		case !errors.Is(err, fs.ErrNotExist):
			return "", "", fmt.Errorf("summary: prompt %q: %w", name, err)
		}
	}
	if !custom {
		raw, err := builtin.ReadFile("prompts/" + name + ".md")
		if err != nil {
			return "", "", fmt.Errorf("summary: prompt %q: %w", name, err)
		}
		text = string(raw)
	}
	if first, rest, ok := strings.Cut(text, "\n"); ok {
		if v, ok := strings.CutPrefix(first, "version:"); ok {
			version, text = strings.TrimSpace(v), rest
		}
	}
	if custom {
		sum := sha256.Sum256([]byte(text))
		version = strings.TrimPrefix(version+"+custom-"+hex.EncodeToString(sum[:4]), "+")
	}
	return strings.TrimSpace(text), name + "@" + version, nil
}

func (p prompt) render(f fields) (string, error) {
	var b strings.Builder
	if err := p.tmpl.Execute(&b, f); err != nil {
		return "", fmt.Errorf("summary: prompt %q: %w: %w", p.name, err, core.ErrInvalid)
	}
	return b.String(), nil
}
