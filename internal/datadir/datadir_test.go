package datadir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/internal/datadir"
)

// checkout makes a checkout with a folder in it, and enters that folder.
func checkout(t *testing.T, module string) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(top, "repo")
	inner := filepath.Join(root, "part", "inner")
	must(t, os.MkdirAll(inner, 0o755))
	must(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module "+module+"\r\n\ngo 1.26.0\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(root, "part", "go.mod"), []byte("module "+module+"/part\n"), 0o600))
	t.Chdir(inner)
	t.Setenv(datadir.Variable, "")
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDir(t *testing.T) {
	root := checkout(t, "github.com/contextengine/contextengine")
	own, beside := filepath.Join(root, ".tools", "data"), filepath.Join(root, "..", "shared", "data")
	if got := datadir.Dir(os.Getenv); got != own {
		t.Errorf("with nothing beside the checkout: Dir = %q, want %q", got, own)
	}
	must(t, os.MkdirAll(beside, 0o755))
	if got := datadir.Dir(os.Getenv); got != beside {
		t.Errorf("with data beside the checkout: Dir = %q, want %q", got, beside)
	}
	t.Setenv(datadir.Variable, "elsewhere")
	if got := datadir.Dir(os.Getenv); got != filepath.Join(root, "elsewhere") {
		t.Errorf("with a relative path: Dir = %q, want it in the root of the checkout", got)
	}
	t.Setenv("HOME", root)
	for _, home := range []string{"~/data", "$HOME/data"} {
		t.Setenv(datadir.Variable, home)
		if got := datadir.Dir(os.Getenv); got != filepath.Join(root, "data") {
			t.Errorf("with %s: Dir = %q, want it there", home, got)
		}
	}
	t.Setenv(datadir.Variable, beside)
	if got := datadir.Dir(os.Getenv); got != beside {
		t.Errorf("with a path: Dir = %q, want it", got)
	}
}

func TestDirOutsideOfACheckout(t *testing.T) {
	checkout(t, "example.com/another")
	if got := datadir.Dir(os.Getenv); got != "" {
		t.Errorf("Dir = %q, want none", got)
	}
}

// skips records why a test was skipped.
type skips struct{ why string }

func (*skips) Helper() {}

func (s *skips) Skipf(format string, args ...any) { s.why = fmt.Sprintf(format, args...) }

func TestFile(t *testing.T) {
	root := checkout(t, "github.com/contextengine/contextengine")
	own := filepath.Join(root, ".tools", "data")
	for name, says := range map[string]string{"locomo/locomo-dev.json": "fetch locomo", "beam": "fetch beam", "": "fetch --all"} {
		var tb skips
		got := datadir.File(&tb, name)
		if !strings.HasPrefix(tb.why, "not run: "+got+" is absent") || !strings.Contains(tb.why, says+`"`) {
			t.Errorf("%q: skipped with %q, want the path and how to get it", name, tb.why)
		}
	}
	must(t, os.MkdirAll(filepath.Join(own, "beam"), 0o755))
	var tb skips
	if got := datadir.File(&tb, "beam"); tb.why != "" || got != filepath.Join(own, "beam") {
		t.Errorf("File = %q, skipped with %q", got, tb.why)
	}
}
