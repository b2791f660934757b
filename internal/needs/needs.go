// Package needs has the rules for tests that do not run everywhere. A test that needs a program or a server which the machine may lack is skipped and says what
// is missing, but fails where everything is promised to be there. A test that takes minutes under the race detector runs without it.
package needs

import (
	"os"
	"os/exec"
	"strings"
)

// Everything makes what is missing an error when it is "1".
const Everything = "CONTEXTENGINE_CI"

// TB is the part of testing.TB that this package needs.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Program returns the path of the first of some programs that is there. Without any, the test ends: see Missing.
func Program(tb TB, names ...string) string {
	tb.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(tb, "there is no "+strings.Join(names, ", no "))
	return ""
}

// Missing ends a test that cannot run: it is skipped with a text that begins with "not run:", and fails where Everything is "1".
func Missing(tb TB, why string) {
	tb.Helper()
	if os.Getenv(Everything) == "1" {
		tb.Fatalf("%s, and %s says that everything is there", why, Everything)
		return
	}
	tb.Skipf("not run: %s", why)
}

// NoRace skips a test under the race detector, because it would take minutes and find the same as in shorter tests of the parts, or because it changes what the test
// measures. `.ci/run` looks for the tests that call it and
// runs them without the detector.
func NoRace(tb TB) {
	tb.Helper()
	if Race {
		tb.Skipf("runs without the race detector")
	}
}
