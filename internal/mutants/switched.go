package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// A build holds many mutants at once: each stands behind a switch that an environment variable turns on, so that tests are compiled once for all of them.

// edited is a part of a source file and what stands there instead.
type edited struct {
	m      *mutant
	within []edited
}

// nest orders mutants of one file by what lies in what; of two in the same place a whole condition is outside.
func nest(list []*mutant) []edited {
	slices.SortStableFunc(list, func(a, b *mutant) int {
		if a.SwitchFrom != b.SwitchFrom {
			return a.SwitchFrom - b.SwitchFrom
		}
		if a.SwitchTo != b.SwitchTo {
			return b.SwitchTo - a.SwitchTo
		}
		return int(a.Kind) - int(b.Kind)
	})
	var out []edited
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && list[j].SwitchFrom < list[i].SwitchTo {
			j++
		}
		out = append(out, edited{m: list[i], within: nest(slices.Clone(list[i+1 : j]))})
		i = j
	}
	return out
}

// render returns the bytes of a file from from to to with the mutants in it behind their switches.
func render(src []byte, from, to int, list []edited) string {
	var b strings.Builder
	for i := range list {
		m := list[i].m
		if m.SwitchFrom < from || m.SwitchTo > to {
			continue
		}
		b.Write(src[from:m.SwitchFrom])
		b.WriteString(m.switched(src, list[i].within))
		from = m.SwitchTo
	}
	b.Write(src[from:to])
	return b.String()
}

// switched returns what stands in a mutant's place: the source as it is, or the mutant where its switch is on.
func (m *mutant) switched(src []byte, within []edited) string {
	whole := render(src, m.SwitchFrom, m.SwitchTo, within)
	on := fmt.Sprintf("/*M%d*/mutantOn(%d)", m.ID, m.ID)
	switch m.Kind {
	case kindStatement:
		return "if !" + on + " { " + whole + " }"
	case kindBreak:
		return "if " + on + " { break }; " + whole
	case kindCondition:
		return "((" + whole + ") != " + on + ")"
	case kindGuard:
		return "(" + on + " && (" + m.New + ") || !" + on + " && (" + whole + "))"
	case kindLiteral:
		return fmt.Sprintf(" /*M%d*/mutantInt(%d, %s)", m.ID, m.ID, whole) // behind a / without a blank it would be another comment
	case kindPick:
		other := m.New + whole[len(m.Old):]
		return fmt.Sprintf(" /*M%d*/mutantPick(%d, %s, %s)", m.ID, m.ID, whole, other)
	}
	x, y := render(src, m.SwitchFrom, m.Left, within), render(src, m.Right, m.SwitchTo, within)
	switch m.Old {
	case "<", ">":
		return "(" + x + m.Old + y + " || " + on + " && " + x + "==" + y + ")"
	case "<=", ">=":
		return "(" + x + m.Old + y + " && !(" + on + " && " + x + "==" + y + "))"
	case "==", "!=":
		return "((" + x + m.Old + y + ") != " + on + ")"
	case "&&", "||":
		return "(" + on + " && (" + x + m.New + y + ") || !" + on + " && (" + x + m.Old + y + "))"
	}
	name := map[string]string{"+": "Add", "-": "Sub", "*": "Mul", "/": "Quo"}[m.Old]
	return fmt.Sprintf(" /*M%d*/mutant%s(%d, %s, %s)", m.ID, name, m.ID, x, y)
}

// switches is the file that a package with switched mutants gets besides: the environment variable MUTANT has the number of the one that is on, and the file that
// MUTANTS_REACHED names gets the numbers of those whose place was reached.
const switches = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantNow, _   = strconv.Atoi(os.Getenv("MUTANT"))
	mutantsReached = os.Getenv("MUTANTS_REACHED")
	mutantsSeen    [1 << 16]atomic.Bool
)

func mutantOn(id int) bool {
	if mutantsReached != "" {
		if !mutantsSeen[id].Swap(true) {
			if f, err := os.OpenFile(mutantsReached, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				_, _ = f.WriteString(strconv.Itoa(id) + "\n")
				_ = f.Close()
			}
		}
	}
	return mutantNow == id
}

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func mutantPick[T any](id int, a, b T) T { if mutantOn(id) { return b }; return a }
func mutantInt(id, n int) int { if mutantOn(id) { return n + 1 }; return n }
func mutantAdd[T mutantNumber](id int, a, b T) T { if mutantOn(id) { return a - b }; return a + b }
func mutantSub[T mutantNumber](id int, a, b T) T { if mutantOn(id) { return a + b }; return a - b }
func mutantMul[T mutantNumber](id int, a, b T) T { if mutantOn(id) { return a / b }; return a * b }
func mutantQuo[T mutantNumber](id int, a, b T) T { if mutantOn(id) { return a * b }; return a / b }
`

// stage is the compiled tests of a package and what they are run with.
type stage struct {
	pkg, binary, dir string
	// run is the expression that the names of its tests fit, skip one of those that are left out.
	run, skip string
	// tests are sorted by the time that they take.
	tests []test
}

// test is one test of a package.
type test struct {
	name string
	took time.Duration
	// reached are the mutants whose place it comes to.
	reached map[int]bool
}

// reaching returns the tests that come to a mutant, the fast ones first.
func (s *stage) reaching(m *mutant) []test {
	return slices.DeleteFunc(slices.Clone(s.tests), func(t test) bool { return !t.reached[m.ID] })
}

// builder writes sources with switched mutants and compiles tests of them.
type builder struct {
	dir      string
	limit    time.Duration
	parallel int
}

// overlay writes the changed files of some mutants and returns what -overlay takes.
func (b *builder) overlay(mutants []*mutant) (string, error) {
	files := map[string][]*mutant{}
	for _, m := range mutants {
		files[m.File] = append(files[m.File], m)
	}
	replace := map[string]string{}
	for file, list := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		full, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		changed := filepath.Join(b.dir, strings.ReplaceAll(file, "/", "__"))
		if err := os.WriteFile(changed, []byte(render(src, 0, len(src), nest(list))), 0o600); err != nil {
			return "", err
		}
		replace[full] = changed
		beside := filepath.Join(filepath.Dir(full), "zz_mutants.go")
		if replace[beside] == "" {
			replace[beside] = filepath.Join(b.dir, "switches__"+strings.ReplaceAll(filepath.Dir(file), "/", "__")+".go")
			name := packageClause.FindSubmatch(src)
			if name == nil {
				return "", fmt.Errorf("mutants: %s has no package clause", file)
			}
			if err := os.WriteFile(replace[beside], fmt.Appendf(nil, switches, name[1]), 0o600); err != nil {
				return "", err
			}
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.dir, "overlay.json")
	return path, os.WriteFile(path, raw, 0o600)
}

var (
	packageClause = regexp.MustCompile(`(?m)^package (\w+)`)
	compileError  = regexp.MustCompile(`(?m)^([^\s:]+):(\d+):(?:(\d+):)? (.+)$`)
	switchNumber  = regexp.MustCompile(`/\*M(\d+)\*/`)
)

// compilable returns the mutants with which the packages compile together, and the others.
func (b *builder) compilable(ctx context.Context, mutants []*mutant) (good, bad []*mutant, err error) {
	var packages []string
	for _, m := range mutants {
		if dir := "./" + filepath.Dir(m.File); !slices.Contains(packages, dir) {
			packages = append(packages, dir)
		}
	}
	good = mutants
	for {
		overlay, err := b.overlay(good)
		if err != nil {
			return nil, nil, err
		}
		out, err := command(ctx, append([]string{"build", "-o", os.DevNull, "-gcflags=-e", "-overlay", overlay}, packages...)...).CombinedOutput()
		if err == nil {
			return good, bad, nil
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		drop := b.blamed(out)
		if len(drop) == 0 {
			return nil, nil, fmt.Errorf("mutants: go build: %s", out)
		}
		var left []*mutant
		for _, m := range good {
			if drop[m.ID] {
				bad = append(bad, m)
			} else {
				left = append(left, m)
			}
		}
		good = left
	}
}

// blamed returns the mutants in whose place a compiler found something: for each error the switch that begins last
// before it, or else in the same line.
func (b *builder) blamed(out []byte) map[int]bool {
	drop := map[int]bool{}
	for _, found := range compileError.FindAllSubmatch(out, -1) {
		src, err := os.ReadFile(filepath.Join(b.dir, filepath.Base(string(found[1]))))
		if err != nil {
			continue // not one of ours
		}
		lines := bytes.SplitAfter(src, []byte("\n"))
		line, _ := strconv.Atoi(string(found[2]))
		column, _ := strconv.Atoi(string(found[3]))
		this := lines[line-1]
		at := min(max(column-1, 0), len(this))
		if column == 0 {
			at = len(this)
		}
		for _, place := range [][]byte{this[:at], this[at:], bytes.Join(lines[:line-1], nil)} {
			if numbers := switchNumber.FindAllSubmatch(place, -1); len(numbers) > 0 {
				id, _ := strconv.Atoi(string(numbers[len(numbers)-1][1]))
				drop[id] = true
				break
			}
		}
	}
	return drop
}

// stages compiles the tests of some packages and looks which mutants each comes to.
func (b *builder) stages(ctx context.Context, mutants []*mutant, specs [][]string) ([]*stage, error) {
	overlay, err := b.overlay(mutants)
	if err != nil {
		return nil, err
	}
	var out []*stage
	for _, spec := range specs {
		patterns, run, skip, err := parse(spec)
		if err != nil {
			return nil, err
		}
		list, err := command(ctx, append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}"}, patterns...)...).Output()
		if err != nil {
			return nil, fmt.Errorf("mutants: go list %v: %w", patterns, err)
		}
		for line := range strings.Lines(string(list)) {
			pkg, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
			if !ok {
				continue
			}
			s := &stage{pkg: pkg, dir: dir, run: run, skip: skip, binary: filepath.Join(b.dir, fmt.Sprintf("stage%d.test", len(out)))}
			if said, err := command(ctx, "test", "-c", "-vet=off", "-overlay", overlay, "-o", s.binary, pkg).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("mutants: go test -c %s: %w\n%s", pkg, err, said)
			}
			if err := b.reach(ctx, s); err != nil {
				return nil, err
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// parse reads the packages of a stage and the tests of them that are wanted.
func parse(spec []string) (patterns []string, run, skip string, err error) {
	run = "."
	for i := 0; i < len(spec); i++ {
		switch {
		case strings.HasPrefix(spec[i], "./"):
			patterns = append(patterns, spec[i])
		case (spec[i] == "-run" || spec[i] == "-skip") && i+1 < len(spec):
			if strings.Contains(spec[i+1], "/") {
				return nil, "", "", fmt.Errorf("mutants: %s %q names parts of a test: only whole tests can be chosen", spec[i], spec[i+1])
			}
			if spec[i] == "-run" {
				run = spec[i+1]
			} else {
				skip = spec[i+1]
			}
			i++
		default:
			return nil, "", "", fmt.Errorf("mutants: %q is neither a package that begins with ./, nor -run or -skip with an expression", spec[i])
		}
	}
	return patterns, run, skip, nil
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Example)`)

// reach runs each test of a stage alone and looks which mutants it comes to and how long it takes.
func (b *builder) reach(ctx context.Context, s *stage) error {
	names, err := b.start(ctx, s, nil, "-test.list", s.run)
	if err != nil {
		return fmt.Errorf("mutants: tests of %s: %w\n%s", s.pkg, err, names)
	}
	for name := range strings.Lines(string(names)) {
		if name = strings.TrimSpace(name); testName.MatchString(name) {
			s.tests = append(s.tests, test{name: name, reached: map[int]bool{}})
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(b.parallel, 1))
	for i := range s.tests {
		t := &s.tests[i]
		g.Go(func() error {
			path := filepath.Join(b.dir, "reached-"+t.name)
			defer func() { _ = os.Remove(path) }()
			begun := time.Now()
			if said, err := b.try(ctx, s, []test{*t}, "MUTANTS_REACHED="+path); err != nil {
				return fmt.Errorf("mutants: %s of %s fails as it is: %w\n%s", t.name, s.pkg, err, said)
			}
			t.took = time.Since(begun)
			raw, _ := os.ReadFile(path) // a test that comes to none writes none
			for id := range strings.Lines(string(raw)) {
				if n, err := strconv.Atoi(strings.TrimSpace(id)); err == nil {
					t.reached[n] = true
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	slices.SortFunc(s.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return nil
}

// try runs some tests of a stage until one fails.
func (b *builder) try(ctx context.Context, s *stage, tests []test, env ...string) ([]byte, error) {
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	args := []string{"-test.failfast", "-test.timeout", b.limit.String(), "-test.run", "^(" + strings.Join(names, "|") + ")$"}
	if s.skip != "" {
		args = append(args, "-test.skip", s.skip)
	}
	return b.start(ctx, s, env, args...)
}

func (b *builder) start(ctx context.Context, s *stage, env []string, args ...string) ([]byte, error) {
	// A test that hangs in what its own time limit cannot end is noticed too.
	ctx, cancel := context.WithTimeout(ctx, b.limit+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	return cmd.CombinedOutput()
}

// judge runs the tests that come to a mutant, those of its own package first, and of a package the fast ones first.
func (b *builder) judge(ctx context.Context, m *mutant, stages []*stage) (verdict, error) {
	own := func(s *stage) bool { return strings.HasSuffix(s.pkg, "/"+filepath.ToSlash(filepath.Dir(m.File))) }
	for _, first := range []bool{true, false} {
		for _, s := range stages {
			if own(s) != first {
				continue
			}
			for _, tests := range batches(s.reaching(m)) {
				_, err := b.try(ctx, s, tests, "MUTANT="+strconv.Itoa(m.ID))
				if ctx.Err() != nil {
					return invalid, ctx.Err()
				}
				var exit *exec.ExitError
				if errors.As(err, &exit) || errors.Is(err, context.DeadlineExceeded) {
					return killed, nil
				}
				if err != nil {
					return invalid, err
				}
			}
		}
	}
	return survived, nil
}

// batches cuts tests that are sorted by the time they take: the first batch takes about a second, and each other one four times as long. Most mutants are noticed by
// the first, and a process is not started for each test.
func batches(tests []test) [][]test {
	var out [][]test
	for limit := time.Second; len(tests) > 0; limit *= 4 {
		n, took := 0, time.Duration(0)
		for n < len(tests) && (n == 0 || took < limit) {
			took += tests[n].took
			n++
		}
		out, tests = append(out, tests[:n]), tests[n:]
	}
	return out
}
