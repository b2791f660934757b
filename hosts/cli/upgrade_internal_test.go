package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// What init of a release writes says for which version, in every format that has comments, and is a configuration all the same.
func TestWrittenFor(t *testing.T) {
	defer func(before string) { releaseVersion = before }(releaseVersion)
	for _, version := range []string{"", "0.1.0", "1.2.3-rc1"} {
		for format, says := range map[string]bool{"yaml": true, "yml": true, "toml": true, "json5": true, "json": false} {
			releaseVersion = version
			r := builtin.New()
			text, err := r.Template(format)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "c."+format)
			if err := os.WriteFile(file, writtenHere(format, text), 0o600); err != nil {
				t.Fatal(err)
			}
			want := version
			if !says {
				want = ""
			}
			if got := writtenFor(file); got != want {
				t.Errorf("%s of %q: written for %q", format, version, got)
			}
			if _, err := r.Load(registry.File(file)); err != nil {
				t.Errorf("%s of %q: %v", format, version, err)
			}
		}
	}
}

// A file that this very version wrote is read all the same: that nothing changed since says nothing of one that cannot be used.
func TestUpgradeOfThisVersion(t *testing.T) {
	defer func(before string) { releaseVersion = before }(releaseVersion)
	releaseVersion = "9.9.9"
	for text, want := range map[string]int{"store: memory\n": 0, "store: {type: sqlit\n": ExitUsage, "retriver: hybrid\n": ExitUsage} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, writtenHere("yaml", []byte(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if got := Run(t.Context(), builtin.New(), []string{"upgrade", "--check", "--config", file}, IO{Stdout: &out, Stderr: &errs}); got != want {
			t.Errorf("%q: exit code %d, want %d\n%s%s", text, got, want, &out, &errs)
		}
	}
}
