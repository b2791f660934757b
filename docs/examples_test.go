package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every package that others import shows how: it has an example that runs.
func TestEveryPackageHasAnExample(t *testing.T) {
	example := regexp.MustCompile(`(?ms)^func Example\w*\(\) \{.*?^\t// (Unordered output|Output):`)
	found := 0
	err := filepath.WalkDir("..", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != ".." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"internal", "examples", "testdata", "node_modules", "bench"}, name)) {
			return fs.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return err
		}
		public, shown := false, false
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
				if err != nil {
					return err
				}
				public = public || f.Name.Name != "main"
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			shown = shown || example.Match(text)
		}
		if public {
			found++
		}
		if public && !shown {
			t.Errorf("%s has no example with output", dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 40 {
		t.Errorf("%d packages were looked at: does this test still find them?", found)
	}
}
