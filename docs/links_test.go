// Package docs_test holds the documents to what they say: links lead somewhere, commands and configurations are understood, and outputs are what the commands print.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// document is a Markdown file.
type document struct {
	name  string
	lines []string
	// code says for each line whether it is in a block of code, or begins or ends one.
	code []bool
}

func parse(name, text string) document {
	d := document{name: name, lines: strings.Split(text, "\n")}
	inside := false
	for _, line := range d.lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		d.code = append(d.code, inside || fence)
		if fence {
			inside = !inside
		}
	}
	return d
}

// documents returns the Markdown files of a tree that are part of the repository.
func documents(t *testing.T, tree fs.FS) []document {
	t.Helper()
	var out []document
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (slices.Contains([]string{"node_modules", "testdata"}, e.Name()) || len(e.Name()) > 1 && strings.HasPrefix(e.Name(), ".")) {
			return fs.SkipDir
		}
		if !e.Type().IsRegular() || path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		out = append(out, parse(name, string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	heading    = regexp.MustCompile(`^#{1,6} +(.*)$`)
	inlineCode = regexp.MustCompile("`[^`]*`")
	link       = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns what the headings of a document can be reached by.
func (d document) anchors() map[string]bool {
	out := make(map[string]bool)
	for i, line := range d.lines {
		m := heading.FindStringSubmatch(line)
		if m == nil || d.code[i] {
			continue
		}
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		for n, free := 0, slug; ; n++ {
			if n > 0 {
				free = fmt.Sprintf("%s-%d", slug, n)
			}
			if !out[free] {
				out[free] = true
				break
			}
		}
	}
	return out
}

// broken returns the links that lead nowhere.
func broken(tree fs.FS, list []document) []string {
	byName := make(map[string]document, len(list))
	for _, d := range list {
		byName[d.name] = d
	}
	var out []string
	for _, d := range list {
		for i, line := range d.lines {
			if d.code[i] {
				continue
			}
			for _, m := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, "``"), -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				target, anchor, _ := strings.Cut(m[1], "#")
				name := d.name
				if target != "" {
					name = path.Join(path.Dir(d.name), target)
				}
				if _, err := fs.Stat(tree, name); err != nil {
					out = append(out, fmt.Sprintf("%s:%d: %s: there is no %s", d.name, i+1, m[1], name))
				} else if anchor != "" && !byName[name].anchors()[anchor] {
					out = append(out, fmt.Sprintf("%s:%d: %s: %s has no such heading", d.name, i+1, m[1], name))
				}
			}
		}
	}
	return out
}

func TestLinks(t *testing.T) {
	tree := os.DirFS("..")
	list := documents(t, tree)
	if len(list) < 15 {
		t.Errorf("found %d documents", len(list))
	}
	for _, text := range broken(tree, list) {
		t.Error(text)
	}
}

// A link that leads nowhere is found, whatever is wrong with it.
func TestBrokenLinks(t *testing.T) {
	tree := fstest.MapFS{
		"a.md": {Data: []byte("# One `two`\n[x](b/c.md#four) [x](#one-two) [x](b) [x](https://example.com/none)\n```\n[x](none.md)\n```\n`[x](none.md)`\n" +
			"[x](d.md)\n[x](b/c.md#five)\n[x](#two)\n")},
		"b/c.md": {Data: []byte("## Four\n[x](../a.md) [x](a.md)\n")},
	}
	want := []string{
		"a.md:7: d.md: there is no d.md", "a.md:8: b/c.md#five: b/c.md has no such heading", "a.md:9: #two: a.md has no such heading", "b/c.md:2: a.md: there is no b/a.md",
	}
	if got := broken(tree, documents(t, tree)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
