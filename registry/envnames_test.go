package registry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/registry"
)

// The commands run with the variables of tests and of .ci/run about them: none may be taken for a key of the configuration.
func TestVariablesOfTestsAreNoKeys(t *testing.T) {
	read := regexp.MustCompile(`(?:(?:Getenv|LookupEnv|getenv)\(| = )"(` + registry.EnvPrefix + `[A-Z_]+)"`) // where it is read, or the constant that names it
	set := regexp.MustCompile(`(?m)(?:^|[\s"])(` + registry.EnvPrefix + `[A-Z_]+)=`)
	found := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "node_modules" || name == ".tools" || name == ".git" || name == "testdata") {
			return filepath.SkipDir
		}
		names := read
		switch slash := filepath.ToSlash(path); {
		case slash == "../.ci/run" || slash == "../Makefile" || strings.HasSuffix(slash, "/e2e/run.sh"):
			names = set
		case !strings.HasSuffix(slash, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range names.FindAllSubmatch(text, -1) {
			found[string(m[1])] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []string{"CI", "DATA", "SHOTS", "PGLITE"} {
		if found[registry.EnvPrefix+known] == "" {
			t.Errorf("%s%s was not found in any file: does this test still look where variables are read?", registry.EnvPrefix, known)
		}
	}
	r := newRegistry(t, &shop{})
	for name, path := range found {
		t.Run(name, func(t *testing.T) {
			if _, err := r.Load(registry.Environ([]string{name + "=x"})); err != nil {
				t.Errorf("%s uses it: %v", path, err)
			}
		})
	}
}
