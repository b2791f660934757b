// Package datadir says where the public conversations lie that tests and measurements read. They are no part of the repository:
// "contextengine dataset fetch" gets them.
package datadir

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/contextengine/contextengine/internal/homepath"
)

// Variable names the folder; it goes before every other place.
const Variable = "CONTEXTENGINE_DATA"

// module is named in the first line of the go.mod at the root of a checkout.
const module = "github.com/contextengine/contextengine"

// Dir returns the folder of the public conversations, whether or not it exists: what CONTEXTENGINE_DATA says, with "~" or $HOME for the home, a relative path from the root
// of the checkout that the working directory is in, so that the tests of every package mean one folder; else shared/data beside the
// checkout, if that exists; else .tools/data in it. It is empty outside of a checkout without the variable. Getenv is os.Getenv, or the environment of a command.
func Dir(getenv func(string) string) string {
	dir, root := getenv(Variable), checkout()
	if path, err := homepath.Expand(dir); err == nil {
		dir = path
	}
	if filepath.IsAbs(dir) || dir != "" && root == "" {
		return dir
	}
	if dir != "" {
		return filepath.Join(root, dir)
	}
	if root == "" {
		return ""
	}
	if beside := filepath.Join(root, "..", "shared", "data"); isDir(beside) {
		return beside
	}
	return filepath.Join(root, ".tools", "data")
}

// TB is the part of testing.TB that File needs. It is named here so that programs which ask for Dir do not carry package testing.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
}

// File returns the path of a file of a set, such as "locomo/locomo-dev.json", or of the set's folder; what is before the first slash names
// the set. An empty name is the data folder itself. A test that needs what is not there is skipped, and says how to get it.
func File(tb TB, name string) string {
	tb.Helper()
	path := filepath.Join(Dir(os.Getenv), filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		set, _, _ := strings.Cut(name, "/")
		if set == "" {
			set = "--all"
		}
		tb.Skipf("not run: %s is absent: \"go run ./cmd/contextengine dataset fetch %s\" gets it, or %s names the folder that has it", path, set, Variable)
	}
	return path
}

// checkout returns the root of the checkout around the working directory, empty if there is none.
func checkout() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			line, _, _ := strings.Cut(string(mod), "\n")
			if strings.TrimSpace(line) == "module "+module {
				return dir
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
