package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// There is a page for every command, in nothing but the language of manual pages, with every flag that --help shows.
func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	run(t, builtin.New(), "", "man", dir).want(t, cli.ExitOK, "pages into "+dir)
	run(t, builtin.New(), "", "man", dir).want(t, cli.ExitFailure, "contextengine.1 exists")
	run(t, builtin.New(), "", "man", dir, "--force").want(t, cli.ExitOK)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	macro := regexp.MustCompile(`(?m)^\.(\S*)`)
	flag := regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z-]+)`)
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for _, m := range macro.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(" TH SH B TP PP nf fi ", " "+m[1]+" ") {
				t.Errorf("%s: unknown request .%s", page, m[1])
			}
		}
		command := strings.Split(strings.TrimSuffix(filepath.Base(page), ".1"), "-")[1:]
		help := run(t, builtin.New(), "", append(command, "--help")...)
		_, flags, _ := strings.Cut(help.out, "\nFlags:")
		for _, m := range flag.FindAllStringSubmatch(flags, -1) {
			if !strings.Contains(text, strings.ReplaceAll(m[1], "-", `\-`)) {
				t.Errorf("%s lacks %s", page, m[1])
			}
		}
		for _, part := range []string{".TH ", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH OPTIONS\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q", page, part)
			}
		}
	}
}
