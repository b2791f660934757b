package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// program has one of each kind of mutant, some inside others.
const program = `package main

import "fmt"

type size float64

func area(a, b size) size { return a * b }

func main() {
	n, found := 0, false
	for i := range 6 {
		if i > 1 && i != 4 {
			n += max(i, 2) + 1
			continue
		}
		found = i == 4 || found
		fmt.Print(i, " ")
	}
	const fixed = 2 + 1
	if n <= 20 {
		n++
	}
	fmt.Println(n, found, true, area(2, 4)-size(fixed))
	fmt.Println(n/3, n/max(n, 2))
}
`

// TestSwitchedMutants: behind its switch a mutant does what it does when the source itself is changed, whatever mutants lie around it; with none on, the program
// is what it was; those that cannot be compiled are named, and nothing else is lost with them.
func TestSwitchedMutants(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"go.mod": "module example.com/p\n\ngo 1.26\n", "p/p.go": program} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := collect([]string{"p"})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := guards("p/p.go | if n <= 20 { | n <= 20 → n > 100 | it counts no further")
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, guard...)
	var list []*mutant
	for i := range all {
		all[i].ID = i + 1
		list = append(list, &all[i])
	}
	b := &builder{dir: t.TempDir(), limit: time.Minute}
	good, bad, err := b.compilable(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range bad {
		if m.Line != 19 && (m.Line != 23 || m.Kind != kindLiteral) { // a constant stays one, and a number of a type of its own that type
			t.Errorf("does not compile: %s", m)
		}
	}
	overlay, err := b.overlay(good)
	if err != nil {
		t.Fatal(err)
	}
	build := func(args ...string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "p")
		if out, err := command(t.Context(), append(append([]string{"build", "-o", path}, args...), "./p")...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return path
	}
	says := func(path string, mutant int) string {
		cmd := exec.CommandContext(t.Context(), path)
		cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(mutant))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("mutant %d: %v: %s", mutant, err, out)
		}
		return string(out)
	}
	switched := build("-overlay", overlay)
	was := says(build(), 0)
	if got := says(switched, 0); got != was || !strings.Contains(was, "true") {
		t.Fatalf("with no mutant on %q, want %q", got, was)
	}
	// The numbers and picks alone: what stands in front of them is the source itself.
	leaves := slices.DeleteFunc(slices.Clone(good), func(m *mutant) bool { return m.Kind != kindLiteral && m.Kind != kindPick })
	if overlay, err = b.overlay(leaves); err != nil {
		t.Fatal(err)
	}
	if got := says(build("-overlay", overlay), 0); got != was {
		t.Errorf("with no mutant on, the numbers alone switched: %q, want %q", got, was)
	}
	seen := map[int]bool{}
	for _, m := range good {
		if seen[int(m.Kind)] && m.Kind != kindOperator {
			continue // one of a kind is compared with a source that is changed, and every operator
		}
		seen[int(m.Kind)] = true
		if err := os.WriteFile("p/p.go", m.apply([]byte(program)), 0o600); err != nil {
			t.Fatal(err)
		}
		if want, got := says(build(), 0), says(switched, m.ID); got != want {
			t.Errorf("%s: behind its switch %q, want %q", m, got, want)
		}
	}
	if len(seen) != int(kindStatement)+1 || len(good) < 15 {
		t.Errorf("%d kinds, %d mutants", len(seen), len(good))
	}
}
