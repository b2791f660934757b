package conformance

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Finding is a broken rule.
type Finding struct {
	Check Check
	// Text says what was seen instead.
	Text string
	// Also lists the ids of further rules that the same case breaks, most often for the same reason.
	Also []string
	// Case is the smallest counter-example found, one step per line.
	Case string
	// Seed is the base seed.
	Seed int64
}

// ID returns the check's id.
func (f Finding) ID() string { return f.Check.ID }

// String returns the finding as it is reported, without the command that repeats it.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", f.Check.ID, f.Check.Rule)
	if f.Check.Promise > 0 {
		fmt.Fprintf(&b, "promise: %d\n", f.Check.Promise)
	}
	fmt.Fprintf(&b, "seen:    %s\n", strings.ReplaceAll(f.Text, "\n", "\n         "))
	if len(f.Also) > 0 {
		fmt.Fprintf(&b, "also:    %s\n", strings.Join(f.Also, ", "))
	}
	if f.Case != "" {
		fmt.Fprintf(&b, "case:\n  %s\n", strings.ReplaceAll(strings.TrimRight(f.Case, "\n"), "\n", "\n  "))
	}
	fmt.Fprintf(&b, "seed:    %d", f.Seed)
	return b.String()
}

// report fails t with f and the command that repeats it, or logs it when the check is provisional.
func report(t *testing.T, f Finding) {
	t.Helper()
	text := f.String() + "\nrerun:   " + rerun(t.Name(), f.Seed)
	if f.Check.Provisional {
		t.Log("provisional check, not counted as a failure:\n" + text)
		return
	}
	t.Error(text)
}

// rerun returns the command that repeats the test of that name, with as many cases as this run had.
func rerun(name string, seed int64) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	command := fmt.Sprintf("go test %s -run '%s' -conformance.seed=%d", packageDir(), strings.Join(parts, "/"), seed)
	if *casesFlag > 0 {
		command += fmt.Sprintf(" -conformance.cases=%d", *casesFlag)
	}
	for _, name := range []string{envCases, envTimes} {
		if value := os.Getenv(name); value != "" {
			command = name + "=" + value + " " + command
		}
	}
	return command
}

// packageDir returns the directory of the package under test, relative to its module: tests run in it.
func packageDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			rel, err := filepath.Rel(root, dir)
			if err != nil {
				return "."
			}
			return "./" + filepath.ToSlash(rel)
		}
		if root == filepath.Dir(root) {
			return "."
		}
	}
}

// seedFor derives a check's own seed, so that a check finds the same case alone and among others.
func seedFor(base int64, name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return base ^ int64(h.Sum64()>>1)
}
