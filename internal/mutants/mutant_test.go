package main

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

const sample = `package p

import "fmt"

type t struct {
	A int ` + "`json:\"a\"`" + `
}

func f(list []int, on bool) (n int) {
	for i, v := range list {
		if v < 10 && on {
			continue
		}
		n += max(v, i)
	}
	fmt.Println(n == 0)
	return n - 1
}
`

// TestMutants: every change is one that could be made by mistake, stands in the list once, and leaves a file that can be read.
func TestMutants(t *testing.T) {
	list, err := mutantsOf("p.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range list {
		got = append(got, m.String())
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", m.apply([]byte(sample)), 0); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	for _, want := range []string{
		"p.go:11: v < 10 && on → !(v < 10 && on)", "p.go:11: && → ||", "p.go:11: < → <=", "p.go:11: 10 → 11", "p.go:12: continue → break",
		"p.go:14: n += max(v, i) → nothing", "p.go:14: max → min", "p.go:16: fmt.Println(n == 0) → nothing", "p.go:16: == → !=", "p.go:16: 0 → 1",
		"p.go:17: - → +", "p.go:17: 1 → 2",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("not in the list: %s", want)
		}
	}
	if len(got) != 12 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
		t.Errorf("%d mutants:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// TestNoFiles: a folder without Go files is an error, not an empty sample that nothing survives.
func TestNoFiles(t *testing.T) {
	if _, err := collect([]string{t.TempDir()}); err == nil {
		t.Error("no error")
	}
}

// TestEquivalents: what is in the list of equivalent changes is in the tree, and no more than a tenth of all changes is.
func TestEquivalents(t *testing.T) {
	t.Chdir("../..")
	reasons, err := equivalents()
	if err != nil {
		t.Fatal(err)
	}
	all, err := collect([]string{"core", "core/engine", "backends/memory"})
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[place]bool)
	for _, m := range all {
		there[m.place()] = true
	}
	for p, reason := range reasons {
		if !there[p] || len(reason) < 20 {
			t.Errorf("%s: %q: %s: is it there still, and why is it equivalent: %q", p.file, p.source, p.change, reason)
		}
	}
	if len(reasons) > len(all)/10 {
		t.Errorf("%d of %d changes are called equivalent, want a tenth at most", len(reasons), len(all))
	}
}

// TestGuards: each guard in the list stands in the tree, and the list says what it promises; one that is not there, or in two places, is an error that names it.
func TestGuards(t *testing.T) {
	t.Chdir("../..")
	list, err := guards(guardList)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[place]bool)
	for _, m := range list {
		if seen[m.place()] || m.Old == m.New {
			t.Errorf("%s: it is in the list twice, or changes nothing", m)
		}
		seen[m.place()] = true
	}
	if len(list) < 40 {
		t.Errorf("%d guards", len(list))
	}
	const file = "core/engine/apply.go | "
	for _, bad := range []string{file + "return nil | nil → err | it stands in many places", file + "if nobody { | nobody → true | it is not there", file + "if protected[id] { | protected[id] | it does not say what stands there without it"} {
		if _, err := guards(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
