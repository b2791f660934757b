// Command mutants changes a statement here and there and looks whether a test notices: a sample of the small changes that could be made to some packages, all in
// one build, each behind a switch, so that tests are compiled once; -overlay leaves the tree as it is. It lists the changes that no test noticed.
// Those that nobody could notice are named in equivalent.txt, with the reason.
// With -guards it takes away, one at a time, the guards that guards.txt names: whatever a part proposes, they keep it out of the window.
//
//	go run ./internal/mutants -n 400 -folders core,core/engine,backends/memory -stages './core/... ./backends/memory; -run TestMatrixVariants ./conformance'
//
// The seed is new in each run and printed; -seed repeats one.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// verdict is what came of a mutant.
type verdict int

const (
	killed verdict = iota
	survived
	// equivalent ones survived and are in the list of those that do.
	equivalent
	// invalid ones were not judged.
	invalid
)

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	n := flags.Int("n", 40, "number of mutants")
	seed := flags.Uint64("seed", 0, "seed of the sample; 0 is a random one")
	folders := flags.String("folders", "core,backends/memory", "folders of the packages, separated by commas")
	stages := flags.String("stages", "./core/... ./backends/memory", "packages that are tested, and -run or -skip for them; stages are separated by semicolons, and a later one runs when the earlier ones noticed nothing")
	limit := flags.Duration("limit", 3*time.Minute, "time for the tests of one package; a mutant that hangs is noticed")
	parallel := flags.Int("parallel", 2, "mutants that are tried at the same time")
	only := flags.String("only", "", "a regular expression: only mutants that are written like this are in the sample, file:line: old → new")
	share := flags.Float64("survivors", 1, "fail when a larger share than this survives")
	guarded := flags.Bool("guards", false, "instead of a sample take away each guard in guards.txt; -n and -folders say nothing then, and none may survive")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for *seed == 0 {
		*seed = uint64(rand.Uint32())
	}
	var all []mutant
	var err error
	if *guarded {
		all, err = guards(guardList)
		*n, *share = len(all), 0
	} else {
		all, err = collect(strings.Split(*folders, ","))
	}
	if err != nil {
		return err
	}
	if *only != "" {
		pattern, err := regexp.Compile(*only)
		if err != nil {
			return fmt.Errorf("mutants: -only: %w", err)
		}
		all = slices.DeleteFunc(all, func(m mutant) bool { return !pattern.MatchString(m.String()) })
	}
	reasons, err := equivalents()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "seed %d: %d of %d mutants\n", *seed, min(*n, len(all)), len(all))
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) //nolint:gosec // a sample, no secret
	var tests [][]string
	for stage := range strings.SplitSeq(*stages, ";") {
		tests = append(tests, strings.Fields(stage))
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &builder{dir: dir, limit: *limit, parallel: *parallel}
	var sample []*mutant
	// Some more than asked for: one here and there does not compile.
	for i := range all[:min(*n+*n/4+10, len(all))] {
		all[i].ID = i + 1
		sample = append(sample, &all[i])
	}
	good, bad, err := b.compilable(ctx, sample)
	if err != nil {
		return err
	}
	if *guarded && len(bad) > 0 {
		return fmt.Errorf("mutants: guards.txt: %s does not compile", bad[0])
	}
	sample = good[:min(*n, len(good))]
	built, err := b.stages(ctx, sample, tests)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d mutants in one build, %d do not compile; %d tested packages\n", len(sample), len(bad), len(built))
	count, unreached := map[verdict]int{}, 0
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(*parallel)
	for _, m := range sample {
		g.Go(func() error {
			v, err := b.judge(ctx, m, built)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			reason, listed := reasons[m.place()]
			switch {
			case v == survived && listed:
				v = equivalent
				fmt.Fprintf(out, "%s: equivalent: %s\n", m, reason)
			case v == killed && listed:
				fmt.Fprintf(out, "%s: is in the list of equivalent ones, but was noticed\n", m)
			}
			if count[v]++; v == survived {
				far := ""
				if !slices.ContainsFunc(built, func(s *stage) bool { return len(s.reaching(m)) > 0 }) {
					far = " (no test comes there)"
					unreached++
				}
				fmt.Fprintf(out, "%s%s\n", m, far)
			}
			if n := count[killed] + count[survived] + count[equivalent]; n%50 == 0 {
				fmt.Fprintf(out, "... of %d, %d survived and %d are equivalent so far\n", n, count[survived], count[equivalent])
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	judged := count[killed] + count[survived]
	fmt.Fprintf(out, "%d of %d survived, to %d of them no test comes; %d more are equivalent\n", count[survived], judged, unreached, count[equivalent])
	if float64(count[survived]) > *share*float64(judged) {
		return fmt.Errorf("mutants: %d of %d survived, more than a share of %g", count[survived], judged, *share)
	}
	return nil
}

func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false") // whoever runs it may want another form of output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
